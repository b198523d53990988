/*
** rl_tile_update on CUDA: estimate times correction over normaliser for views of any strides, with
** sums in the same pass. The normaliser by table: eight look-ups in a table of the PSF's size,
** which the caches hold.
*/
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_rl_tiles.h"

struct tile_update_job {
    mb_rl_view to, from;
    mb_rl_normaliser normaliser;
    float *estimate;
    const float *correction;
    float lowest;
    double *cells; /* NULL without metrics */
};

__global__ void __launch_bounds__(MB_THREADS) tile_update_kernel(tile_update_job job)
{
    const int64_t rows = job.to.n[0] * job.to.n[1];
    mb_grid_change change = {0, 0, 0};
    MB_ROW_LOOP(row, rows)
    {
        const int64_t z = row / job.to.n[1], y = row - z * job.to.n[1];
        const mb_rl_normaliser_row rule = mb_rl_normaliser_row_of(&job.normaliser, row);
        float *line = job.estimate + z * job.to.stride[0] + y * job.to.stride[1];
        const float *from = job.correction + z * job.from.stride[0] + y * job.from.stride[1];
        MB_LANE_LOOP(x, job.to.n[2])
        {
            const float old = line[x * job.to.stride[2]];
            const double weight = mb_rl_normaliser_at(&job.normaliser, &rule, x);
            float value = old * from[x * job.from.stride[2]];
            value = weight > job.normaliser.floor ? (float)((double)value / weight) : job.lowest;
            value = value > job.lowest ? value : job.lowest;
            line[x * job.to.stride[2]] = value;
            if (job.cells)
                mb_grid_change_add(&change, old, value);
        }
    }
    if (job.cells)
        mb_block_change(&change, job.cells);
}

extern "C" mb_status mb_cuda_rl_tile_update(const mb_op_call *call)
{
    const mb_rl_tile_update_params *p = (const mb_rl_tile_update_params *)call->params;
    const mb_array *estimate = call->arrays[MB_RL_TILE_UPDATE_ESTIMATE],
                   *correction = call->arrays[MB_RL_TILE_UPDATE_CORRECTION];
    tile_update_job job;
    job.to = mb_rl_view_of(estimate);
    job.from = mb_rl_view_of(correction);
    job.normaliser =
        mb_rl_tile_normaliser(p, &estimate->shape, call->arrays[MB_RL_TILE_UPDATE_TABLE]);
    job.estimate = (float *)estimate->data;
    job.correction = (const float *)correction->data;
    job.lowest = (float)p->min;
    job.cells = (double *)call->slots[0];
    const unsigned blocks = job.cells ? MB_GRID_BLOCKS : mb_row_blocks(job.to.n[0] * job.to.n[1]);
    tile_update_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(job);
    MB_LAUNCHED("tile_update_kernel");
    return mb_cuda_grid_fold(call, job.cells, 3, call->arrays[MB_RL_TILE_UPDATE_METRIC]);
}
