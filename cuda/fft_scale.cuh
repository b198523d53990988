/*
** The factor 1/N after an inverse transform.
*/
#ifndef MB_CUDA_FFT_SCALE_CUH
#define MB_CUDA_FFT_SCALE_CUH

#include "cuda_launch.cuh"

__global__ static void __launch_bounds__(MB_THREADS)
    mb_scale_rows_kernel(float *data, int64_t rows, int64_t width, int64_t pitch, float factor)
{
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y)
        for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < width;
             i += (int64_t)gridDim.x * blockDim.x)
            data[row * pitch + i] *= factor;
}

/* Rows of `width` floats, `pitch` apart, times `factor`. */
static inline mb_status mb_cuda_scale_rows(const mb_op_call *call, float *data, int64_t rows,
                                           int64_t width, int64_t pitch, double factor)
{
    if (rows == 0 || width == 0)
        return MB_STATUS_OK;
    dim3 grid(mb_blocks(call, width, MB_THREADS), (unsigned)(rows < 65535 ? rows : 65535));
    mb_scale_rows_kernel<<<grid, MB_THREADS, 0, mb_stream(call)>>>(data, rows, width, pitch,
                                                                   (float)factor);
    MB_LAUNCHED("mb_scale_rows_kernel");
    return MB_STATUS_OK;
}

#endif
