/*
** maximum_projection: what the host and the CUDA kernel share. Arrays: a (in), result (out: a
** without the axis, same dtype), any strides. No scratch.
*/
#ifndef MB_OPS_OP_MAXIMUM_PROJECTION_H
#define MB_OPS_OP_MAXIMUM_PROJECTION_H

#include "ops/op.h"

typedef struct mb_maximum_projection_params {
    int64_t axis; /* 1-based, negative from the end */
} mb_maximum_projection_params;

enum { MB_MAXIMUM_PROJECTION_A, MB_MAXIMUM_PROJECTION_RESULT };

/* 0-based axis; infer has checked it. */
static inline int mb_maximum_projection_axis(const mb_maximum_projection_params *params, int rank)
{
    return (int)(params->axis > 0 ? params->axis - 1 : rank + params->axis);
}

#endif
