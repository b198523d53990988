/*
** The factor 1/N after an inverse transform.
*/
#ifndef MB_CUDA_FFT_SCALE_CUH
#define MB_CUDA_FFT_SCALE_CUH

#include "shared/cuda_launch.cuh"

__global__ static void __launch_bounds__(MB_THREADS)
    mb_scale_kernel(float *data, int64_t count, float factor)
{
    MB_GRID_LOOP(i, count)
    {
        data[i] *= factor;
    }
}

static inline mb_status mb_cuda_scale(const mb_op_call *call, float *data, int64_t count,
                                      double factor)
{
    if (count == 0)
        return MB_STATUS_OK;
    mb_scale_kernel<<<mb_blocks(call, count, MB_THREADS), MB_THREADS, 0, mb_stream(call)>>>(
        data, count, (float)factor);
    MB_LAUNCHED("mb_scale_kernel");
    return MB_STATUS_OK;
}

#endif
