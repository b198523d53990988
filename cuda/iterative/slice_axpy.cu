/*
** slice_axpy on CUDA.
*/
#include "iterative/slice_walk.cuh"
#include "ops/iterative/op_slice_axpy.h"

/* to = from + factor * b for a row, of which `to` may be one or the other. */
__device__ static inline void combine_row(float *to, const float *from, const float *b,
                                          mb_circle_run run, float factor)
{
    for (int x = run.first + threadIdx.x; x < run.end; x += MB_THREADS * SLICE_BATCH) {
        float v[SLICE_BATCH];
#pragma unroll
        for (int k = 0; k < SLICE_BATCH; k++) {
            const int i = x + k * MB_THREADS;
            v[k] = i < run.end ? from[i] : 0.0f;
            if (i < run.end && factor != 0) /* else b may be anything */
                v[k] = fmaf(factor, b[i], v[k]);
        }
#pragma unroll
        for (int k = 0; k < SLICE_BATCH; k++)
            if (x + k * MB_THREADS < run.end)
                to[x + k * MB_THREADS] = v[k];
    }
}

__global__ static void __launch_bounds__(MB_THREADS)
    slice_axpy_kernel(const mb_slices slices, const mb_slice_view dst, const mb_slice_view other,
                      const mb_slice_factor factor, double scale, bool of_dst)
{
    SLICE_SEGMENTS(item, slices)
    {
        const slice_segment s(slices, item);
        const float f = (float)(scale * (double)mb_slice_factor_at(&factor, s.slice));
        if (f == 0 && !of_dst)
            continue;
        for (int64_t y = s.first; y < s.end; y++) {
            float *to = mb_slice_row(&dst, s.slice, y);
            const float *b = mb_slice_row(&other, s.slice, y);
            combine_row(to, of_dst ? b : to, of_dst ? to : b,
                        mb_circle_row(&slices.circle, y, slices.nx), f);
        }
    }
}

extern "C" mb_status mb_cuda_slice_axpy(const mb_op_call *call)
{
    const mb_slice_axpy_params *p = (const mb_slice_axpy_params *)call->params;
    const mb_array *dst = call->arrays[MB_SLICE_AXPY_DST_ARRAY];
    const mb_slices slices = mb_slices_of(&dst->shape, p->circle);
    slice_axpy_kernel<<<slice_blocks(call, &slices), MB_THREADS, 0, mb_stream(call)>>>(
        slices, mb_slice_view_of(dst), mb_slice_view_of(call->arrays[MB_SLICE_AXPY_OTHER_ARRAY]),
        mb_slice_factor_of(call->arrays[MB_SLICE_AXPY_GROWTH], call->arrays[MB_SLICE_AXPY_OVER]),
        p->scale, p->of == MB_SLICE_AXPY_DST);
    MB_LAUNCHED("slice_axpy_kernel");
    return MB_STATUS_OK;
}
