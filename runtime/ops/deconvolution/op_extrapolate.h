/*
** extrapolate: what the host and the CUDA kernel share. Arrays: estimate and previous (inout f32,
** dense grid), target (inout f32, padded rows). No scratch. With x = estimate, q = previous, s =
** alpha (q - x): previous = x; estimate = target = max(p, min), p = x - s where x has grown, and
** x x / (x + s) where it has fallen; the elements of target behind the samples stay.
**
** Both have the same slope where x = q. x - s would go through 0 where an element falls fast: it is
** then a small difference of large numbers, and its rounding errors grow with each step that
** multiplies it. x x / (x + s) stays positive, and its relative error is at most three times that of
** x and q.
*/
#ifndef MB_OPS_OP_EXTRAPOLATE_H
#define MB_OPS_OP_EXTRAPOLATE_H

#include "core/both.h"
#include "ops/array/padded_grid.h"

typedef struct mb_extrapolate_params {
    double alpha, min;
} mb_extrapolate_params;

enum { MB_EXTRAPOLATE_ESTIMATE, MB_EXTRAPOLATE_PREVIOUS, MB_EXTRAPOLATE_TARGET };

/* The prediction of an element; what is not positive becomes `least`. */
MB_BOTH static inline float mb_extrapolated(float now, float before, float alpha, float least)
{
    const float step = alpha * (before - now);
    const float up = now - (step < 0 ? step : 0), down = now + (step > 0 ? step : 0);
    const float value = now > 0 ? up * (now / down) : 0;
    return value > least ? value : least;
}

#endif
