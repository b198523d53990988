/*
** wiener_filter: what the host and the CUDA kernel share. Arrays: a (inout c64), otf (in c64), of
** one shape: half spectra (..., n/2 + 1) of one to three axes. No scratch. a = a * conj(H) / (|H|^2
** + lambda * r) * scale; r = 1, or with laplacian (sum over axes of 4 sin^2(pi k / n))^2. 0 where
** the denominator is 0.
*/
#ifndef MB_OPS_OP_WIENER_FILTER_H
#define MB_OPS_OP_WIENER_FILTER_H

#include "ops/array/padded_grid.h"

typedef struct mb_wiener_filter_params {
    double lambda, scale;
    bool laplacian;
    int64_t n; /* samples of a row; 0 = the even one */
} mb_wiener_filter_params;

enum { MB_WIENER_FILTER_A, MB_WIENER_FILTER_OTF };

/* Samples of a row of the real grid. */
static inline int64_t mb_wiener_filter_samples(const mb_wiener_filter_params *params, int64_t half)
{
    return params->n > 0 ? params->n : half > 1 ? 2 * (half - 1) : 1;
}

#endif
