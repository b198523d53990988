/*
** rl_split_ratio: what the host and the CUDA kernel share. Arrays: blurred (inout f32, padded
** rows), second (inout f32, like blurred), image (in u8, u16 or f32), weights (in f32, may be
** NULL), metric (out f64 (2)). image and weights stand at the origin of the grid. Slot
** MB_RL_SPLIT_RATIO_PARTIALS: MB_GRID_BLOCKS cells.
**
** The halves of the image are never stored: mb_rl_split_half draws them from counter-based random
** numbers, which depend on the seed and the voxel's place in the image alone.
*/
#ifndef MB_OPS_OP_RL_SPLIT_RATIO_H
#define MB_OPS_OP_RL_SPLIT_RATIO_H

#include "ops/phantom/op_poisson.h"
#include "ops/array/padded_grid.h"

typedef struct mb_rl_split_ratio_params {
    int64_t seed;
    double eps, background;
} mb_rl_split_ratio_params;

enum {
    MB_RL_SPLIT_RATIO_BLURRED,
    MB_RL_SPLIT_RATIO_SECOND,
    MB_RL_SPLIT_RATIO_IMAGE,
    MB_RL_SPLIT_RATIO_WEIGHTS,
    MB_RL_SPLIT_RATIO_METRIC
};
enum { MB_RL_SPLIT_RATIO_PARTIALS };

typedef struct mb_rl_split_ratio_cell {
    double first, second;
} mb_rl_split_ratio_cell;

/* Photons of `counts` that fall to the first half: binomial with p = 1/2, exactly, as the ones
** among so many random bits; above 2^16 photons its normal limit. A fraction of a count is shared.
** key = mb_poisson_mix(seed). */
#define MB_RL_SPLIT_EXACT 65536.0
MB_BOTH static inline double mb_rl_split_half(double counts, uint64_t key, int64_t index)
{
    double whole = floor(counts), half = 0;
    uint64_t state = mb_poisson_mix(key ^ mb_poisson_mix((uint64_t)index));
    if (!(counts >= 1) || !isfinite(counts))
        return counts / 2;
    if (whole > MB_RL_SPLIT_EXACT) {
        double radius = sqrt(-2 * log(mb_poisson_uniform(&state)));
        double turn = 6.283185307179586 * mb_poisson_uniform(&state);
        half = floor(whole / 2 + sqrt(whole) / 2 * radius * cos(turn) + 0.5);
    } else {
        for (int64_t left = (int64_t)whole; left > 0; left -= 64) {
            state += UINT64_C(0x632be59bd9b4e019);
            uint64_t bits = mb_poisson_mix(state) >> (left >= 64 ? 0 : 64 - left);
#ifdef __CUDA_ARCH__
            half += __popcll(bits);
#else
            half += __builtin_popcountll(bits);
#endif
        }
    }
    return half + (counts - whole) / 2;
}

#endif
