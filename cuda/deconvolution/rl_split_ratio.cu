/*
** rl_split_ratio on CUDA: the halves are drawn where they are used, with the same counter-based
** random numbers as on the host.
*/
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_rl_split_ratio.h"

struct split_job {
    mb_grid3 grid, image; /* grid with padded rows */
    float *first, *second;
    const float *weights;
    uint64_t key;
    float eps, under;
    double *cells;
};

template <class T>
__global__ void __launch_bounds__(MB_THREADS) split_kernel(const T *image, split_job job)
{
    const int64_t pitch = job.grid.v[2], nx = job.image.v[2], rows = job.grid.v[0] * job.grid.v[1];
    double first = 0, second = 0;
    MB_ROW_LOOP(row, rows)
    {
        int64_t z = row / job.grid.v[1], y = row - z * job.grid.v[1];
        bool outside = z >= job.image.v[0] || y >= job.image.v[1];
        int64_t at = (z * job.image.v[1] + y) * nx;
        float *a = job.first + row * pitch, *b = job.second + row * pitch;
        MB_LANE_LOOP(x, pitch)
        {
            if (outside || x >= nx) {
                a[x] = b[x] = 0;
                continue;
            }
            double v = (double)mb_grid_counts((float)image[at + x]),
                   w = job.weights ? (double)job.weights[at + x] : 1.0;
            float value = a[x] + job.under;
            double floored = (double)(value > job.eps ? value : job.eps) / 2;
            double half = mb_rl_split_half(v, job.key, at + x);
            a[x] = (float)(w * half / floored);
            b[x] = (float)(w * (v - half) / floored);
            first += w * mb_grid_divergence(half, floored);
            second += w * mb_grid_divergence(v - half, floored);
        }
    }
    first = mb_block_fold(first, mb_fold_sum());
    second = mb_block_fold(second, mb_fold_sum());
    if (threadIdx.x == 0) {
        job.cells[2 * blockIdx.x] = first;
        job.cells[2 * blockIdx.x + 1] = second;
    }
}

template <class T>
static void launch(const mb_op_call *call, const mb_array *image, const split_job &job)
{
    split_kernel<<<MB_GRID_BLOCKS, MB_THREADS, 0, mb_stream(call)>>>((const T *)image->data, job);
}

extern "C" mb_status mb_cuda_rl_split_ratio(const mb_op_call *call)
{
    const mb_rl_split_ratio_params *p = (const mb_rl_split_ratio_params *)call->params;
    const mb_array *grid = call->arrays[MB_RL_SPLIT_RATIO_BLURRED],
                   *image = call->arrays[MB_RL_SPLIT_RATIO_IMAGE];
    const mb_array *weights = call->arrays[MB_RL_SPLIT_RATIO_WEIGHTS];
    split_job job;
    mb_grid_dims(&grid->shape, job.grid.v);
    mb_grid_dims(&image->shape, job.image.v);
    job.first = (float *)grid->data;
    job.second = (float *)call->arrays[MB_RL_SPLIT_RATIO_SECOND]->data;
    job.weights = weights ? (const float *)weights->data : NULL;
    job.key = mb_poisson_mix((uint64_t)p->seed);
    job.eps = (float)p->eps;
    job.under = (float)p->background;
    job.cells = (double *)call->slots[MB_RL_SPLIT_RATIO_PARTIALS];
    if (image->dtype == MB_U8)
        launch<uint8_t>(call, image, job);
    else if (image->dtype == MB_U16)
        launch<uint16_t>(call, image, job);
    else
        launch<float>(call, image, job);
    MB_LAUNCHED("split_kernel");
    return mb_cuda_grid_fold(call, job.cells, 2, call->arrays[MB_RL_SPLIT_RATIO_METRIC]);
}
