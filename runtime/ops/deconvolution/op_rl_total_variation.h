/*
** rl_total_variation: what the host and the CUDA kernel share. Arrays: estimate (in f32, dense
** grid), correction (inout f32, padded rows). No scratch. correction /= max(1 - lambda div(grad x /
** |grad x|), 0.1): mb_rl_tv_divergence.
*/
#ifndef MB_OPS_OP_RL_TOTAL_VARIATION_H
#define MB_OPS_OP_RL_TOTAL_VARIATION_H

#include "ops/array/padded_grid.h"
#include <math.h>

typedef struct mb_rl_total_variation_params {
    double lambda, epsilon;
    mb_vector spacing; /* one per axis, or one, or absent (1) */
} mb_rl_total_variation_params;

enum { MB_RL_TOTAL_VARIATION_ESTIMATE, MB_RL_TOTAL_VARIATION_CORRECTION };

/* The smallest divisor. */
#define MB_RL_TV_LEAST 0.1f

/* Inverse spacings along three axes. */
static inline void mb_rl_tv_inverse(const mb_rl_total_variation_params *params, int rank,
                                    float inverse[3])
{
    for (int i = 0; i < 3; i++) {
        int own = i - (3 - rank);
        double spacing = own < 0 || !params->spacing.count
                             ? 1
                             : params->spacing.values[params->spacing.count == 1 ? 0 : own];
        inverse[i] = (float)(1 / spacing);
    }
}

#ifdef __CUDACC__
#define MB_RL_TV_BOTH __host__ __device__
#else
#define MB_RL_TV_BOTH
#endif

/* Forward difference along `axis` at p, over the length of the whole forward gradient there; 0
** beyond the last element. */
MB_RL_TV_BOTH static inline float mb_rl_tv_unit(const float *x, const int64_t n[3],
                                                const float inverse[3], float epsilon, int64_t pz,
                                                int64_t py, int64_t px, int axis)
{
    const float *at = x + (pz * n[1] + py) * n[2] + px;
    float here = at[0];
    float dz = pz + 1 < n[0] ? (at[n[1] * n[2]] - here) * inverse[0] : 0;
    float dy = py + 1 < n[1] ? (at[n[2]] - here) * inverse[1] : 0;
    float dx = px + 1 < n[2] ? (at[1] - here) * inverse[2] : 0;
    float length = sqrtf(dz * dz + dy * dy + dx * dx + epsilon * epsilon);
    return (axis == 0 ? dz : axis == 1 ? dy : dx) / length;
}

/* div(grad x / |grad x|): backward differences of unit vectors, which are 0 outside. */
MB_RL_TV_BOTH static inline float mb_rl_tv_divergence(const float *x, const int64_t n[3],
                                                      const float inverse[3], float epsilon,
                                                      int64_t z, int64_t y, int64_t p)
{
    float sum = 0;
    for (int axis = 0; axis < 3; axis++) {
        int64_t bz = z - (axis == 0), by = y - (axis == 1), bx = p - (axis == 2);
        float unit = mb_rl_tv_unit(x, n, inverse, epsilon, z, y, p, axis);
        if (bz >= 0 && by >= 0 && bx >= 0)
            unit -= mb_rl_tv_unit(x, n, inverse, epsilon, bz, by, bx, axis);
        sum += unit * inverse[axis];
    }
    return sum;
}

#endif
