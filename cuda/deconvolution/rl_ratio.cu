/*
** rl_ratio on CUDA: image over blurred estimate in place, 0 outside the image, with the misfit in
** the same pass.
*/
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_rl_ratio.h"

struct ratio_job {
    mb_grid3 grid, image; /* grid with padded rows */
    float *blurred;
    const float *weights;
    float eps;
    double *cells; /* NULL without metrics */
};

template <class T>
__global__ void __launch_bounds__(MB_THREADS) ratio_kernel(const T *image, ratio_job job)
{
    const int64_t pitch = job.grid.v[2], nx = job.image.v[2], rows = job.grid.v[0] * job.grid.v[1];
    double divergence = 0, blurred = 0;
    MB_ROW_LOOP(row, rows)
    {
        int64_t z = row / job.grid.v[1], y = row - z * job.grid.v[1];
        bool outside = z >= job.image.v[0] || y >= job.image.v[1];
        int64_t at = (z * job.image.v[1] + y) * nx;
        float *line = job.blurred + row * pitch;
        MB_LANE_BATCH_LOOP(first, pitch)
        {
            float b[MB_BATCH], v[MB_BATCH], w[MB_BATCH];
#pragma unroll
            for (int k = 0; k < MB_BATCH; k++) {
                int64_t x = first + 32 * k;
                bool inside = !outside && x < nx;
                b[k] = inside ? line[x] : 0;
                v[k] = inside ? (float)image[at + x] : 0;
                w[k] = inside && job.weights ? job.weights[at + x] : 1.0f;
            }
#pragma unroll
            for (int k = 0; k < MB_BATCH; k++) {
                int64_t x = first + 32 * k;
                float floored = b[k] > job.eps ? b[k] : job.eps;
                if (x < pitch)
                    line[x] = v[k] / floored * w[k];
                if (job.cells && !outside && x < nx) {
                    double f = floored, u = v[k];
                    divergence += w[k] * (u > 0 ? u * log(u / f) - u + f : f - u);
                    blurred += b[k];
                }
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

extern "C" mb_status mb_cuda_rl_ratio(const mb_op_call *call)
{
    const mb_rl_ratio_params *p = (const mb_rl_ratio_params *)call->params;
    const mb_array *grid = call->arrays[MB_RL_RATIO_BLURRED],
                   *image = call->arrays[MB_RL_RATIO_IMAGE];
    const mb_array *weights = call->arrays[MB_RL_RATIO_WEIGHTS];
    ratio_job job;
    mb_grid_dims(&grid->shape, job.grid.v);
    mb_grid_dims(&image->shape, job.image.v);
    job.blurred = (float *)grid->data;
    job.weights = weights ? (const float *)weights->data : NULL;
    job.eps = (float)p->eps;
    job.cells = (double *)call->slots[MB_RL_RATIO_PARTIALS];
    unsigned blocks = job.cells ? MB_GRID_BLOCKS : mb_row_blocks(job.grid.v[0] * job.grid.v[1]);
    if (image->dtype == MB_U8)
        ratio_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const uint8_t *)image->data, job);
    else if (image->dtype == MB_U16)
        ratio_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const uint16_t *)image->data,
                                                                 job);
    else
        ratio_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const float *)image->data, job);
    MB_LAUNCHED("ratio_kernel");
    if (!job.cells)
        return MB_STATUS_OK;
    mb_fold_cells<<<2, MB_THREADS, 0, mb_stream(call)>>>(
        job.cells, MB_GRID_BLOCKS, 2, (double *)call->arrays[MB_RL_RATIO_METRIC]->data);
    MB_LAUNCHED("mb_fold_cells");
    return MB_STATUS_OK;
}
