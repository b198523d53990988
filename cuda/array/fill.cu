/*
** fill on CUDA: one value into every element, any strides. The value is converted on the device by
** the same rule as convert's.
*/
#include "shared/cuda_launch.cuh"
#include "ops/array/op_fill.h"

__global__ void __launch_bounds__(MB_THREADS)
    fill_any(void *to, int type, mb_grid_walk walk, double value, double imag)
{
    MB_GRID_LOOP(i, walk.count)
    {
        int64_t at[1];
        mb_grid_walk_at<1>(walk, i, at);
        mb_element_store(type, to, at[0], value, imag);
    }
}

extern "C" mb_status mb_cuda_fill(const mb_op_call *call)
{
    const mb_fill_params *params = (const mb_fill_params *)call->params;
    const mb_array *a = call->arrays[MB_FILL_A];
    mb_grid_walk walk;
    mb_grid_walk_make(&walk, &a, 1);
    if (walk.count == 0)
        return MB_STATUS_OK;
    const bool zero = params->value == 0 && !signbit(params->value); /* -0.0 is not all zero bits */
    if (zero && params->imag == 0 && !signbit(params->imag) && mb_grid_walk_dense(&walk, 1)) {
        MB_CUDA(cudaMemsetAsync(a->data, 0, walk.count * mb_cuda_dtype_bytes(a->dtype),
                                mb_stream(call)));
        return MB_STATUS_OK;
    }
    fill_any<<<mb_blocks(call, walk.count, MB_THREADS), MB_THREADS, 0, mb_stream(call)>>>(
        a->data, a->dtype, walk, params->value, params->imag);
    return MB_LAUNCH_STATUS("fill_any");
}
