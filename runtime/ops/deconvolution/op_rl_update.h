/*
** rl_update: what the host and the CUDA kernel share. Arrays: estimate (inout f32, dense grid),
** correction (inout f32, padded rows), table and normaliser (rl_normaliser.h; may be NULL),
** consensus (in f32, padded rows; may be NULL), metric (out f64 (3), with gradient (5), absent
** without `metrics`), gradient (inout f32, dense grid; may be NULL). Slot MB_RL_UPDATE_PARTIALS (0
** bytes without metrics): MB_GRID_BLOCKS cells.
*/
#ifndef MB_OPS_OP_RL_UPDATE_H
#define MB_OPS_OP_RL_UPDATE_H

#include "ops/deconvolution/rl_normaliser.h"

typedef struct mb_rl_update_params {
    mb_rl_normaliser_params normaliser;
    double min;
    bool metrics;
} mb_rl_update_params;

enum {
    MB_RL_UPDATE_ESTIMATE,
    MB_RL_UPDATE_CORRECTION,
    MB_RL_UPDATE_TABLE,
    MB_RL_UPDATE_NORMALISER,
    MB_RL_UPDATE_CONSENSUS,
    MB_RL_UPDATE_METRIC,
    MB_RL_UPDATE_GRADIENT
};
enum { MB_RL_UPDATE_PARTIALS };

/* Sums of the new estimate, squared change, squared estimate; of change times the gradient before,
** and that squared. */
typedef struct mb_rl_update_cell {
    double sum, change, squares, product, before;
} mb_rl_update_cell;
#define MB_RL_UPDATE_SUMS 5 /* doubles of a cell */

#endif
