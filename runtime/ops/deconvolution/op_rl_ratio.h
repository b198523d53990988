/*
** rl_ratio: what the host and the CUDA kernel share. Arrays: blurred (inout f32), image (in u8, u16
** or f32), weights (in f32, may be NULL), metric (out f64 (2), absent without `metrics`); any
** strides. blurred has padded rows, and image and weights stand at the origin of its grid; with
** `tile` all three have one shape. Slot MB_RL_RATIO_PARTIALS (0 bytes without metrics):
** MB_GRID_BLOCKS cells.
*/
#ifndef MB_OPS_OP_RL_RATIO_H
#define MB_OPS_OP_RL_RATIO_H

#include "ops/array/padded_grid.h"

typedef struct mb_rl_ratio_params {
    double eps, background;
    bool tile, metrics;
} mb_rl_ratio_params;

enum { MB_RL_RATIO_BLURRED, MB_RL_RATIO_IMAGE, MB_RL_RATIO_WEIGHTS, MB_RL_RATIO_METRIC };
enum { MB_RL_RATIO_PARTIALS };

typedef struct mb_rl_ratio_cell {
    double divergence, blurred;
} mb_rl_ratio_cell;

#endif
