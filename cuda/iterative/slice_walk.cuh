/*
** Segments of the rows of slices on CUDA (slice_rows.h): a thread block has one at a time. Sums of
** segments are added by a second kernel, in order.
*/
#ifndef MB_CUDA_SLICE_WALK_CUH
#define MB_CUDA_SLICE_WALK_CUH

#include "ops/iterative/slice_rows.h"
#include "shared/cuda_launch.cuh"

#define SLICE_BATCH 4 /* pixels of a thread whose loads come before their stores */

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

static inline unsigned slice_blocks(const mb_op_call *call, const mb_slices *slices)
{
    return mb_blocks(call, slices->count * slices->segments, 1);
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
