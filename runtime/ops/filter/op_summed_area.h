/*
** summed_area: what the host and the CUDA kernel share. Arrays: a (in), result (out f64, extents
** + 1), any strides. No scratch. Element (i, j, k) is the sum of a over indices below i, j and k
** (0-based): zero planes first, then running sums along the last axis, then the one before it,
** then the first.
*/
#ifndef MB_OPS_OP_SUMMED_AREA_H
#define MB_OPS_OP_SUMMED_AREA_H

#include "ops/array/padded_grid.h"

typedef struct mb_summed_area_params {
    double scale;
} mb_summed_area_params;

enum { MB_SUMMED_AREA_A, MB_SUMMED_AREA_RESULT };

#endif
