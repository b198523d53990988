/*
** gradient_step on CUDA: on dense and padded rows at once, with sums in the same pass.
*/
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_gradient_step.h"

struct step_job {
    mb_grid3 grid;
    float step, least;
    double *cells; /* NULL without metrics */
};

/* The arrays do not overlap, so loads may run ahead of stores. */
__global__ void __launch_bounds__(MB_THREADS)
    step_kernel(float *__restrict__ estimate, float *__restrict__ gradient, step_job job)
{
    const int64_t nx = job.grid.v[2], pitch = 2 * (nx / 2 + 1),
                  rows = job.grid.v[0] * job.grid.v[1];
    mb_grid_change change = {0, 0, 0};
    MB_ROW_LOOP(row, rows)
    {
#pragma unroll 4
        MB_LANE_LOOP(x, nx)
        {
            float old = estimate[row * nx + x];
            float value = old + job.step * gradient[row * pitch + x];
            value = value < job.least ? job.least : value;
            estimate[row * nx + x] = value;
            gradient[row * pitch + x] = value;
            if (job.cells)
                mb_grid_change_add(&change, old, value);
        }
    }
    if (job.cells)
        mb_block_change(&change, job.cells);
}

extern "C" mb_status mb_cuda_gradient_step(const mb_op_call *call)
{
    const mb_gradient_step_params *p = (const mb_gradient_step_params *)call->params;
    const mb_array *estimate = call->arrays[MB_GRADIENT_STEP_ESTIMATE];
    step_job job;
    mb_grid_dims(&estimate->shape, job.grid.v);
    job.step = (float)p->step;
    job.least = isnan(p->min) ? -INFINITY : (float)p->min;
    job.cells = (double *)call->slots[MB_GRADIENT_STEP_PARTIALS];
    unsigned blocks = job.cells ? MB_GRID_BLOCKS : mb_row_blocks(job.grid.v[0] * job.grid.v[1]);
    step_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(
        (float *)estimate->data, (float *)call->arrays[MB_GRADIENT_STEP_GRADIENT]->data, job);
    MB_LAUNCHED("step_kernel");
    return mb_cuda_grid_fold(call, job.cells, 3, call->arrays[MB_GRADIENT_STEP_METRIC]);
}
