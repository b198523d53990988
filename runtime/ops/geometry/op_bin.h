/*
** bin: what the host and the CUDA kernel share. Arrays: a (in), result (out).
*/
#ifndef MB_OPS_OP_BIN_H
#define MB_OPS_OP_BIN_H

#include "core/both.h"
#include "ops/op.h"

typedef struct mb_bin_params {
    mb_vector sizes; /* elements of a along each axis that become one */
    int rest;        /* what becomes of elements that do not fill one */
} mb_bin_params;

enum { MB_BIN_DROP, MB_BIN_KEEP };
enum { MB_BIN_A, MB_BIN_RESULT };

/* Three axes, the missing ones in front with one element. */
typedef struct mb_bin_axes {
    int64_t size[3], input[3], output[3], from[3], to[3]; /* from, to: strides */
} mb_bin_axes;

static inline mb_bin_axes mb_bin_axes_of(const mb_bin_params *p, const mb_array *a,
                                         const mb_array *result)
{
    mb_bin_axes x;
    for (int i = 0; i < 3; i++) {
        const int axis = i - (3 - a->shape.rank);
        const bool own = axis >= 0;
        x.size[i] = own ? (int64_t)p->sizes.values[axis] : 1;
        x.input[i] = own ? a->shape.dims[axis] : 1;
        x.output[i] = own ? result->shape.dims[axis] : 1;
        x.from[i] = own ? a->strides[axis] : 0;
        x.to[i] = own ? result->strides[axis] : 0;
    }
    return x;
}

/* Elements of bin `i` along an axis: fewer in the last one. */
static MB_BOTH inline int64_t mb_bin_count(const mb_bin_axes *x, int axis, int64_t i)
{
    const int64_t left = x->input[axis] - i * x->size[axis];
    return left < x->size[axis] ? left : x->size[axis];
}

#endif
