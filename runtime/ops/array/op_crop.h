/*
** crop: what the host and the CUDA kernel share. Arrays: a (in), result (out). No scratch.
** The result is the strided copy of a starting at a->data + sum(mb_crop_front(i) * a->strides[i])
** elements.
*/
#ifndef MB_OPS_OP_CROP_H
#define MB_OPS_OP_CROP_H

#include "ops/array/margins.h"

typedef struct mb_crop_params {
    mb_margins margins;
} mb_crop_params;

enum { MB_CROP_A, MB_CROP_RESULT };

/* Elements that an axis loses in front; the extents of a and of the result. */
static inline int64_t mb_crop_front(const mb_crop_params *p, int axis, const mb_shape *a,
                                    const mb_shape *result)
{
    return mb_margin_front(&p->margins, axis, result->dims[axis], a->dims[axis]);
}

#endif
