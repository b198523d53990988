/*
** normalize_background on CUDA: a block of threads for each row. Its sums are folded in a fixed
** order, in double precision; the row is read a second time out of the cache.
*/
#include "shared/cuda_launch.cuh"
#include "ops/corrections/op_normalize_background.h"

struct background_rows {
    const float *from;
    float *to;
    int64_t rows, height, columns;
    int64_t from_z, from_y, to_z, to_y;
    int64_t width;
    bool chebyshev, subtract;
    float floor_value;
};

/* The sums of a row, in thread 0: of both edges, or those of the parabola. */
__device__ static void sum_row(const background_rows &s, const mb_background_basis &b,
                               const float *row, double *sums)
{
    sums[0] = sums[1] = sums[2] = 0;
    if (s.chebyshev)
        for (int64_t x = threadIdx.x; x < s.columns; x += MB_THREADS) {
            const double v = (double)row[x], u = mb_background_u(&b, x);
            sums[0] += v;
            sums[1] += u * v;
            sums[2] += (3 * u * u - b.mean) * v;
        }
    else
        for (int64_t x = threadIdx.x; x < s.width; x += MB_THREADS) {
            sums[0] += (double)row[x];
            sums[1] += (double)row[s.columns - s.width + x];
        }
    sums[0] = mb_block_fold(sums[0], mb_fold_sum());
    sums[1] = mb_block_fold(sums[1], mb_fold_sum());
    if (s.chebyshev)
        sums[2] = mb_block_fold(sums[2], mb_fold_sum());
}

__global__ void __launch_bounds__(MB_THREADS)
    normalize_background_kernel(background_rows s, mb_background_basis b)
{
    __shared__ mb_background shared;
    const float scale = (float)(2 / b.columns), first = (float)(1 - b.columns) * 0.5f;
    const float mean = (float)b.mean;
    for (int64_t i = blockIdx.x; i < s.rows; i += gridDim.x) {
        const int64_t z = i / s.height, y = i - z * s.height;
        const float *row = s.from + z * s.from_z + y * s.from_y;
        float *to = s.to + z * s.to_z + y * s.to_y;
        double sums[3];
        sum_row(s, b, row, sums);
        if (threadIdx.x == 0)
            shared = s.chebyshev ? mb_background_of_sums(&b, sums[0], sums[1], sums[2])
                                 : mb_background_of_edges(&b, s.width, sums[0] / (double)s.width,
                                                          sums[1] / (double)s.width);
        __syncthreads();
        const mb_background c = shared;
        for (int64_t x = threadIdx.x; x < s.columns; x += MB_THREADS) {
            const float v = row[x], slow = mb_background_at(&c, ((float)x + first) * scale, mean);
            to[x] = s.subtract ? v - slow : v / (slow < s.floor_value ? s.floor_value : slow);
        }
        __syncthreads(); /* before `shared` is written again */
    }
}

extern "C" mb_status mb_cuda_normalize_background(const mb_op_call *call)
{
    const mb_normalize_background_params *p = (const mb_normalize_background_params *)call->params;
    const mb_array *a = call->arrays[MB_NORMALIZE_BACKGROUND_A],
                   *result = call->arrays[MB_NORMALIZE_BACKGROUND_RESULT];
    const int rank = a->shape.rank;
    background_rows s = {};
    s.from = (const float *)a->data;
    s.to = (float *)result->data;
    s.columns = a->shape.dims[rank - 1];
    s.height = a->shape.dims[rank - 2];
    s.rows = (rank == 3 ? a->shape.dims[0] : 1) * s.height;
    s.from_z = rank == 3 ? a->strides[0] : 0;
    s.to_z = rank == 3 ? result->strides[0] : 0;
    s.from_y = a->strides[rank - 2];
    s.to_y = result->strides[rank - 2];
    s.width = p->width;
    s.chebyshev = p->method == MB_BACKGROUND_CHEBYSHEV;
    s.subtract = p->operation == MB_BACKGROUND_SUBTRACT;
    s.floor_value = (float)p->floor;
    if (s.rows * s.columns == 0)
        return MB_STATUS_OK;
    normalize_background_kernel<<<mb_blocks(call, s.rows, 1), MB_THREADS, 0, mb_stream(call)>>>(
        s, mb_background_basis_of(s.columns));
    MB_LAUNCHED("normalize_background_kernel");
    return MB_STATUS_OK;
}
