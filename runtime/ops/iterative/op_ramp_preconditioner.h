/*
** ramp_preconditioner: what the host and the CUDA kernel share. Array: result (out), a spectrum as
** normal_kernel makes it. No scratch.
*/
#ifndef MB_OPS_OP_RAMP_PRECONDITIONER_H
#define MB_OPS_OP_RAMP_PRECONDITIONER_H

#include "ops/iterative/normal_grid.h"

typedef struct mb_ramp_preconditioner_params {
    mb_vector size, padded; /* as of normal_kernel */
    double floor;
} mb_ramp_preconditioner_params;

enum { MB_RAMP_PRECONDITIONER_RESULT };

/* Frequency k of an axis of n points, in cycles per pixel; k and n - k are of one magnitude. */
MB_BOTH static inline double mb_ramp_preconditioner_frequency(int64_t k, int64_t n)
{
    return (double)(2 * k > n ? n - k : k) / (double)n;
}

MB_BOTH static inline float mb_ramp_preconditioner_at(double fx, double fy, double floor)
{
    return (float)sqrt(fx * fx + fy * fy + floor * floor);
}

#endif
