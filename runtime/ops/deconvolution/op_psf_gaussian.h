/*
** psf_gaussian: what the host and the CUDA kernel share. Arrays: result (out f32), dense. Slot
** MB_PSF_GAUSSIAN_TABLES: the three axes' factors one after another (doubles, 1 for an absent
** axis); each sums to 1 with `normalize`.
*/
#ifndef MB_OPS_OP_PSF_GAUSSIAN_H
#define MB_OPS_OP_PSF_GAUSSIAN_H

#include "ops/array/padded_grid.h"
#include <math.h>

typedef struct mb_psf_gaussian_params {
    mb_vector size, sigma, center;
    bool normalize;
} mb_psf_gaussian_params;

enum { MB_PSF_GAUSSIAN_RESULT };
enum { MB_PSF_GAUSSIAN_TABLES };

/* Factors of one of three axes: n[axis] values. */
static inline void mb_psf_gaussian_factors(const mb_psf_gaussian_params *p, int axis, int64_t n,
                                           double *values)
{
    int64_t own = axis - (3 - p->size.count);
    double sum = 0;
    if (own < 0) {
        values[0] = 1;
        return;
    }
    double sigma = p->sigma.values[p->sigma.count == 1 ? 0 : own];
    int64_t middle = (n - 1) / 2;
    double center = p->center.count ? p->center.values[own] : (double)middle;
    for (int64_t i = 0; i < n; i++) {
        double u = ((double)i - center) / sigma;
        values[i] = exp(-0.5 * u * u);
        sum += values[i];
    }
    for (int64_t i = 0; p->normalize && sum > 0 && i < n; i++)
        values[i] /= sum;
}

#endif
