/*
** Warping on CUDA: a thread computes the place of a pixel once and uses it for several frames,
** four of which it loads before it stores any. Splines: a kernel makes the coefficients of a group
** of frames in shared memory, columns first, with several outputs a thread from one run of
** registers; the other gathers sixteen of them a pixel.
*/
#ifndef MB_CUDA_WARP_CUH
#define MB_CUDA_WARP_CUH

#include "ops/frames.h"
#include "ops/geometry/warp.h"
#include "shared/cuda_launch.cuh"

#define MB_WARP_X 64
#define MB_WARP_Y 8
#define MB_WARP_AHEAD 4   /* frames in flight */
#define MB_WARP_FRAMES 32 /* of a thread, at most */

struct mb_warp_job {
    mb_warp_map map;
    mb_warp_window window;
    mb_frames s;
    const void *table_y, *table_x; /* kind TABLE: f32, or f64 */
    int64_t table_pitch_y, table_step_y, table_pitch_x, table_step_x;
    bool double_y, double_x;
    int64_t rows, cols; /* of the result */
    int mode;
    int each; /* frames of a thread */
    float value;
};

__device__ static inline double mb_warp_table_at(const void *table, bool wide, int64_t i)
{
    return wide ? ((const double *)table)[i] : (double)((const float *)table)[i];
}

/* One pixel in `count` frames of coefficients. */
__device__ static inline void mb_warp_splines(const mb_warp_job &job, mb_warp_tap ty,
                                              mb_warp_tap tx, const float *from, float *to,
                                              int64_t count)
{
    float wy[4], wx[4];
    int64_t rows[4];
    int32_t columns[4];
    const int32_t height = (int32_t)job.window.height, cols = (int32_t)job.window.cols,
                  held = (int32_t)job.s.rows, above = (int32_t)job.window.first;
    mb_warp_spline(ty.far, wy);
    mb_warp_spline(tx.far, wx);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int32_t row = mb_warp_fold(job.mode, ty.low + k - 1, height) - above;
        rows[k] = (row < 0 ? 0 : row < held ? row : held - 1) * job.s.from_pitch;
        columns[k] = mb_warp_fold(job.mode, tx.low + k - 1, cols);
    }
    const bool inside = ty.inside && tx.inside;
    for (int64_t f = 0; f < count; f++, from += job.s.from_frame, to += job.s.to_frame) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float *at = from + rows[k];
            float row = wx[0] * __ldg(at + columns[0]);
            row += wx[1] * __ldg(at + columns[1]);
            row += wx[2] * __ldg(at + columns[2]);
            row += wx[3] * __ldg(at + columns[3]);
            sum += wy[k] * row;
        }
        *to = inside ? sum : job.value;
    }
}

template <mb_warp_kind KIND, bool CUBIC>
__global__ void __launch_bounds__(MB_WARP_X *MB_WARP_Y) mb_warp_kernel(mb_warp_job job)
{
    const int64_t x = blockIdx.x * (int64_t)MB_WARP_X + threadIdx.x;
    const int64_t first = (int64_t)blockIdx.z * job.each;
    const int64_t end = first + job.each < job.s.count ? first + job.each : job.s.count;
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
        const mb_warp_tap ty = mb_warp_tap_at(job.mode, CUBIC, place_y, job.window.height),
                          tx = mb_warp_tap_at(job.mode, CUBIC, place_x, job.window.cols);
        float *to = job.s.to + first * job.s.to_frame + y * job.s.to_pitch + x;
        if (CUBIC) {
            mb_warp_splines(job, ty, tx, job.s.from + first * job.s.from_frame, to, end - first);
            continue;
        }
        int64_t row = ty.low - job.window.first;
        row = row < 0 ? 0 : row < job.s.rows - 1 ? row : job.s.rows - 1;
        const int64_t step_y = ty.far > 0 && row + 1 < job.s.rows ? job.s.from_pitch : 0,
                      step_x = tx.far > 0;
        const bool inside = ty.inside && tx.inside;
        const float *from = job.s.from + first * job.s.from_frame + row * job.s.from_pitch + tx.low;
        for (int64_t f = first; f < end; f += MB_WARP_AHEAD) {
            float value[MB_WARP_AHEAD];
#pragma unroll
            for (int k = 0; k < MB_WARP_AHEAD; k++) {
                if (f + k < end && inside) {
                    const float *at = from + k * job.s.from_frame;
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
                    to[k * job.s.to_frame] = value[k];
            from += MB_WARP_AHEAD * job.s.from_frame;
            to += MB_WARP_AHEAD * job.s.to_frame;
        }
    }
}

static inline int64_t mb_warp_parts(int64_t count, int64_t each)
{
    return (count + each - 1) / each;
}

/* ---- coefficients of splines ---- */

#define MB_WARP_TILE_X 64
#define MB_WARP_TILE_Y 32
#define MB_WARP_WIDE (MB_WARP_TILE_X + 2 * MB_WARP_SPAN)
#define MB_WARP_HIGH (MB_WARP_TILE_Y + 2 * MB_WARP_SPAN)
#define MB_WARP_PITCH (MB_WARP_WIDE + 1) /* odd: threads of a warp read a column without conflict */
#define MB_WARP_RUN 8                    /* outputs of a thread */

struct mb_warp_weights {
    float w[MB_WARP_SPAN + 1];
};

/* MB_WARP_RUN outputs from a run of inputs that are `step` apart. */
__device__ static inline void mb_warp_filter_run(const float *from, int step,
                                                 const mb_warp_weights &weights, float *out)
{
    float in[MB_WARP_RUN + 2 * MB_WARP_SPAN];
#pragma unroll
    for (int i = 0; i < MB_WARP_RUN + 2 * MB_WARP_SPAN; i++)
        in[i] = from[i * step];
#pragma unroll
    for (int i = 0; i < MB_WARP_RUN; i++) {
        float sum = weights.w[0] * in[i + MB_WARP_SPAN];
#pragma unroll
        for (int k = 1; k <= MB_WARP_SPAN; k++)
            sum += weights.w[k] * (in[i + MB_WARP_SPAN - k] + in[i + MB_WARP_SPAN + k]);
        out[i] = sum;
    }
}

/* Coefficients of a tile of a frame: all rows that the part holds. */
__global__ static void __launch_bounds__(MB_THREADS)
    mb_warp_coefficients(mb_warp_job job, mb_warp_weights weights, float *to)
{
    __shared__ float in[MB_WARP_HIGH * MB_WARP_PITCH];
    __shared__ float half[MB_WARP_TILE_Y * MB_WARP_PITCH];
    const int32_t x0 = blockIdx.x * MB_WARP_TILE_X, y0 = blockIdx.y * MB_WARP_TILE_Y;
    const int32_t held = (int32_t)job.s.rows, cols = (int32_t)job.window.cols,
                  above = (int32_t)job.window.first, height = (int32_t)job.window.height;
    const int32_t top = y0 - MB_WARP_SPAN, side = x0 - MB_WARP_SPAN;
    const bool whole = top >= 0 && top + MB_WARP_HIGH <= held && side >= 0 &&
                       side + MB_WARP_WIDE <= cols; /* nothing beyond an edge */
    const float *from = job.s.from + blockIdx.z * job.s.from_frame;
    to += blockIdx.z * job.s.rows * job.window.cols;
    for (int v = threadIdx.x / 32; v < MB_WARP_HIGH; v += MB_THREADS / 32) {
        int32_t y = top + v;
        if (!whole) {
            y = mb_warp_fold(job.mode, above + y, height) - above;
            y = y < 0 ? 0 : y < held ? y : held - 1;
        }
        const float *row = from + y * job.s.from_pitch;
        for (int u = threadIdx.x % 32; u < MB_WARP_WIDE; u += 32) {
            const int32_t x = whole ? side + u : mb_warp_fold(job.mode, side + u, cols);
            in[v * MB_WARP_PITCH + u] = row[x];
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < MB_WARP_WIDE * (MB_WARP_TILE_Y / MB_WARP_RUN); i += MB_THREADS) {
        const int u = i % MB_WARP_WIDE, v = i / MB_WARP_WIDE * MB_WARP_RUN;
        float out[MB_WARP_RUN];
        mb_warp_filter_run(in + v * MB_WARP_PITCH + u, MB_WARP_PITCH, weights, out);
#pragma unroll
        for (int k = 0; k < MB_WARP_RUN; k++)
            half[(v + k) * MB_WARP_PITCH + u] = out[k];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < MB_WARP_TILE_Y * (MB_WARP_TILE_X / MB_WARP_RUN);
         i += MB_THREADS) {
        const int v = i % MB_WARP_TILE_Y, u = i / MB_WARP_TILE_Y * MB_WARP_RUN;
        float out[MB_WARP_RUN];
        mb_warp_filter_run(half + v * MB_WARP_PITCH + u, 1, weights, out);
#pragma unroll
        for (int k = 0; k < MB_WARP_RUN; k++)
            in[v * MB_WARP_PITCH + u + k] = out[k]; /* stored in whole lines below */
    }
    __syncthreads();
    for (int i = threadIdx.x; i < MB_WARP_TILE_Y * MB_WARP_TILE_X; i += MB_THREADS) {
        const int v = i / MB_WARP_TILE_X, u = i % MB_WARP_TILE_X;
        if (y0 + v < held && x0 + u < cols)
            to[(y0 + v) * job.window.cols + x0 + u] = in[v * MB_WARP_PITCH + u];
    }
}

/* The coefficients of job.s.count frames, of which there are 65535 at most. */
static mb_status mb_warp_make_coefficients(const mb_op_call *call, const mb_warp_job &job,
                                           float *to)
{
    mb_warp_weights weights;
    mb_warp_filter(weights.w);
    const dim3 blocks((unsigned)mb_warp_parts(job.window.cols, MB_WARP_TILE_X),
                      (unsigned)mb_warp_parts(job.s.rows, MB_WARP_TILE_Y), (unsigned)job.s.count);
    mb_warp_coefficients<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(job, weights, to);
    return MB_LAUNCH_STATUS("mb_warp_coefficients");
}

/* ---- all frames ---- */

template <mb_warp_kind KIND, bool CUBIC>
static mb_status mb_warp_launch(const mb_op_call *call, const mb_warp_job &job)
{
    const int64_t blocks_y = mb_warp_parts(job.rows, MB_WARP_Y);
    const dim3 threads(MB_WARP_X, MB_WARP_Y),
        blocks((unsigned)mb_warp_parts(job.cols, MB_WARP_X),
               (unsigned)(blocks_y < 65535 ? blocks_y : 65535),
               (unsigned)mb_warp_parts(job.s.count, job.each));
    mb_warp_kernel<KIND, CUBIC><<<blocks, threads, 0, mb_stream(call)>>>(job);
    return MB_LAUNCH_STATUS("mb_warp_kernel");
}

/* What a call's arrays say. */
static inline mb_warp_job mb_warp_job_of(const mb_op_call *call, const mb_warp_params *p,
                                         const mb_warp_map *map, const mb_array *result)
{
    const mb_array *a = call->arrays[0];
    const int rank = a->shape.rank;
    mb_warp_job job = {};
    job.map = *map;
    job.window = mb_warp_window_of(p, &a->shape);
    job.s = mb_frames_of(a, result);
    job.rows = result->shape.dims[rank - 2];
    job.cols = result->shape.dims[rank - 1];
    job.mode = p->mode;
    job.value = (float)p->value;
    return job;
}

/* Frames of a thread: enough blocks for the device, then more frames for each place. */
static inline int mb_warp_each(const mb_warp_job &job)
{
    const int64_t tiles = mb_warp_parts(job.cols, MB_WARP_X) * mb_warp_parts(job.rows, MB_WARP_Y);
    int each = MB_WARP_FRAMES;
    while (each > MB_WARP_AHEAD && tiles * mb_warp_parts(job.s.count, each) < 4096)
        each /= 2;
    return each;
}

template <mb_warp_kind KIND>
static mb_status mb_warp_group_of(const mb_op_call *call, const mb_warp_params *p, mb_warp_job job)
{
    if (p->order == 1) {
        job.each = mb_warp_each(job);
        return mb_warp_launch<KIND, false>(call, job);
    }
    float *coefficients = (float *)call->slots[MB_WARP_COEFFICIENTS];
    MB_TRY(mb_warp_make_coefficients(call, job, coefficients));
    job.s.from = coefficients;
    job.s.from_pitch = job.window.cols;
    job.s.from_frame = job.s.rows * job.window.cols;
    job.each = mb_warp_each(job);
    return mb_warp_launch<KIND, true>(call, job);
}

/* All frames of `a` to `result`. The tables are for kind TABLE alone. */
template <mb_warp_kind KIND>
static mb_status mb_warp_frames(const mb_op_call *call, const mb_warp_params *p,
                                const mb_warp_map *map, const mb_array *result,
                                const mb_array *table_y = NULL, const mb_array *table_x = NULL)
{
    mb_warp_job job = mb_warp_job_of(call, p, map, result);
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
    if (job.s.count == 0 || job.rows == 0 || job.cols == 0)
        return MB_STATUS_OK;
    const int64_t frames = job.s.count, most = 65535; /* blocks along z */
    const int64_t group = p->order == 3 ? mb_warp_group(&call->arrays[0]->shape) : most;
    const int64_t each = group < most ? group : most;
    for (int64_t first = 0; first < frames; first += each) {
        job.s.count = frames - first < each ? frames - first : each;
        MB_TRY(mb_warp_group_of<KIND>(call, p, job));
        job.s.from += job.s.count * job.s.from_frame;
        job.s.to += job.s.count * job.s.to_frame;
    }
    return MB_STATUS_OK;
}

#endif
