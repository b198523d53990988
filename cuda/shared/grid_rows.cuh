/*
** Walks over the padded rows of a grid: one warp takes a row at a time, so that rows of any length
** are read and written in whole lines. Also the sums of the pointwise steps: one cell per thread
** block, folded in a fixed order.
*/
#ifndef MB_CUDA_GRID_ROWS_CUH
#define MB_CUDA_GRID_ROWS_CUH

#include "shared/cuda_launch.cuh"
#include "ops/array/padded_grid.h"

#define MB_ROW_WARPS (MB_THREADS / 32)

/* Extents or indices along three axes, passed to kernels by value. */
typedef struct mb_grid3 {
    int64_t v[3];
} mb_grid3;

#define MB_ROW_LOOP(row, rows)                                                                     \
    for (int64_t row = blockIdx.x * (int64_t)MB_ROW_WARPS + (threadIdx.x >> 5); row < (rows);      \
         row += (int64_t)gridDim.x * MB_ROW_WARPS)
#define MB_LANE_LOOP(x, n) for (int64_t x = threadIdx.x & 31; x < (n); x += 32)
/* `batch` elements at a time: `first`, first + 32 and so on. A kernel does all loads before the
** first store, as in MB_BATCH_LOOP. */
#define MB_LANE_BATCH_LOOP(first, n, batch)                                                        \
    for (int64_t first = threadIdx.x & 31; first < (n); first += 32 * (batch))

static inline unsigned mb_row_blocks(int64_t rows)
{
    int64_t want = (rows + MB_ROW_WARPS - 1) / MB_ROW_WARPS;
    return (unsigned)(want < 1 ? 1 : want < 16384 ? want : 16384);
}

/* cells[block][width] -> out[width * step]: a block per column. */
__global__ static void __launch_bounds__(MB_THREADS)
    mb_fold_cells(const double *cells, int count, int width, double *out, int64_t step = 1)
{
    double sum = 0;
    for (int i = threadIdx.x; i < count; i += MB_THREADS)
        sum += cells[(int64_t)i * width + blockIdx.x];
    sum = mb_block_fold(sum, mb_fold_sum());
    if (threadIdx.x == 0)
        out[blockIdx.x * step] = sum;
}

/* Like mb_grid_fold on the host: the sum of all blocks' cells, with as many doubles as metric has.
** Does nothing without cells. */
static inline mb_status mb_cuda_grid_fold(const mb_op_call *call, const double *cells, int width,
                                          const mb_array *metric)
{
    if (!cells)
        return MB_STATUS_OK;
    mb_fold_cells<<<(unsigned)metric->shape.dims[0], MB_THREADS, 0, mb_stream(call)>>>(
        cells, MB_GRID_BLOCKS, width, (double *)metric->data, metric->strides[0]);
    return MB_LAUNCH_STATUS("mb_fold_cells");
}

/* Sums the threads' parts of a change into the block's cell. All threads must call it. */
__device__ static inline void mb_block_change(const mb_grid_change *part, double *cells)
{
    const double sum = mb_block_fold(part->sum, mb_fold_sum());
    const double change = mb_block_fold(part->change, mb_fold_sum());
    const double squares = mb_block_fold(part->squares, mb_fold_sum());
    if (threadIdx.x == 0) {
        cells[3 * blockIdx.x] = sum;
        cells[3 * blockIdx.x + 1] = change;
        cells[3 * blockIdx.x + 2] = squares;
    }
}

#endif
