/*
** rl_ratio on CUDA: image over blurred estimate in place, 0 outside the image, with the misfit in
** the same pass.
*/
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_rl_ratio.h"

struct ratio_job {
    mb_grid_view grid, image, weights; /* weights.data: NULL without weights */
    float eps, under;
    double *cells; /* NULL without metrics */
};

/* DENSE: the last axis of every array is dense. */
template <class T, bool DENSE>
__global__ void __launch_bounds__(MB_THREADS) ratio_kernel(ratio_job job)
{
    const int64_t pitch = job.grid.n[2], nx = job.image.n[2], rows = job.grid.n[0] * job.grid.n[1];
    const int64_t step = DENSE ? 1 : job.grid.step[2], image_step = DENSE ? 1 : job.image.step[2],
                  weight_step = DENSE ? 1 : job.weights.step[2];
    constexpr int BATCH = DENSE ? MB_BATCH : 1;
    double divergence = 0, blurred = 0;
    MB_ROW_LOOP(row, rows)
    {
        int64_t z = row / job.grid.n[1], y = row - z * job.grid.n[1];
        bool outside = z >= job.image.n[0] || y >= job.image.n[1];
        float *line = (float *)job.grid.data + mb_grid_row(&job.grid, z, y);
        const T *image = (const T *)job.image.data + mb_grid_row(&job.image, z, y);
        const float *weights = (const float *)job.weights.data;
        if (weights)
            weights += mb_grid_row(&job.weights, z, y);
        MB_LANE_BATCH_LOOP(first, pitch, BATCH)
        {
            float b[BATCH], v[BATCH], w[BATCH];
#pragma unroll
            for (int k = 0; k < BATCH; k++) {
                int64_t x = first + 32 * k;
                bool inside = !outside && x < nx;
                b[k] = inside ? line[x * step] + job.under : 0;
                v[k] = inside ? mb_grid_counts((float)image[x * image_step]) : 0;
                w[k] = inside && weights ? weights[x * weight_step] : 1.0f;
            }
#pragma unroll
            for (int k = 0; k < BATCH; k++) {
                int64_t x = first + 32 * k;
                float floored = b[k] > job.eps ? b[k] : job.eps;
                if (x < pitch)
                    line[x * step] = v[k] / floored * w[k];
                if (job.cells && !outside && x < nx) {
                    divergence += w[k] * mb_grid_divergence(v[k], floored);
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

template <class T>
static void launch(const mb_op_call *call, const ratio_job &job)
{
    const unsigned blocks =
        job.cells ? MB_GRID_BLOCKS : mb_row_blocks(job.grid.n[0] * job.grid.n[1]);
    if (mb_grid_dense(call->arrays[MB_RL_RATIO_BLURRED]) &&
        mb_grid_dense(call->arrays[MB_RL_RATIO_IMAGE]) &&
        mb_grid_dense(call->arrays[MB_RL_RATIO_WEIGHTS]))
        ratio_kernel<T, true><<<blocks, MB_THREADS, 0, mb_stream(call)>>>(job);
    else
        ratio_kernel<T, false><<<blocks, MB_THREADS, 0, mb_stream(call)>>>(job);
}

extern "C" mb_status mb_cuda_rl_ratio(const mb_op_call *call)
{
    const mb_rl_ratio_params *p = (const mb_rl_ratio_params *)call->params;
    const ratio_job job = {mb_grid_view_of(call->arrays[MB_RL_RATIO_BLURRED]),
                           mb_grid_view_of(call->arrays[MB_RL_RATIO_IMAGE]),
                           mb_grid_view_of(call->arrays[MB_RL_RATIO_WEIGHTS]),
                           (float)p->eps,
                           (float)p->background,
                           (double *)call->slots[MB_RL_RATIO_PARTIALS]};
    switch (call->arrays[MB_RL_RATIO_IMAGE]->dtype) {
    case MB_U8: launch<uint8_t>(call, job); break;
    case MB_U16: launch<uint16_t>(call, job); break;
    default: launch<float>(call, job); break;
    }
    MB_LAUNCHED("ratio_kernel");
    return mb_cuda_grid_fold(call, job.cells, 2, call->arrays[MB_RL_RATIO_METRIC]);
}
