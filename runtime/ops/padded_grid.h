/*
** Grids of in-place real transforms. A grid of extents P (one to three axes) stands in memory as rows of 2 * (Px/2 + 1)
** floats, of which Px are samples and the rest is room for the spectrum: "padded rows". The operators of convolution
** and deconvolution treat every rank as three axes, absent leading ones having extent 1.
*/
#ifndef MB_OPS_PADDED_GRID_H
#define MB_OPS_PADDED_GRID_H

#include "ops/op.h"

/* Sums of the pointwise steps are made in this many parts, in a fixed order: the same bits for any number of threads. */
#define MB_GRID_BLOCKS 1024

/* Floats of a padded row of n samples. */
static inline int64_t mb_grid_pitch(int64_t n)
{
    return 2 * (n / 2 + 1);
}

/* Extents as three axes. */
static inline void mb_grid_dims(const mb_shape *shape, int64_t dims[3])
{
    for (int i = 0; i < 3; i++) {
        int own = i - (3 - shape->rank);
        dims[i] = own < 0 ? 1 : shape->dims[own];
    }
}

/* Whole numbers of a vector as three axes, `missing` for absent leading ones. */
static inline void mb_grid_vector(const mb_vector *vector, int64_t missing, int64_t values[3])
{
    for (int i = 0; i < 3; i++) {
        int64_t own = i - (3 - vector->count);
        values[i] = own < 0 ? missing : (int64_t)vector->values[own];
    }
}

/* value modulo n, 0 ... n - 1. */
static inline int64_t mb_grid_wrap(int64_t value, int64_t n)
{
    int64_t rest = value % n;
    return rest < 0 ? rest + n : rest;
}

#endif
