/*
** half_acquisition_weight on CUDA: each block takes a row at a time, with a thread per column.
*/
#include "shared/cuda_launch.cuh"
#include "ops/corrections/op_half_acquisition_weight.h"

struct haw_rows { /* rows of an array of rank 1 to 3 */
    float *data;
    int64_t inner;      /* extent of the axis before the last */
    int64_t outer_step; /* elements */
    int64_t inner_step;
};

static haw_rows rows_of(const mb_array *a)
{
    const int rank = a->shape.rank;
    return {(float *)a->data, rank > 1 ? a->shape.dims[rank - 2] : 1, rank > 2 ? a->strides[0] : 0,
            rank > 1 ? a->strides[rank - 2] : 0};
}

__device__ static inline float *row_at(const haw_rows &rows, int64_t i)
{
    const int64_t outer = i / rows.inner;
    return rows.data + outer * rows.outer_step + (i - outer * rows.inner) * rows.inner_step;
}

__global__ void __launch_bounds__(MB_THREADS)
    half_acquisition_weight_kernel(haw_rows from, haw_rows to, int64_t count, int64_t wide,
                                   int64_t front, mb_half_acquisition h)
{
    for (int64_t i = blockIdx.x; i < count; i += gridDim.x) {
        const float *source = row_at(from, i);
        float *row = row_at(to, i);
        for (int64_t x = blockIdx.y * (int64_t)MB_THREADS + threadIdx.x; x < wide;
             x += gridDim.y * (int64_t)MB_THREADS) {
            const int64_t u = x - front;
            row[x] = u >= 0 && u < h.cols ? source[u] * mb_half_acquisition_weight_at(&h, u) : 0.0f;
        }
    }
}

extern "C" mb_status mb_cuda_half_acquisition_weight(const mb_op_call *call)
{
    const mb_half_acquisition_weight_params *p =
        (const mb_half_acquisition_weight_params *)call->params;
    const mb_array *sino = call->arrays[MB_HALF_ACQUISITION_WEIGHT_SINO],
                   *result = call->arrays[MB_HALF_ACQUISITION_WEIGHT_RESULT];
    const int rank = sino->shape.rank;
    const int64_t cols = sino->shape.dims[rank - 1], wide = result->shape.dims[rank - 1];
    const mb_half_acquisition h = mb_half_acquisition_of(p->center, cols);
    int64_t count = 1;
    for (int i = 0; i < rank - 1; i++)
        count *= sino->shape.dims[i];
    const dim3 blocks(mb_blocks(call, count, 1),
                      (unsigned)((wide + MB_THREADS * 4 - 1) / (MB_THREADS * 4)));
    half_acquisition_weight_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(
        rows_of(sino), rows_of(result), count, wide, mb_half_acquisition_front(&h, p->extend), h);
    return MB_LAUNCH_STATUS("half_acquisition_weight_kernel");
}
