/*
** rl_consensus: what the host and the CUDA kernel share. Arrays: first, second (inout f32, padded
** rows), table and normalizer (rl_normalizer.h; may be NULL). No scratch.
*/
#ifndef MB_OPS_OP_RL_CONSENSUS_H
#define MB_OPS_OP_RL_CONSENSUS_H

#include "ops/deconvolution/rl_normalizer.h"

typedef struct mb_rl_consensus_params {
    mb_rl_normalizer_params normalizer;
    int64_t n; /* samples of a row */
} mb_rl_consensus_params;

enum {
    MB_RL_CONSENSUS_FIRST,
    MB_RL_CONSENSUS_SECOND,
    MB_RL_CONSENSUS_TABLE,
    MB_RL_CONSENSUS_NORMALIZER
};

/* (a / weight - 1)(b / weight - 1); nothing was measured where the weight is small. */
MB_BOTH static inline float mb_rl_consensus_product(float a, float b, double weight, double floor)
{
    if (!(weight > floor))
        return 0;
    return (float)(((double)a / weight - 1) * ((double)b / weight - 1));
}

/* The grid whose padded rows these are. */
static inline mb_shape mb_rl_consensus_grid(const mb_shape *padded, int64_t n)
{
    mb_shape grid = *padded;
    grid.dims[grid.rank - 1] = n;
    return grid;
}

#endif
