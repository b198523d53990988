/*
** rl_tile_ratio and rl_tile_update: what their host and CUDA kernels share. They are the pointwise
** steps of Richardson-Lucy (rl_ratio, rl_update) on parts of an image: views of any strides, one
** tile at a time.
**
** rl_tile_ratio:  arrays blurred (inout f32), image (in u8, u16, f32), metric (out f64 (2), absent
** without `metrics`). rl_tile_update: arrays estimate (inout f32), correction (in f32), table (in
** f64, extents of the PSF + 1), metric (out f64 (3), likewise). Slot 0 (0 bytes without metrics):
** MB_GRID_BLOCKS cells, mb_rl_ratio_cell and mb_grid_change.
*/
#ifndef MB_OPS_OP_RL_TILES_H
#define MB_OPS_OP_RL_TILES_H

#include "ops/deconvolution/op_rl_ratio.h"
#include "ops/deconvolution/rl_normaliser.h"

typedef struct mb_rl_tile_ratio_params {
    double eps;
    bool metrics;
} mb_rl_tile_ratio_params;

typedef struct mb_rl_tile_update_params {
    mb_rl_normaliser_params normaliser;
    /* position of the tile's first element in the image's coordinates; may be negative */
    mb_vector first;
    double min;
    bool metrics;
} mb_rl_tile_update_params;

enum { MB_RL_TILE_RATIO_BLURRED, MB_RL_TILE_RATIO_IMAGE, MB_RL_TILE_RATIO_METRIC };
enum {
    MB_RL_TILE_UPDATE_ESTIMATE,
    MB_RL_TILE_UPDATE_CORRECTION,
    MB_RL_TILE_UPDATE_TABLE,
    MB_RL_TILE_UPDATE_METRIC
};

/* Extents and strides of a view as three axes. */
typedef struct mb_rl_view {
    int64_t n[3], stride[3];
} mb_rl_view;

static inline mb_rl_view mb_rl_view_of(const mb_array *a)
{
    mb_rl_view view;
    for (int i = 0; i < 3; i++) {
        int own = i - (3 - a->shape.rank);
        view.n[i] = own < 0 ? 1 : a->shape.dims[own];
        view.stride[i] = own < 0 ? 0 : a->strides[own];
    }
    return view;
}

/* The normaliser of a tile of these extents. */
static inline mb_rl_normaliser mb_rl_tile_normaliser(const mb_rl_tile_update_params *p,
                                                     const mb_shape *tile, const mb_array *table)
{
    mb_rl_normaliser n = mb_rl_normaliser_make(&p->normaliser, tile, table, NULL);
    mb_grid_vector(&p->first, 0, n.first);
    return n;
}

#endif
