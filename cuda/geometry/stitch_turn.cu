/*
** stitch_turn on CUDA: a thread makes one column of several rows. Where one frame alone is seen it
** reads all of them before it stores any.
*/
#include "ops/geometry/op_stitch_turn.h"
#include "shared/cuda_launch.cuh"

#define ST_ROWS 8

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
    const mb_stitch_turn &s = job.stitch;
    const int64_t t = mb_stitch_place(&s, x);
    const bool own = t < s.few, other = !own && s.whole && t >= s.many;
    const int64_t u = own ? t : s.twice - t, column = s.left ? s.cols - 1 - u : u;
    const int64_t later = job.half * job.from_frame;
    for (int64_t k = blockIdx.z; k < job.frames; k += gridDim.z) {
        const float *frame = job.from + k * job.from_frame;
        float *to = job.to + k * job.to_frame + x;
        for (int64_t y0 = blockIdx.y * (int64_t)ST_ROWS; y0 < job.rows;
             y0 += gridDim.y * (int64_t)ST_ROWS) {
            float v[ST_ROWS];
            if (own || other) {
                const float *from = frame + (other ? later : 0) + column;
#pragma unroll
                for (int j = 0; j < ST_ROWS; j++)
                    v[j] = y0 + j < job.rows ? from[(y0 + j) * job.from_row] : 0.0f;
#pragma unroll
                for (int j = 0; j < ST_ROWS; j++)
                    if (y0 + j < job.rows)
                        to[(y0 + j) * job.to_row] = v[j];
            } else {
                for (int64_t y = y0; y < y0 + ST_ROWS && y < job.rows; y++) {
                    const float *row = frame + y * job.from_row;
                    to[y * job.to_row] = mb_stitch_turn_at(&s, row, row + later, x);
                }
            }
        }
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
                      (unsigned)(job.rows < 65535 ? (job.rows + ST_ROWS - 1) / ST_ROWS : 65535),
                      (unsigned)(job.frames < 65535 ? job.frames : 65535));
    stitch_turn_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(job);
    return MB_LAUNCH_STATUS("stitch_turn_kernel");
}
