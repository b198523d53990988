/*
** residual: what the host and the CUDA kernel share. Arrays: blurred (inout f32, padded rows),
** image (in), weights (in f32, may be NULL), metric (out f64 (1), absent without `metrics`). image
** and weights stand at the origin of the grid. Slot MB_RESIDUAL_PARTIALS (0 bytes without metrics):
** MB_GRID_BLOCKS doubles.
*/
#ifndef MB_OPS_OP_RESIDUAL_H
#define MB_OPS_OP_RESIDUAL_H

#include "ops/array/padded_grid.h"

typedef struct mb_residual_params {
    bool metrics;
} mb_residual_params;

enum { MB_RESIDUAL_BLURRED, MB_RESIDUAL_IMAGE, MB_RESIDUAL_WEIGHTS, MB_RESIDUAL_METRIC };
enum { MB_RESIDUAL_PARTIALS };

#endif
