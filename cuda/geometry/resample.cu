/*
** resample on CUDA: a thread makes one pixel of several frames.
*/
#include "ops/frames.h"
#include "ops/geometry/op_resample.h"
#include "shared/cuda_launch.cuh"

#define RS_FRAMES 16

__global__ void __launch_bounds__(MB_THREADS)
    resample_kernel(mb_frames s, mb_resample_window window, int method)
{
    const int64_t x = blockIdx.x * (int64_t)MB_THREADS + threadIdx.x;
    if (x >= window.cols)
        return;
    const mb_resample_taps tx = mb_resample_at(method, x, s.cols, window.cols);
    const int64_t first = blockIdx.z * (int64_t)RS_FRAMES;
    const int64_t end = first + RS_FRAMES < s.count ? first + RS_FRAMES : s.count;
    for (int64_t y = blockIdx.y; y < window.count; y += gridDim.y) {
        const mb_resample_taps ty =
            mb_resample_at(method, window.from + y, window.height, window.rows);
        const float *from = s.from + (ty.first - window.first) * s.from_pitch + tx.first;
        for (int64_t f = first; f < end; f++) {
            float sums = 0;
            for (int64_t k = 0; k < ty.count; k++) {
                const float *at = from + f * s.from_frame + k * s.from_pitch;
                float sum = tx.low * at[0];
                for (int64_t l = 1; l < tx.count; l++)
                    sum += mb_resample_weight(&tx, l) * at[l];
                sums += mb_resample_weight(&ty, k) * sum;
            }
            s.to[f * s.to_frame + y * s.to_pitch + x] = sums;
        }
    }
}

extern "C" mb_status mb_cuda_resample(const mb_op_call *call)
{
    const mb_resample_params *p = (const mb_resample_params *)call->params;
    const mb_array *a = call->arrays[MB_RESAMPLE_A];
    const mb_resample_window window = mb_resample_window_of(p, &a->shape);
    mb_frames s = mb_frames_of(a, call->arrays[MB_RESAMPLE_RESULT]);
    const int64_t frames = s.count, most = 32768 * RS_FRAMES;
    const int64_t blocks_y = window.count < 65535 ? window.count : 65535;
    for (int64_t first = 0; first < frames; first += most) {
        s.count = frames - first < most ? frames - first : most;
        const dim3 blocks((unsigned)((window.cols + MB_THREADS - 1) / MB_THREADS),
                          (unsigned)blocks_y, (unsigned)((s.count + RS_FRAMES - 1) / RS_FRAMES));
        resample_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(s, window, p->method);
        MB_LAUNCHED("resample_kernel");
        s.from += s.count * s.from_frame;
        s.to += s.count * s.to_frame;
    }
    return MB_STATUS_OK;
}
