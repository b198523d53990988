/*
** crop: what the host and the CUDA kernel share. Arrays: a (in), result (out). No scratch.
** The result is the strided copy of a starting at a->data + sum(before[i] * a->strides[i]) elements.
*/
#ifndef MB_OPS_OP_CROP_H
#define MB_OPS_OP_CROP_H

#include "ops/op.h"

typedef struct mb_crop_params {
    mb_vector before, after; /* one number per axis, or one for all, or absent (0) */
} mb_crop_params;

enum { MB_CROP_A, MB_CROP_RESULT };

/* The amount for one axis. */
static inline int64_t mb_crop_amount(const mb_vector *amounts, int axis)
{
    if (amounts->count == 0)
        return 0;
    return (int64_t)amounts->values[amounts->count == 1 ? 0 : axis];
}

#endif
