/*
** horizontal_shift on CUDA: a block makes one row of one frame in steps of HS_STEP columns, in the
** direction of op_horizontal_shift.h, and reads all sources of a step before it stores any.
*/
#include "ops/frames.h"
#include "ops/geometry/op_horizontal_shift.h"
#include "shared/cuda_launch.cuh"

#define HS_FRAMES 128 /* per launch: their shifts are kernel arguments */
#define HS_EACH 4     /* columns of a thread in a step */
#define HS_STEP (MB_THREADS * HS_EACH)

struct hs_frames {
    int32_t whole[HS_FRAMES]; /* clamped to columns + 1 */
    float far[HS_FRAMES];
};

__global__ void __launch_bounds__(MB_THREADS)
    horizontal_shift_kernel(mb_frames s, hs_frames frames, float value, bool edge)
{
    const int j = blockIdx.y;
    const int64_t whole = frames.whole[j], steps = (s.cols + HS_STEP - 1) / HS_STEP;
    const float far = frames.far[j];
    for (int64_t y = blockIdx.x; y < s.rows; y += gridDim.x) {
        const float *from = s.from + j * s.from_frame + y * s.from_pitch;
        float *to = s.to + j * s.to_frame + y * s.to_pitch;
        for (int64_t i = 0; i < steps; i++) {
            const int64_t x0 = (whole >= 0 ? i : steps - 1 - i) * HS_STEP + threadIdx.x;
            float out[HS_EACH];
#pragma unroll
            for (int k = 0; k < HS_EACH; k++)
                out[k] = x0 + k * MB_THREADS < s.cols
                             ? mb_horizontal_at(from, s.cols, x0 + k * MB_THREADS, whole, far, edge,
                                                value)
                             : 0.0f;
            __syncthreads();
#pragma unroll
            for (int k = 0; k < HS_EACH; k++)
                if (x0 + k * MB_THREADS < s.cols)
                    to[x0 + k * MB_THREADS] = out[k];
            __syncthreads(); /* the edge may be a source of the next step */
        }
    }
}

extern "C" mb_status mb_cuda_horizontal_shift(const mb_op_call *call)
{
    const mb_horizontal_shift_params *p = (const mb_horizontal_shift_params *)call->params;
    mb_frames s =
        mb_frames_of(call->arrays[MB_HORIZONTAL_SHIFT_A], call->arrays[MB_HORIZONTAL_SHIFT_RESULT]);
    if (s.rows == 0 || s.cols == 0)
        return MB_STATUS_OK;
    for (int64_t first = 0; first < s.count; first += HS_FRAMES) {
        hs_frames frames;
        const int64_t n = s.count - first < HS_FRAMES ? s.count - first : HS_FRAMES;
        for (int64_t j = 0; j < n; j++) {
            const mb_vertical_shift_frame f = mb_vertical_shift_at(&p->list, first + j, s.cols);
            frames.whole[j] = (int32_t)f.whole;
            frames.far[j] = f.far;
        }
        const dim3 blocks((unsigned)(s.rows < 1 << 20 ? s.rows : 1 << 20), (unsigned)n);
        horizontal_shift_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(
            s, frames, (float)p->value, p->mode == MB_HORIZONTAL_EDGE);
        MB_LAUNCHED("horizontal_shift_kernel");
        s.from += n * s.from_frame;
        s.to += n * s.to_frame;
    }
    return MB_STATUS_OK;
}
