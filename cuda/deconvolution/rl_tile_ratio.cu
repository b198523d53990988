/*
** rl_tile_ratio on CUDA: image over blurred estimate in place, for views of any strides, with the
** misfit in the same pass.
*/
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_rl_tiles.h"

struct tile_ratio_job {
    mb_rl_view to, from;
    float *blurred;
    float eps;
    double *cells; /* NULL without metrics */
};

template <class T>
__global__ void __launch_bounds__(MB_THREADS) tile_ratio_kernel(const T *image, tile_ratio_job job)
{
    const int64_t rows = job.to.n[0] * job.to.n[1];
    double divergence = 0, blurred = 0;
    MB_ROW_LOOP(row, rows)
    {
        const int64_t z = row / job.to.n[1], y = row - z * job.to.n[1];
        float *line = job.blurred + z * job.to.stride[0] + y * job.to.stride[1];
        const T *from = image + z * job.from.stride[0] + y * job.from.stride[1];
        MB_LANE_LOOP(x, job.to.n[2])
        {
            float b = line[x * job.to.stride[2]], floored = b > job.eps ? b : job.eps;
            float v = (float)from[x * job.from.stride[2]];
            line[x * job.to.stride[2]] = v / floored;
            if (job.cells) {
                divergence += mb_grid_divergence(v, floored);
                blurred += b;
            }
        }
    }
    if (!job.cells)
        return;
    divergence = mb_block_fold(divergence, mb_fold_sum());
    blurred = mb_block_fold(blurred, mb_fold_sum());
    if (threadIdx.x == 0) {
        job.cells[2 * blockIdx.x] = divergence;
        job.cells[2 * blockIdx.x + 1] = blurred;
    }
}

extern "C" mb_status mb_cuda_rl_tile_ratio(const mb_op_call *call)
{
    const mb_rl_tile_ratio_params *p = (const mb_rl_tile_ratio_params *)call->params;
    const mb_array *blurred = call->arrays[MB_RL_TILE_RATIO_BLURRED],
                   *image = call->arrays[MB_RL_TILE_RATIO_IMAGE];
    tile_ratio_job job;
    job.to = mb_rl_view_of(blurred);
    job.from = mb_rl_view_of(image);
    job.blurred = (float *)blurred->data;
    job.eps = (float)p->eps;
    job.cells = (double *)call->slots[0];
    const unsigned blocks = job.cells ? MB_GRID_BLOCKS : mb_row_blocks(job.to.n[0] * job.to.n[1]);
    if (image->dtype == MB_U8)
        tile_ratio_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const uint8_t *)image->data,
                                                                      job);
    else if (image->dtype == MB_U16)
        tile_ratio_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const uint16_t *)image->data,
                                                                      job);
    else
        tile_ratio_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const float *)image->data,
                                                                      job);
    MB_LAUNCHED("tile_ratio_kernel");
    return mb_cuda_grid_fold(call, job.cells, 2, call->arrays[MB_RL_TILE_RATIO_METRIC]);
}
