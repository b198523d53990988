/*
** extrapolate: what the host and the CUDA kernel share. Arrays: estimate and previous (inout f32,
** dense grid), target (inout f32, padded rows). No scratch. With x = estimate, q = previous:
** previous = x; estimate = target = max(x + alpha (x - q), x / 64, min); the elements of target
** behind the samples stay.
*/
#ifndef MB_OPS_OP_EXTRAPOLATE_H
#define MB_OPS_OP_EXTRAPOLATE_H

#include "core/both.h"
#include "ops/array/padded_grid.h"

typedef struct mb_extrapolate_params {
    double alpha, min;
} mb_extrapolate_params;

enum { MB_EXTRAPOLATE_ESTIMATE, MB_EXTRAPOLATE_PREVIOUS, MB_EXTRAPOLATE_TARGET };

/* The prediction of an element. */
MB_BOTH static inline float mb_extrapolated(float now, float before, float alpha, float least)
{
    const float value = now + alpha * (now - before), part = now * (1.0F / 64);
    const float bounded = value > part ? value : part;
    return bounded > least ? bounded : least;
}

#endif
