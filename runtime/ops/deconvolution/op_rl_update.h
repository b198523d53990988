/*
** rl_update: what the host and the CUDA kernel share. Arrays: estimate (inout f32), correction
** (inout f32, padded rows), table and normalizer (rl_normalizer.h; may be NULL), consensus (in f32,
** like correction; may be NULL), metric (out f64 (3), with gradient (5), absent without `metrics`),
** gradient (inout f32, like estimate; may be NULL); any strides. With `first` the arrays are a tile
** of one shape, and correction is not written. Slot MB_RL_UPDATE_PARTIALS (0 bytes without
** metrics): MB_GRID_BLOCKS cells of as many doubles as metric has.
*/
#ifndef MB_OPS_OP_RL_UPDATE_H
#define MB_OPS_OP_RL_UPDATE_H

#include "ops/deconvolution/rl_normalizer.h"

typedef struct mb_rl_update_params {
    mb_rl_normalizer_params normalizer;
    mb_vector first; /* of a tile: where it begins in the image; may be negative */
    double min;
    bool metrics;
} mb_rl_update_params;

enum {
    MB_RL_UPDATE_ESTIMATE,
    MB_RL_UPDATE_CORRECTION,
    MB_RL_UPDATE_TABLE,
    MB_RL_UPDATE_NORMALIZER,
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
#define MB_RL_UPDATE_SUMS 5 /* doubles of a cell; without gradient the first three are used */

/* The argument of rl_update and rl_step. */
#define MB_RL_GRADIENT_ARG                                                                         \
    MB_ARRAY_INOUT_OPTION("gradient", MB_BIT(MB_F32), 1, 3,                                        \
                          "like estimate: the change of the previous call; becomes the change of " \
                          "this one")

static inline int mb_rl_update_sums(bool gradient)
{
    return gradient ? MB_RL_UPDATE_SUMS : 3;
}

static inline mb_rl_normalizer mb_rl_update_normalizer(const mb_op_call *call)
{
    const mb_rl_update_params *p = (const mb_rl_update_params *)call->params;
    mb_rl_normalizer n = mb_rl_normalizer_make(
        &p->normalizer, &call->arrays[MB_RL_UPDATE_ESTIMATE]->shape,
        call->arrays[MB_RL_UPDATE_TABLE], call->arrays[MB_RL_UPDATE_NORMALIZER]);
    mb_grid_vector(&p->first, 0, n.first);
    return n;
}

/* Whether kernels may take the last axis of every array as dense, and write the correction. */
static inline bool mb_rl_update_dense(const mb_op_call *call)
{
    const mb_rl_update_params *p = (const mb_rl_update_params *)call->params;
    return p->first.count == 0 && mb_grid_dense(call->arrays[MB_RL_UPDATE_ESTIMATE]) &&
           mb_grid_dense(call->arrays[MB_RL_UPDATE_CORRECTION]) &&
           mb_grid_dense(call->arrays[MB_RL_UPDATE_CONSENSUS]) &&
           mb_grid_dense(call->arrays[MB_RL_UPDATE_GRADIENT]);
}

/* Adds a new element. The sums of tiles add up, so they take the change in double; elsewhere it is
** the change that `gradient` keeps. */
MB_BOTH static inline void mb_rl_update_add(mb_rl_update_cell *cell, float old, float value,
                                            float before, bool tile)
{
    const float step = value - old;
    const double change = tile ? (double)value - (double)old : (double)step;
    cell->sum += (double)value;
    cell->change += change * change;
    cell->squares += (double)value * (double)value;
    cell->product += (double)step * (double)before;
    cell->before += (double)before * (double)before;
}

#endif
