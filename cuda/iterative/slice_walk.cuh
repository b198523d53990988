/*
** Segments of the rows of slices on CUDA (slice_rows.h): a thread block has one at a time. Sums of
** segments are added by a second kernel, in order.
*/
#ifndef MB_CUDA_SLICE_WALK_CUH
#define MB_CUDA_SLICE_WALK_CUH

#include "ops/iterative/slice_rows.h"
#include "shared/cuda_launch.cuh"

#define SLICE_BATCH 2 /* groups of four pixels of a thread whose loads come before their stores */

#define SLICE_SEGMENTS(item, slices)                                                               \
    for (int64_t item = blockIdx.x; item < (slices).count * (slices).segments; item += gridDim.x)

/* The rows of segment `item`: of slice `slice`, y from `first` to `end` - 1. */
struct slice_segment {
    int64_t slice, first, end;

    __device__ __forceinline__ slice_segment(const mb_slices &slices, int64_t item)
        : slice(item / slices.segments)
    {
        const int64_t segment = item - slice * slices.segments;
        first = mb_slice_first(segment, slices.segments, slices.ny);
        end = mb_slice_first(segment + 1, slices.segments, slices.ny);
    }
};

/* The pixels of the rows y in the circle, for the whole block: up to MB_THREADS rows. */
__device__ static inline void slice_runs(mb_circle_run *runs, const mb_slices &slices, int64_t y,
                                         int64_t end)
{
    __syncthreads(); /* the earlier ones have been read */
    if (y + threadIdx.x < end)
        runs[threadIdx.x] = mb_circle_row(&slices.circle, y + threadIdx.x, slices.nx);
    __syncthreads();
}

/* The groups of four pixels of a thread, the first one at a multiple of four. Which pixels are a
** thread's does not depend on FOURS, which says that they are loaded and stored together. */
#define SLICE_FOURS(at, run)                                                                       \
    for (int at = ((run).first & ~3) + 4 * threadIdx.x; at < (run).end;                            \
         at += 4 * MB_THREADS * SLICE_BATCH)

struct slice_four {
    float v[4];
};

__device__ static __forceinline__ bool slice_has(mb_circle_run run, int x)
{
    return x >= run.first && x < run.end;
}

/* Pixels outside the run count as 0 where they are not loaded. */
template <bool FOURS>
__device__ static __forceinline__ slice_four slice_load(const float *row, int x, mb_circle_run run)
{
    slice_four four = {};
    if (FOURS && x < run.end) {
        const float4 a = *(const float4 *)(row + x);
        four = {a.x, a.y, a.z, a.w};
    }
    if (!FOURS)
#pragma unroll
        for (int i = 0; i < 4; i++)
            four.v[i] = slice_has(run, x + i) ? row[x + i] : 0.0f;
    return four;
}

/* With FOURS pixels outside the run get what was loaded there. */
template <bool FOURS>
__device__ static __forceinline__ void slice_store(float *row, int x, mb_circle_run run,
                                                   const slice_four &four)
{
    if (FOURS && x < run.end)
        *(float4 *)(row + x) = make_float4(four.v[0], four.v[1], four.v[2], four.v[3]);
    if (!FOURS)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (slice_has(run, x + i))
                row[x + i] = four.v[i];
}

/* Can pixels of rows of nx be loaded by fours? */
static inline bool slice_by_fours(const mb_slice_view &view, int64_t nx)
{
    return (uintptr_t)view.data % 16 == 0 && view.slice % 4 == 0 && view.row % 4 == 0 &&
           nx % 4 == 0;
}

/* A block for each segment where the device takes as many: segments of a mask's rim are short, and
** blocks of several would end at different times. */
static inline unsigned slice_blocks(const mb_slices *slices)
{
    const int64_t segments = slices->count * slices->segments, most = (int64_t)1 << 30;
    return (unsigned)(segments < 1 ? 1 : segments < most ? segments : most);
}

/* A block for each slice. */
__global__ static void __launch_bounds__(MB_THREADS)
    slice_sums(const double *partials, int64_t segments, double *sums, int64_t step)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < segments; i += MB_THREADS)
        sum += partials[blockIdx.x * segments + i];
    sum = mb_block_fold(sum, mb_fold_sum());
    if (threadIdx.x == 0)
        sums[blockIdx.x * step] = sum;
}

static inline mb_status slice_add(const mb_op_call *call, const mb_slices *slices,
                                  const double *partials, const mb_array *sums)
{
    if (slices->count == 0)
        return MB_STATUS_OK;
    slice_sums<<<(unsigned)slices->count, MB_THREADS, 0, mb_stream(call)>>>(
        partials, slices->segments, (double *)sums->data, sums->strides[0]);
    MB_LAUNCHED("slice_sums");
    return MB_STATUS_OK;
}

#endif
