/*
** rl_update: what the host and the CUDA kernel share. Arrays: estimate (inout f32, dense grid), correction (inout f32,
** padded rows), table (in f64, extents of the PSF + 1; may be NULL), normaliser (in f32, dense grid; may be NULL),
** metric (out f64 (3), absent without `metrics`).
** Slot MB_RL_UPDATE_PARTIALS (0 bytes without metrics): MB_GRID_BLOCKS cells, parts of rows as in rl_ratio.
**
** The normaliser by table: H^T of the window (the image, at the origin of the grid) at p is the sum of the PSF over
** c - p <= j < c - p + N, which is 8 look-ups. Positions beyond the window are also those before it, by wrapping.
*/
#ifndef MB_OPS_OP_RL_UPDATE_H
#define MB_OPS_OP_RL_UPDATE_H

#include "ops/padded_grid.h"

typedef struct mb_rl_update_params {
    mb_vector window, center; /* with table: image extents, whole centre of the PSF */
    double floor, min;
    bool metrics;
} mb_rl_update_params;

enum {
    MB_RL_UPDATE_ESTIMATE,
    MB_RL_UPDATE_CORRECTION,
    MB_RL_UPDATE_TABLE,
    MB_RL_UPDATE_NORMALISER,
    MB_RL_UPDATE_METRIC
};
enum { MB_RL_UPDATE_PARTIALS };

typedef struct mb_rl_update_cell {
    double sum, change, squares;
} mb_rl_update_cell;

/* Range low ... high - 1 of PSF indices that count at position p of an axis: grid P, window N, PSF extent K, centre c. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline void
    mb_rl_update_range(int64_t p, int64_t P, int64_t N, int64_t K, int64_t c, int64_t *low,
                       int64_t *high)
{
    if (p >= N + c)
        p -= P;
    *low = c - p < 0 ? 0 : c - p > K ? K : c - p;
    *high = c - p + N < 0 ? 0 : c - p + N > K ? K : c - p + N;
}

#endif
