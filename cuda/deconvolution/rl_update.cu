/*
** rl_update on CUDA: estimate times correction over normaliser, to both arrays, with sums in the
** same pass. The normaliser by table: eight look-ups in a table of the PSF's size, which the caches
** hold.
*/
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_rl_update.h"

struct update_job {
    mb_rl_normaliser normaliser;
    float *estimate, *correction, *gradient; /* gradient, consensus: NULL without */
    const float *consensus;
    float least;
    double *cells; /* NULL without metrics */
};

__global__ void __launch_bounds__(MB_THREADS) update_kernel(update_job job)
{
    const mb_rl_normaliser &n = job.normaliser;
    const int64_t nx = n.grid[2], pitch = 2 * (nx / 2 + 1), rows = n.grid[0] * n.grid[1];
    double sums[MB_RL_UPDATE_SUMS] = {0, 0, 0, 0, 0};
    MB_ROW_LOOP(row, rows)
    {
        const mb_rl_normaliser_row rule = mb_rl_normaliser_row_of(&n, row);
        float *estimate = job.estimate + row * nx, *correction = job.correction + row * pitch;
        MB_LANE_BATCH_LOOP(first, nx)
        {
            float old[MB_BATCH], next[MB_BATCH];
#pragma unroll
            for (int k = 0; k < MB_BATCH; k++) {
                int64_t x = first + 32 * k;
                old[k] = x < nx ? estimate[x] : 0;
                next[k] = x < nx ? correction[x] : 0;
            }
#pragma unroll
            for (int k = 0; k < MB_BATCH; k++) {
                int64_t x = first + 32 * k;
                if (x >= nx)
                    break;
                float value = old[k] * next[k];
                if (n.table || n.values) {
                    double weight = mb_rl_normaliser_at(&n, &rule, x);
                    value = weight > n.floor ? (float)((double)value / weight) : job.least;
                }
                if (job.consensus && job.consensus[row * pitch + x] < 0)
                    value = old[k];
                value = value > job.least ? value : job.least;
                float change = value - old[k], before = 0;
                estimate[x] = value;
                correction[x] = value;
                if (job.gradient) {
                    before = job.gradient[row * nx + x];
                    job.gradient[row * nx + x] = change;
                }
                if (job.cells) {
                    sums[0] += value;
                    sums[1] += (double)change * change;
                    sums[2] += (double)value * value;
                    sums[3] += (double)change * before;
                    sums[4] += (double)before * before;
                }
            }
        }
    }
    if (!job.cells)
        return;
#pragma unroll
    for (int i = 0; i < MB_RL_UPDATE_SUMS; i++) {
        double sum = mb_block_fold(sums[i], mb_fold_sum());
        if (threadIdx.x == 0)
            job.cells[MB_RL_UPDATE_SUMS * (int64_t)blockIdx.x + i] = sum;
    }
}

extern "C" mb_status mb_cuda_rl_update(const mb_op_call *call)
{
    const mb_rl_update_params *p = (const mb_rl_update_params *)call->params;
    const mb_array *estimate = call->arrays[MB_RL_UPDATE_ESTIMATE];
    const mb_array *consensus = call->arrays[MB_RL_UPDATE_CONSENSUS];
    const mb_array *gradient = call->arrays[MB_RL_UPDATE_GRADIENT];
    update_job job = {};
    job.normaliser =
        mb_rl_normaliser_make(&p->normaliser, &estimate->shape, call->arrays[MB_RL_UPDATE_TABLE],
                              call->arrays[MB_RL_UPDATE_NORMALISER]);
    job.estimate = (float *)estimate->data;
    job.correction = (float *)call->arrays[MB_RL_UPDATE_CORRECTION]->data;
    job.gradient = gradient ? (float *)gradient->data : NULL;
    job.consensus = consensus ? (const float *)consensus->data : NULL;
    job.least = (float)p->min;
    job.cells = (double *)call->slots[MB_RL_UPDATE_PARTIALS];
    unsigned blocks =
        job.cells ? MB_GRID_BLOCKS : mb_row_blocks(job.normaliser.grid[0] * job.normaliser.grid[1]);
    update_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(job);
    MB_LAUNCHED("update_kernel");
    if (!job.cells)
        return MB_STATUS_OK;
    const mb_array *metric = call->arrays[MB_RL_UPDATE_METRIC];
    mb_fold_cells<<<(unsigned)metric->shape.dims[0], MB_THREADS, 0, mb_stream(call)>>>(
        job.cells, MB_GRID_BLOCKS, MB_RL_UPDATE_SUMS, (double *)metric->data);
    MB_LAUNCHED("mb_fold_cells");
    return MB_STATUS_OK;
}
