/*
** Warping on CUDA: a thread computes the place of a pixel once and uses it for several frames, four
** of which it loads before it stores any.
*/
#ifndef MB_CUDA_WARP_CUH
#define MB_CUDA_WARP_CUH

#include "ops/geometry/warp.h"
#include "shared/cuda_launch.cuh"

#define MB_WARP_X 32
#define MB_WARP_Y 8
#define MB_WARP_AHEAD 4   /* frames in flight */
#define MB_WARP_FRAMES 32 /* of a thread, at most */

struct mb_warp_job {
    mb_warp_map map;
    mb_warp_window window;
    const float *from;
    float *to;
    const void *table_y, *table_x; /* kind TABLE: f32, or f64 */
    int64_t table_pitch_y, table_step_y, table_pitch_x, table_step_x;
    bool double_y, double_x;
    int64_t from_frame, from_pitch, to_frame, to_pitch;
    int64_t frames, rows, cols; /* of the result; `held`: rows of `from` */
    int64_t held;
    int each; /* frames of a thread */
    float value;
};

__device__ static inline double mb_warp_table_at(const void *table, bool wide, int64_t i)
{
    return wide ? ((const double *)table)[i] : (double)((const float *)table)[i];
}

template <mb_warp_kind KIND, int MODE>
__global__ void __launch_bounds__(MB_WARP_X *MB_WARP_Y) mb_warp_kernel(mb_warp_job job)
{
    const int64_t x = blockIdx.x * (int64_t)MB_WARP_X + threadIdx.x;
    const int64_t first = (int64_t)blockIdx.z * job.each;
    const int64_t end = first + job.each < job.frames ? first + job.each : job.frames;
    if (x >= job.cols)
        return;
    for (int64_t y = blockIdx.y * (int64_t)MB_WARP_Y + threadIdx.y; y < job.rows;
         y += (int64_t)gridDim.y * MB_WARP_Y) {
        double place_y, place_x;
        if (KIND == MB_WARP_TABLE) {
            place_y = mb_warp_table_at(job.table_y, job.double_y,
                                       y * job.table_pitch_y + x * job.table_step_y);
            place_x = mb_warp_table_at(job.table_x, job.double_x,
                                       y * job.table_pitch_x + x * job.table_step_x);
        } else {
            mb_warp_at(KIND, &job.map, (double)(job.window.from + y), (double)x, &place_y,
                       &place_x);
        }
        const mb_warp_tap ty = mb_warp_tap_at(MODE, place_y, job.window.height),
                          tx = mb_warp_tap_at(MODE, place_x, job.window.cols);
        int64_t row = ty.low - job.window.first;
        row = row < 0 ? 0 : row < job.held - 1 ? row : job.held - 1;
        const int64_t step_y = ty.far > 0 && row + 1 < job.held ? job.from_pitch : 0,
                      step_x = tx.far > 0;
        const bool inside = ty.inside && tx.inside;
        const float *from = job.from + first * job.from_frame + row * job.from_pitch + tx.low;
        float *to = job.to + first * job.to_frame + y * job.to_pitch + x;
        for (int64_t f = first; f < end; f += MB_WARP_AHEAD) {
            float value[MB_WARP_AHEAD];
#pragma unroll
            for (int k = 0; k < MB_WARP_AHEAD; k++) {
                if (f + k < end && inside) {
                    const float *at = from + k * job.from_frame;
                    const float above = mb_warp_mix(__ldg(at), __ldg(at + step_x), tx.far);
                    const float below =
                        mb_warp_mix(__ldg(at + step_y), __ldg(at + step_y + step_x), tx.far);
                    value[k] = mb_warp_mix(above, below, ty.far);
                } else {
                    value[k] = job.value;
                }
            }
#pragma unroll
            for (int k = 0; k < MB_WARP_AHEAD; k++)
                if (f + k < end)
                    to[k * job.to_frame] = value[k];
            from += MB_WARP_AHEAD * job.from_frame;
            to += MB_WARP_AHEAD * job.to_frame;
        }
    }
}

static inline int64_t mb_warp_parts(int64_t count, int64_t each)
{
    return (count + each - 1) / each;
}

template <mb_warp_kind KIND>
static mb_status mb_warp_launch(const mb_op_call *call, const mb_warp_job &job, int mode)
{
    const int64_t blocks_y = mb_warp_parts(job.rows, MB_WARP_Y);
    const dim3 threads(MB_WARP_X, MB_WARP_Y),
        blocks((unsigned)mb_warp_parts(job.cols, MB_WARP_X),
               (unsigned)(blocks_y < 65535 ? blocks_y : 65535),
               (unsigned)mb_warp_parts(job.frames, job.each));
    cudaStream_t stream = mb_stream(call);
    switch (mode) {
    case MB_WARP_CONSTANT:
        mb_warp_kernel<KIND, MB_WARP_CONSTANT><<<blocks, threads, 0, stream>>>(job);
        break;
    case MB_WARP_EDGE:
        mb_warp_kernel<KIND, MB_WARP_EDGE><<<blocks, threads, 0, stream>>>(job);
        break;
    case MB_WARP_REFLECT:
        mb_warp_kernel<KIND, MB_WARP_REFLECT><<<blocks, threads, 0, stream>>>(job);
        break;
    default: mb_warp_kernel<KIND, MB_WARP_SYMMETRIC><<<blocks, threads, 0, stream>>>(job);
    }
    MB_LAUNCHED("mb_warp_kernel");
    return MB_STATUS_OK;
}

/* All frames of `a` to `result`. The tables are for kind TABLE alone. */
template <mb_warp_kind KIND>
static mb_status mb_warp_frames(const mb_op_call *call, const mb_warp_params *p,
                                const mb_warp_map *map, const mb_array *result,
                                const mb_array *table_y = NULL, const mb_array *table_x = NULL)
{
    const mb_array *a = call->arrays[0];
    const int rank = a->shape.rank;
    mb_warp_job job = {};
    job.map = *map;
    job.window = mb_warp_window_of(p, &a->shape);
    job.frames = rank == 3 ? a->shape.dims[0] : 1;
    job.rows = result->shape.dims[rank - 2];
    job.cols = result->shape.dims[rank - 1];
    job.held = a->shape.dims[rank - 2];
    job.from_frame = rank == 3 ? a->strides[0] : 0;
    job.to_frame = rank == 3 ? result->strides[0] : 0;
    job.from_pitch = a->strides[rank - 2];
    job.to_pitch = result->strides[rank - 2];
    job.value = (float)p->value;
    if (table_y) {
        job.table_y = table_y->data;
        job.table_x = table_x->data;
        job.table_pitch_y = table_y->strides[0];
        job.table_step_y = table_y->strides[1];
        job.table_pitch_x = table_x->strides[0];
        job.table_step_x = table_x->strides[1];
        job.double_y = table_y->dtype == MB_F64;
        job.double_x = table_x->dtype == MB_F64;
    }
    if (job.frames == 0 || job.rows == 0 || job.cols == 0)
        return MB_STATUS_OK;
    /* Enough blocks for the device, then more frames for each place. */
    const int64_t tiles = mb_warp_parts(job.cols, MB_WARP_X) * mb_warp_parts(job.rows, MB_WARP_Y);
    job.each = MB_WARP_FRAMES;
    while (job.each > MB_WARP_AHEAD && tiles * mb_warp_parts(job.frames, job.each) < 4096)
        job.each /= 2;
    /* Blocks along z are few, so that frames beyond them are further launches. */
    const int64_t most = 32768 * (int64_t)job.each, frames = job.frames;
    for (int64_t first = 0; first < frames; first += most) {
        job.frames = frames - first < most ? frames - first : most;
        job.from = (const float *)a->data + first * job.from_frame;
        job.to = (float *)result->data + first * job.to_frame;
        const mb_status status = mb_warp_launch<KIND>(call, job, p->mode);
        if (status != MB_STATUS_OK)
            return status;
    }
    return MB_STATUS_OK;
}

#endif
