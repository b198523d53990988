/*
** roll: what the host and the CUDA kernel share. Arrays: a (in), result (out), any strides. No
** scratch.
*/
#ifndef MB_OPS_OP_ROLL_H
#define MB_OPS_OP_ROLL_H

#include "ops/op.h"

typedef struct mb_roll_params {
    mb_vector shift; /* one number per axis, or one for all */
} mb_roll_params;

enum { MB_ROLL_A, MB_ROLL_RESULT };

/* Where along an axis of n the result's first element comes from: 0 ... n - 1. */
static inline int64_t mb_roll_origin(const mb_roll_params *p, int axis, int64_t n)
{
    int64_t shift = (int64_t)p->shift.values[p->shift.count == 1 ? 0 : axis], rest;
    if (n < 1)
        return 0;
    rest = -shift % n;
    return rest < 0 ? rest + n : rest;
}

#endif
