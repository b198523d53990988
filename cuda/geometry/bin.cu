/*
** bin on CUDA: a thread makes one bin.
*/
#include "ops/geometry/op_bin.h"
#include "shared/cuda_launch.cuh"

template <class T>
__global__ void __launch_bounds__(MB_THREADS)
    bin_kernel(const T *a, float *result, mb_bin_axes x, int64_t rows)
{
    const int64_t i = blockIdx.x * (int64_t)MB_THREADS + threadIdx.x;
    if (i >= x.output[2])
        return;
    const int64_t across = mb_bin_count(&x, 2, i);
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
        const int64_t z = row / x.output[1], y = row % x.output[1];
        const int64_t frames = mb_bin_count(&x, 0, z), lines = mb_bin_count(&x, 1, y);
        const T *from = a + z * x.size[0] * x.from[0] + y * x.size[1] * x.from[1] + i * x.size[2];
        double sum = 0;
        for (int64_t f = 0; f < frames; f++)
            for (int64_t r = 0; r < lines; r++)
                for (int64_t k = 0; k < across; k++)
                    sum += mb_load_as<T>(from[f * x.from[0] + r * x.from[1] + k]);
        result[z * x.to[0] + y * x.to[1] + i] = (float)(sum / (double)(frames * lines * across));
    }
}

template <class T>
static mb_status bin_launch(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_BIN_A], *result = call->arrays[MB_BIN_RESULT];
    const mb_bin_axes x = mb_bin_axes_of((const mb_bin_params *)call->params, a, result);
    const int64_t rows = x.output[0] * x.output[1];
    if (rows == 0 || x.output[2] == 0)
        return MB_STATUS_OK;
    const dim3 blocks((unsigned)((x.output[2] + MB_THREADS - 1) / MB_THREADS),
                      (unsigned)(rows < 65535 ? rows : 65535));
    bin_kernel<T><<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const T *)a->data,
                                                              (float *)result->data, x, rows);
    MB_LAUNCHED("bin_kernel");
    return MB_STATUS_OK;
}

extern "C" mb_status mb_cuda_bin(const mb_op_call *call)
{
    switch (call->arrays[MB_BIN_A]->dtype) {
    case MB_U8: return bin_launch<uint8_t>(call);
    case MB_U16: return bin_launch<uint16_t>(call);
    case MB_I32: return bin_launch<int32_t>(call);
    case MB_F16: return bin_launch<__half>(call);
    default: return bin_launch<float>(call);
    }
}
