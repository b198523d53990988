/*
** poisson: what the host and the CUDA kernel share. Arrays: mean (in), result (out, may be the
** same).
*/
#ifndef MB_OPS_OP_POISSON_H
#define MB_OPS_OP_POISSON_H

#include "core/both.h"
#include "ops/op.h"
#include <math.h>

typedef struct mb_poisson_params {
    int64_t seed, first;
} mb_poisson_params;

enum { MB_POISSON_MEAN, MB_POISSON_RESULT };

/* splitmix64's finaliser over a counter. */
MB_BOTH static inline uint64_t mb_poisson_mix(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform in (0, 1]. */
MB_BOTH static inline double mb_poisson_uniform(uint64_t *state)
{
    *state += UINT64_C(0x632be59bd9b4e019);
    return ((double)(mb_poisson_mix(*state) >> 11) + 1) * 0x1p-53;
}

MB_BOTH static inline double mb_poisson_small(double mean, uint64_t *state)
{
    double limit = exp(-mean), product = mb_poisson_uniform(state), count = 0;
    while (product > limit) {
        product *= mb_poisson_uniform(state);
        count++;
    }
    return count;
}

MB_BOTH static inline double mb_poisson_log_factorial(double k)
{
#ifdef __CUDA_ARCH__
    return lgamma(k + 1);
#else
    int sign;
    return lgamma_r(k + 1, &sign);
#endif
}

MB_BOTH static inline double mb_poisson_large(double mean, uint64_t *state)
{
    double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
    double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2),
           log_mean = log(mean);
    for (;;) {
        double u = mb_poisson_uniform(state) - 0.5, v = mb_poisson_uniform(state),
               us = 0.5 - fabs(u);
        double k = floor((2 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= v_r)
            return k;
        if (k < 0 || (us < 0.013 && v > us))
            continue;
        if (log(v) + log(inverse_alpha) - log(a / (us * us) + b) <=
            -mean + k * log_mean - mb_poisson_log_factorial(k))
            return k;
    }
}

/* The count of element `index` of the whole data set; key = mb_poisson_mix(seed). */
MB_BOTH static inline float mb_poisson_count(float mean, uint64_t key, int64_t index)
{
    uint64_t state = mb_poisson_mix(key ^ mb_poisson_mix((uint64_t)index));
    double m = (double)mean;
    if (!(m > 0) || !isfinite(m))
        return 0.0f;
    return (float)(m < 10 ? mb_poisson_small(m, &state) : mb_poisson_large(m, &state));
}

#endif
