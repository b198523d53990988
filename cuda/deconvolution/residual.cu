/*
** residual on CUDA: image minus blurred estimate in place, 0 outside the image, with the squares in
** the same pass.
*/
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_residual.h"

struct residual_job {
    mb_grid3 grid, image; /* grid with padded rows */
    const float *weights;
    double *cells; /* NULL without metrics */
};

/* The arrays do not overlap, so loads may run ahead of stores. */
template <class T>
__global__ void __launch_bounds__(MB_THREADS)
    residual_kernel(float *__restrict__ blurred, const T *__restrict__ image, residual_job job)
{
    const int64_t pitch = job.grid.v[2], nx = job.image.v[2], rows = job.grid.v[0] * job.grid.v[1];
    double sum = 0;
    MB_ROW_LOOP(row, rows)
    {
        int64_t z = row / job.grid.v[1], y = row - z * job.grid.v[1];
        bool outside = z >= job.image.v[0] || y >= job.image.v[1];
        int64_t at = (z * job.image.v[1] + y) * nx;
        float *line = blurred + row * pitch;
#pragma unroll 4
        MB_LANE_LOOP(x, pitch)
        {
            if (outside || x >= nx) {
                line[x] = 0;
                continue;
            }
            float w = job.weights ? job.weights[at + x] : 1.0f;
            float difference = (float)image[at + x] - line[x];
            line[x] = w * difference;
            sum += (double)w * difference * difference;
        }
    }
    if (!job.cells)
        return;
    sum = mb_block_fold(sum, mb_fold_sum());
    if (threadIdx.x == 0)
        job.cells[blockIdx.x] = sum;
}

template <class T>
static void launch(const mb_op_call *call, unsigned blocks, const residual_job &job)
{
    residual_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(
        (float *)call->arrays[MB_RESIDUAL_BLURRED]->data,
        (const T *)call->arrays[MB_RESIDUAL_IMAGE]->data, job);
}

extern "C" mb_status mb_cuda_residual(const mb_op_call *call)
{
    const mb_array *grid = call->arrays[MB_RESIDUAL_BLURRED],
                   *image = call->arrays[MB_RESIDUAL_IMAGE];
    const mb_array *weights = call->arrays[MB_RESIDUAL_WEIGHTS];
    residual_job job;
    mb_grid_dims(&grid->shape, job.grid.v);
    mb_grid_dims(&image->shape, job.image.v);
    job.weights = weights ? (const float *)weights->data : NULL;
    job.cells = (double *)call->slots[MB_RESIDUAL_PARTIALS];
    unsigned blocks = job.cells ? MB_GRID_BLOCKS : mb_row_blocks(job.grid.v[0] * job.grid.v[1]);
    if (image->dtype == MB_U8)
        launch<uint8_t>(call, blocks, job);
    else if (image->dtype == MB_U16)
        launch<uint16_t>(call, blocks, job);
    else
        launch<float>(call, blocks, job);
    MB_LAUNCHED("residual_kernel");
    return mb_cuda_grid_fold(call, job.cells, 1, call->arrays[MB_RESIDUAL_METRIC]);
}
