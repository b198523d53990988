/*
** rl_update on CUDA: estimate times correction over normalizer, into both arrays, with sums in the
** same pass. The normalizer takes eight look-ups in a table of the PSF's size, which stays in the
** caches.
*/
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_rl_update.h"

struct update_job {
    mb_rl_normalizer normalizer;
    mb_grid_view estimate, correction, consensus, gradient; /* the last two: data NULL if absent */
    float least;
    bool tile;     /* correction is not written */
    double *cells; /* NULL without metrics */
    int sums;      /* number per cell */
};

/* DENSE: no tile, and the last axis of every array is dense. */
template <bool DENSE>
__global__ void __launch_bounds__(MB_THREADS, DENSE ? 3 : 4) update_kernel(update_job job)
{
    const mb_rl_normalizer &n = job.normalizer;
    const int64_t nx = n.grid[2], rows = n.grid[0] * n.grid[1];
    const int64_t e = DENSE ? 1 : job.estimate.step[2], c = DENSE ? 1 : job.correction.step[2],
                  s = DENSE ? 1 : job.consensus.step[2], g = DENSE ? 1 : job.gradient.step[2];
    const bool tile = !DENSE && job.tile;
    constexpr int BATCH = DENSE ? MB_BATCH : 1;
    mb_rl_update_cell cell = {0, 0, 0, 0, 0};
    MB_ROW_LOOP(row, rows)
    {
        const mb_rl_normalizer_row rule = mb_rl_normalizer_row_of(&n, row);
        const int64_t z = row / n.grid[1], y = row - z * n.grid[1];
        float *estimate = (float *)job.estimate.data + mb_grid_row(&job.estimate, z, y);
        float *correction = (float *)job.correction.data + mb_grid_row(&job.correction, z, y);
        const int64_t agreed = mb_grid_row(&job.consensus, z, y);
        const int64_t gradient = mb_grid_row(&job.gradient, z, y);
        MB_LANE_BATCH_LOOP(first, nx, BATCH)
        {
            float old[BATCH], next[BATCH];
#pragma unroll
            for (int k = 0; k < BATCH; k++) {
                int64_t x = first + 32 * k;
                old[k] = x < nx ? estimate[x * e] : 0;
                next[k] = x < nx ? correction[x * c] : 0;
            }
#pragma unroll
            for (int k = 0; k < BATCH; k++) {
                int64_t x = first + 32 * k;
                if (x >= nx)
                    break;
                float value = old[k] * next[k], before = 0;
                if (n.table || n.values) {
                    double weight = mb_rl_normalizer_at(&n, &rule, x);
                    value = weight > n.floor ? (float)((double)value / weight) : job.least;
                }
                if (job.consensus.data && ((float *)job.consensus.data)[agreed + x * s] < 0)
                    value = old[k];
                value = value > job.least ? value : job.least;
                estimate[x * e] = value;
                if (!tile)
                    correction[x * c] = value;
                if (job.gradient.data) {
                    float *change = (float *)job.gradient.data + gradient + x * g;
                    before = *change;
                    *change = value - old[k];
                }
                if (job.cells)
                    mb_rl_update_add(&cell, old[k], value, before, tile);
            }
        }
    }
    if (!job.cells)
        return;
    const double parts[MB_RL_UPDATE_SUMS] = {cell.sum, cell.change, cell.squares, cell.product,
                                             cell.before};
#pragma unroll
    for (int i = 0; i < MB_RL_UPDATE_SUMS; i++) {
        if (i >= job.sums)
            return;
        double sum = mb_block_fold(parts[i], mb_fold_sum());
        if (threadIdx.x == 0)
            job.cells[job.sums * (int64_t)blockIdx.x + i] = sum;
    }
}

extern "C" mb_status mb_cuda_rl_update(const mb_op_call *call)
{
    const mb_rl_update_params *p = (const mb_rl_update_params *)call->params;
    update_job job;
    job.normalizer = mb_rl_update_normalizer(call);
    job.estimate = mb_grid_view_of(call->arrays[MB_RL_UPDATE_ESTIMATE]);
    job.correction = mb_grid_view_of(call->arrays[MB_RL_UPDATE_CORRECTION]);
    job.consensus = mb_grid_view_of(call->arrays[MB_RL_UPDATE_CONSENSUS]);
    job.gradient = mb_grid_view_of(call->arrays[MB_RL_UPDATE_GRADIENT]);
    job.least = (float)p->min;
    job.tile = p->first.count > 0;
    job.cells = (double *)call->slots[MB_RL_UPDATE_PARTIALS];
    job.sums = mb_rl_update_sums(job.gradient.data != NULL);
    const unsigned blocks =
        job.cells ? MB_GRID_BLOCKS : mb_row_blocks(job.estimate.n[0] * job.estimate.n[1]);
    if (mb_rl_update_dense(call))
        update_kernel<true><<<blocks, MB_THREADS, 0, mb_stream(call)>>>(job);
    else
        update_kernel<false><<<blocks, MB_THREADS, 0, mb_stream(call)>>>(job);
    MB_LAUNCHED("update_kernel");
    return mb_cuda_grid_fold(call, job.cells, job.sums, call->arrays[MB_RL_UPDATE_METRIC]);
}
