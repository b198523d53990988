/*
** slice_dot on CUDA.
*/
#include "iterative/slice_walk.cuh"
#include "ops/iterative/op_slice_dot.h"

__global__ static void __launch_bounds__(MB_THREADS)
    slice_dot_kernel(const mb_slices slices, const mb_slice_view a, const mb_slice_view b,
                     double *partials)
{
    __shared__ mb_circle_run runs[MB_THREADS];
    SLICE_SEGMENTS(item, slices)
    {
        const slice_segment s(slices, item);
        double sum = 0;
        for (int64_t y = s.first; y < s.end; y++) {
            if ((y - s.first) % MB_THREADS == 0)
                slice_runs(runs, slices, y, s.end);
            const mb_circle_run run = runs[(y - s.first) % MB_THREADS];
            const float *one = mb_slice_row(&a, s.slice, y), *two = mb_slice_row(&b, s.slice, y);
#pragma unroll 4
            for (int x = run.first + threadIdx.x; x < run.end; x += MB_THREADS)
                sum += (double)one[x] * (double)two[x];
        }
        sum = mb_block_fold(sum, mb_fold_sum());
        if (threadIdx.x == 0)
            partials[item] = sum;
    }
}

extern "C" mb_status mb_cuda_slice_dot(const mb_op_call *call)
{
    const mb_slice_dot_params *p = (const mb_slice_dot_params *)call->params;
    const mb_array *a = call->arrays[MB_SLICE_DOT_A];
    const mb_slices slices = mb_slices_of(&a->shape, p->circle);
    double *partials = (double *)call->slots[MB_SLICE_DOT_PARTIALS];
    slice_dot_kernel<<<slice_blocks(&slices), MB_THREADS, 0, mb_stream(call)>>>(
        slices, mb_slice_view_of(a), mb_slice_view_of(call->arrays[MB_SLICE_DOT_B]), partials);
    MB_LAUNCHED("slice_dot_kernel");
    return slice_add(call, &slices, partials, call->arrays[MB_SLICE_DOT_RESULT]);
}
