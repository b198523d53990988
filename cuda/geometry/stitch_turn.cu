/*
** stitch_turn on CUDA: a thread makes one column of one row.
*/
#include "ops/geometry/op_stitch_turn.h"
#include "shared/cuda_launch.cuh"

struct stitch_job {
    mb_stitch_turn stitch;
    const float *from;
    float *to;
    int64_t from_frame, from_row, to_frame, to_row;
    int64_t half, frames, rows, cols;
};

__global__ void __launch_bounds__(MB_THREADS) stitch_turn_kernel(stitch_job job)
{
    const int64_t x = blockIdx.x * (int64_t)MB_THREADS + threadIdx.x;
    if (x >= job.cols)
        return;
    for (int64_t k = blockIdx.z; k < job.frames; k += gridDim.z)
        for (int64_t y = blockIdx.y; y < job.rows; y += gridDim.y) {
            const float *own = job.from + k * job.from_frame + y * job.from_row;
            job.to[k * job.to_frame + y * job.to_row + x] =
                mb_stitch_turn_at(&job.stitch, own, own + job.half * job.from_frame, x);
        }
}

extern "C" mb_status mb_cuda_stitch_turn(const mb_op_call *call)
{
    const mb_stitch_turn_params *p = (const mb_stitch_turn_params *)call->params;
    const mb_array *a = call->arrays[MB_STITCH_TURN_A],
                   *result = call->arrays[MB_STITCH_TURN_RESULT];
    stitch_job job = {};
    job.stitch = mb_stitch_turn_of(p, a->shape.dims[2]);
    job.from = (const float *)a->data;
    job.to = (float *)result->data;
    job.from_frame = a->strides[0];
    job.from_row = a->strides[1];
    job.to_frame = result->strides[0];
    job.to_row = result->strides[1];
    job.half = p->half ? p->half : a->shape.dims[0] / 2;
    job.frames = result->shape.dims[0];
    job.rows = result->shape.dims[1];
    job.cols = result->shape.dims[2];
    if (job.frames == 0 || job.rows == 0 || job.cols == 0)
        return MB_STATUS_OK;
    const dim3 blocks((unsigned)((job.cols + MB_THREADS - 1) / MB_THREADS),
                      (unsigned)(job.rows < 65535 ? job.rows : 65535),
                      (unsigned)(job.frames < 65535 ? job.frames : 65535));
    stitch_turn_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(job);
    MB_LAUNCHED("stitch_turn_kernel");
    return MB_STATUS_OK;
}
