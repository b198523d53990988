/*
** reduce: what the host and the CUDA kernel share. Arrays: a (in), result (out: f64, or c128 for
** sum and mean of complex). Slot MB_REDUCE_PARTIALS: one mb_reduce_cell per (output, block): the
** reduced axis (or, with axis 0, all elements in row-major order) is cut into blocks of
** MB_REDUCE_BLOCK elements, so the order of additions does not depend on threads. The slot has 0
** bytes when one block is enough.
*/
#ifndef MB_OPS_OP_REDUCE_H
#define MB_OPS_OP_REDUCE_H

#include "core/both.h"
#include "ops/op.h"
#include <float.h>

typedef enum mb_reduce_fn {
    MB_REDUCE_SUM,
    MB_REDUCE_MIN, /* NaN wins */
    MB_REDUCE_MAX,
    MB_REDUCE_MEAN,
    MB_REDUCE_NORM,    /* sqrt of the sum of squared magnitudes */
    MB_REDUCE_POSITIVE /* sum without finite values below 0 */
} mb_reduce_fn;

typedef struct mb_reduce_params {
    int fn;
    int64_t axis; /* 1-based, negative from the end, 0 = all elements */
} mb_reduce_params;

enum { MB_REDUCE_A, MB_REDUCE_RESULT };
enum { MB_REDUCE_PARTIALS };

#define MB_REDUCE_BLOCK 16384

/* What a value adds to the sum of POSITIVE. Infinite values and NaN stay: the sum tells of them. */
MB_BOTH static inline double mb_reduce_positive(double value)
{
    return value < 0 && value >= -DBL_MAX ? 0 : value;
}

typedef struct mb_reduce_cell {
    double re, im;
} mb_reduce_cell;

/* 0-based axis, or -1 for all. The value was checked by infer. */
static inline int mb_reduce_axis(const mb_reduce_params *params, int rank)
{
    if (params->axis == 0)
        return -1;
    return (int)(params->axis > 0 ? params->axis - 1 : rank + params->axis);
}

/* How many elements go into one output. */
static inline int64_t mb_reduce_length(const mb_reduce_params *params, const mb_shape *shape)
{
    int axis = mb_reduce_axis(params, shape->rank);
    int64_t length = 1;
    if (axis >= 0)
        return shape->dims[axis];
    for (int i = 0; i < shape->rank; i++)
        length *= shape->dims[i];
    return length;
}

static inline int64_t mb_reduce_blocks(int64_t length)
{
    return length / MB_REDUCE_BLOCK + (length % MB_REDUCE_BLOCK != 0);
}

#endif
