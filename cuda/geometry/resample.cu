/*
** resample on CUDA: a thread makes one pixel of several frames.
*/
#include "ops/geometry/op_resample.h"
#include "shared/cuda_launch.cuh"

#define RS_FRAMES 16

struct resample_job {
    mb_resample_window window;
    const float *from;
    float *to;
    int64_t from_frame, from_pitch, to_frame, to_pitch, frames, cols;
    int method;
};

__global__ void __launch_bounds__(MB_THREADS) resample_kernel(resample_job job)
{
    const int64_t x = blockIdx.x * (int64_t)MB_THREADS + threadIdx.x;
    if (x >= job.window.cols)
        return;
    const mb_resample_taps tx = mb_resample_at(job.method, x, job.cols, job.window.cols);
    const int64_t first = blockIdx.z * (int64_t)RS_FRAMES;
    const int64_t end = first + RS_FRAMES < job.frames ? first + RS_FRAMES : job.frames;
    for (int64_t y = blockIdx.y; y < job.window.count; y += gridDim.y) {
        const mb_resample_taps ty =
            mb_resample_at(job.method, job.window.from + y, job.window.height, job.window.rows);
        const float *from = job.from + (ty.first - job.window.first) * job.from_pitch + tx.first;
        for (int64_t f = first; f < end; f++) {
            float sums = 0;
            for (int64_t k = 0; k < ty.count; k++) {
                const float *at = from + f * job.from_frame + k * job.from_pitch;
                float sum = tx.low * at[0];
                for (int64_t l = 1; l < tx.count; l++)
                    sum += mb_resample_weight(&tx, l) * at[l];
                sums += mb_resample_weight(&ty, k) * sum;
            }
            job.to[f * job.to_frame + y * job.to_pitch + x] = sums;
        }
    }
}

extern "C" mb_status mb_cuda_resample(const mb_op_call *call)
{
    const mb_resample_params *p = (const mb_resample_params *)call->params;
    const mb_array *a = call->arrays[MB_RESAMPLE_A], *result = call->arrays[MB_RESAMPLE_RESULT];
    const int rank = a->shape.rank;
    const int64_t frames = rank == 3 ? a->shape.dims[0] : 1, most = 32768 * RS_FRAMES;
    resample_job job = {};
    job.window = mb_resample_window_of(p, &a->shape);
    job.from_frame = rank == 3 ? a->strides[0] : 0;
    job.to_frame = rank == 3 ? result->strides[0] : 0;
    job.from_pitch = a->strides[rank - 2];
    job.to_pitch = result->strides[rank - 2];
    job.cols = a->shape.dims[rank - 1];
    job.method = p->method;
    const int64_t blocks_y = job.window.count < 65535 ? job.window.count : 65535;
    for (int64_t first = 0; first < frames; first += most) {
        job.frames = frames - first < most ? frames - first : most;
        job.from = (const float *)a->data + first * job.from_frame;
        job.to = (float *)result->data + first * job.to_frame;
        const dim3 blocks((unsigned)((job.window.cols + MB_THREADS - 1) / MB_THREADS),
                          (unsigned)blocks_y, (unsigned)((job.frames + RS_FRAMES - 1) / RS_FRAMES));
        resample_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(job);
        MB_LAUNCHED("resample_kernel");
    }
    return MB_STATUS_OK;
}
