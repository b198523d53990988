/*
** binary: what the host and the CUDA kernel share. Arrays: a (in), b (in, may be NULL: then
** `scalar`), result (out). No scratch. a and b broadcast against each other: walk the result's
** shape with mb_binary_strides, where a stretched or missing axis has stride 0. The result may be
** the same array as a or b. Integer arithmetic wraps in u8 and u16 and in i32 (two's complement);
** mb_binary_scalar_* say how a scalar is cast.
*/
#ifndef MB_OPS_OP_BINARY_H
#define MB_OPS_OP_BINARY_H

#include "ops/op.h"

typedef enum mb_binary_fn {
    MB_BINARY_ADD,
    MB_BINARY_SUB,
    MB_BINARY_MUL,
    MB_BINARY_DIV, /* real and complex only */
    MB_BINARY_MIN, /* ints and reals; NaN wins */
    MB_BINARY_MAX,
    MB_BINARY_POW /* real only */
} mb_binary_fn;

typedef struct mb_binary_params {
    int fn;
    double scalar; /* NAN when absent; used when b is absent, cast to the dtype of a */
    bool reverse;  /* fn(b, a) instead of fn(a, b) */
} mb_binary_params;

enum { MB_BINARY_A, MB_BINARY_B, MB_BINARY_RESULT };

/* Strides of one operand along the axes of the result: 0 where it is stretched. */
static inline void mb_binary_strides(const mb_array *operand, const mb_shape *result,
                                     int64_t *strides)
{
    for (int axis = 0; axis < result->rank; axis++) {
        int own = axis - (result->rank - operand->shape.rank);
        strides[axis] = own < 0 || operand->shape.dims[own] == 1 ? 0 : operand->strides[own];
    }
}

#endif
