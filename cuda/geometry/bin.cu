/*
** bin on CUDA: a thread makes one bin.
*/
#include "ops/geometry/op_bin.h"
#include "shared/cuda_launch.cuh"

/* `each`: 1 / elements of a full bin. */
template <class T>
__global__ void __launch_bounds__(MB_THREADS)
    bin_kernel(const T *a, float *result, mb_bin_axes x, double each)
{
    const int64_t i = blockIdx.x * (int64_t)MB_THREADS + threadIdx.x;
    if (i >= x.output[2])
        return;
    const int across = (int)mb_bin_count(&x, 2, i);
    const int64_t full = x.size[0] * x.size[1] * x.size[2];
    for (int64_t z = blockIdx.z; z < x.output[0]; z += gridDim.z)
        for (int64_t y = blockIdx.y; y < x.output[1]; y += gridDim.y) {
            const int64_t frames = mb_bin_count(&x, 0, z), lines = mb_bin_count(&x, 1, y);
            const int64_t count = frames * lines * across;
            const T *from =
                a + z * x.size[0] * x.from[0] + y * x.size[1] * x.from[1] + i * x.size[2];
            double sum = 0;
            for (int64_t f = 0; f < frames; f++)
                for (int64_t r = 0; r < lines; r++) {
                    const T *line = from + f * x.from[0] + r * x.from[1];
                    for (int k = 0; k < across; k++)
                        sum += mb_load_as<T>(line[k]);
                }
            result[z * x.to[0] + y * x.to[1] + i] =
                (float)(count == full ? sum * each : sum / (double)count);
        }
}

template <class T>
static mb_status bin_launch(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_BIN_A], *result = call->arrays[MB_BIN_RESULT];
    const mb_bin_axes x = mb_bin_axes_of((const mb_bin_params *)call->params, a, result);
    if (x.output[0] == 0 || x.output[1] == 0 || x.output[2] == 0)
        return MB_STATUS_OK;
    const dim3 blocks((unsigned)((x.output[2] + MB_THREADS - 1) / MB_THREADS),
                      (unsigned)(x.output[1] < 65535 ? x.output[1] : 65535),
                      (unsigned)(x.output[0] < 65535 ? x.output[0] : 65535));
    bin_kernel<T><<<blocks, MB_THREADS, 0, mb_stream(call)>>>(
        (const T *)a->data, (float *)result->data, x,
        1 / (double)(x.size[0] * x.size[1] * x.size[2]));
    return MB_LAUNCH_STATUS("bin_kernel");
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
