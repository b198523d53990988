/*
** rl_update on CUDA: estimate times correction over normaliser, to both arrays, with sums in the same pass. The normaliser
** by table: eight look-ups in a table of the PSF's size, which the caches hold.
*/
#include "grid_rows.cuh"
#include "ops/op_rl_update.h"

struct update_job {
    mb_grid3 grid, window, center, table_dims;
    int rank;
    float *estimate, *correction;
    const double *table;
    const float *normaliser;
    float least;
    double floor;
    double *cells; /* NULL without metrics */
};

/* Sum of the PSF over rows of the table that belong to one grid row, below index x. */
__device__ static inline double line_sum(const double *const lines[4], int64_t x)
{
    double sum = lines[3][x];
    if (lines[2])
        sum -= lines[2][x];
    if (lines[1])
        sum -= lines[1][x];
    return lines[0] ? sum + lines[0][x] : sum;
}

__global__ void __launch_bounds__(MB_THREADS) update_kernel(update_job job)
{
    const int64_t nx = job.grid.v[2], pitch = 2 * (nx / 2 + 1),
                  rows = job.grid.v[0] * job.grid.v[1];
    double sum = 0, change = 0, squares = 0;
    MB_ROW_LOOP(row, rows)
    {
        const double *lines[4] = {NULL, NULL, NULL,
                                  NULL}; /* by high y, high z: low low, low high, ... */
        if (job.table) {
            int64_t position[2] = {row / job.grid.v[1], row % job.grid.v[1]},
                    at[2][2] = {{-1, 0}, {-1, 0}};
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (i >= 3 - job.rank)
                    mb_rl_update_range(position[i], job.grid.v[i], job.window.v[i],
                                       job.table_dims.v[i] - 1, job.center.v[i], &at[i][0],
                                       &at[i][1]);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int64_t a = at[0][i & 1], b = at[1][i >> 1];
                if (a >= 0 && b >= 0)
                    lines[i] = job.table + (a * job.table_dims.v[1] + b) * job.table_dims.v[2];
            }
        }
        MB_LANE_LOOP(x, nx)
        {
            float old = job.estimate[row * nx + x], value = old * job.correction[row * pitch + x];
            if (job.table || job.normaliser) {
                double weight;
                if (job.table) {
                    int64_t low, high;
                    mb_rl_update_range(x, nx, job.window.v[2], job.table_dims.v[2] - 1,
                                       job.center.v[2], &low, &high);
                    weight = line_sum(lines, high) - line_sum(lines, low);
                } else {
                    weight = job.normaliser[row * nx + x];
                }
                value = weight > job.floor ? (float)((double)value / weight) : job.least;
            }
            value = value > job.least ? value : job.least;
            job.estimate[row * nx + x] = value;
            job.correction[row * pitch + x] = value;
            if (job.cells) {
                double step = (double)value - (double)old;
                sum += value;
                change += step * step;
                squares += (double)value * value;
            }
        }
    }
    if (!job.cells)
        return;
    sum = mb_block_fold(sum, mb_fold_sum());
    change = mb_block_fold(change, mb_fold_sum());
    squares = mb_block_fold(squares, mb_fold_sum());
    if (threadIdx.x == 0) {
        job.cells[3 * blockIdx.x] = sum;
        job.cells[3 * blockIdx.x + 1] = change;
        job.cells[3 * blockIdx.x + 2] = squares;
    }
}

extern "C" mb_status mb_cuda_rl_update(const mb_op_call *call)
{
    const mb_rl_update_params *p = (const mb_rl_update_params *)call->params;
    const mb_array *estimate = call->arrays[MB_RL_UPDATE_ESTIMATE],
                   *table = call->arrays[MB_RL_UPDATE_TABLE];
    const mb_array *normaliser = call->arrays[MB_RL_UPDATE_NORMALISER];
    update_job job = {};
    mb_grid_dims(&estimate->shape, job.grid.v);
    mb_grid_vector(&p->window, 1, job.window.v);
    mb_grid_vector(&p->center, 0, job.center.v);
    job.rank = estimate->shape.rank;
    job.estimate = (float *)estimate->data;
    job.correction = (float *)call->arrays[MB_RL_UPDATE_CORRECTION]->data;
    if (table) {
        mb_grid_dims(&table->shape, job.table_dims.v);
        job.table = (const double *)table->data;
    }
    job.normaliser = normaliser ? (const float *)normaliser->data : NULL;
    job.least = (float)p->min;
    job.floor = p->floor;
    job.cells = (double *)call->slots[MB_RL_UPDATE_PARTIALS];
    unsigned blocks = job.cells ? MB_GRID_BLOCKS : mb_row_blocks(job.grid.v[0] * job.grid.v[1]);
    update_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(job);
    MB_LAUNCHED("update_kernel");
    if (!job.cells)
        return MB_STATUS_OK;
    mb_fold_cells<<<3, MB_THREADS, 0, mb_stream(call)>>>(
        job.cells, MB_GRID_BLOCKS, 3, (double *)call->arrays[MB_RL_UPDATE_METRIC]->data);
    MB_LAUNCHED("mb_fold_cells");
    return MB_STATUS_OK;
}
