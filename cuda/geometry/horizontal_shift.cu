/*
** horizontal_shift on CUDA: a block makes one row of one frame in steps of HS_STEP columns, in the
** direction of op_horizontal_shift.h, and reads all sources of a step before it stores any.
*/
#include "ops/geometry/op_horizontal_shift.h"
#include "shared/cuda_launch.cuh"

#define HS_FRAMES 128 /* per launch: their shifts are kernel arguments */
#define HS_EACH 4     /* columns of a thread in a step */
#define HS_STEP (MB_THREADS * HS_EACH)

struct hs_frames {
    int32_t whole[HS_FRAMES]; /* clamped to columns + 1 */
    float far[HS_FRAMES];
};

struct hs_job {
    const float *from;
    float *to;
    int64_t from_frame, from_pitch, to_frame, to_pitch, rows, cols;
    float value;
    bool edge;
};

__global__ void __launch_bounds__(MB_THREADS) horizontal_shift_kernel(hs_job job, hs_frames frames)
{
    const int j = blockIdx.y;
    const int64_t whole = frames.whole[j], steps = (job.cols + HS_STEP - 1) / HS_STEP;
    const float far = frames.far[j];
    for (int64_t y = blockIdx.x; y < job.rows; y += gridDim.x) {
        const float *from = job.from + j * job.from_frame + y * job.from_pitch;
        float *to = job.to + j * job.to_frame + y * job.to_pitch;
        for (int64_t i = 0; i < steps; i++) {
            const int64_t x0 = (whole >= 0 ? i : steps - 1 - i) * HS_STEP + threadIdx.x;
            float out[HS_EACH];
#pragma unroll
            for (int k = 0; k < HS_EACH; k++)
                out[k] = x0 + k * MB_THREADS < job.cols
                             ? mb_horizontal_at(from, job.cols, x0 + k * MB_THREADS, whole, far,
                                                job.edge, job.value)
                             : 0.0f;
            __syncthreads();
#pragma unroll
            for (int k = 0; k < HS_EACH; k++)
                if (x0 + k * MB_THREADS < job.cols)
                    to[x0 + k * MB_THREADS] = out[k];
            __syncthreads(); /* the edge may be a source of the next step */
        }
    }
}

extern "C" mb_status mb_cuda_horizontal_shift(const mb_op_call *call)
{
    const mb_horizontal_shift_params *p = (const mb_horizontal_shift_params *)call->params;
    const mb_array *a = call->arrays[MB_HORIZONTAL_SHIFT_A],
                   *result = call->arrays[MB_HORIZONTAL_SHIFT_RESULT];
    const int rank = a->shape.rank;
    const int64_t count = rank == 3 ? a->shape.dims[0] : 1;
    hs_job job = {};
    job.rows = a->shape.dims[rank - 2];
    job.cols = a->shape.dims[rank - 1];
    job.from_frame = rank == 3 ? a->strides[0] : 0;
    job.to_frame = rank == 3 ? result->strides[0] : 0;
    job.from_pitch = a->strides[rank - 2];
    job.to_pitch = result->strides[rank - 2];
    job.value = (float)p->value;
    job.edge = p->mode == MB_HORIZONTAL_EDGE;
    if (job.rows == 0 || job.cols == 0)
        return MB_STATUS_OK;
    for (int64_t first = 0; first < count; first += HS_FRAMES) {
        hs_frames frames;
        const int64_t n = count - first < HS_FRAMES ? count - first : HS_FRAMES;
        for (int64_t j = 0; j < n; j++) {
            const mb_vertical_shift_frame f = mb_vertical_shift_at(&p->list, first + j, job.cols);
            frames.whole[j] = (int32_t)f.whole;
            frames.far[j] = f.far;
        }
        job.from = (const float *)a->data + first * job.from_frame;
        job.to = (float *)result->data + first * job.to_frame;
        const dim3 blocks((unsigned)(job.rows < 1 << 20 ? job.rows : 1 << 20), (unsigned)n);
        horizontal_shift_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(job, frames);
        MB_LAUNCHED("horizontal_shift_kernel");
    }
    return MB_STATUS_OK;
}
