/*
** cgls_update on CUDA.
*/
#include "iterative/slice_walk.cuh"
#include "ops/iterative/op_cgls_update.h"

struct cgls_vectors {
    mb_slice_view x, r, p, q;
};

/* One row; returns what this thread adds to the sum of squares. */
__device__ static inline double step_row(float *x, float *r, const float *p, const float *q,
                                         mb_circle_run run, float factor)
{
    double sum = 0;
    for (int first = run.first + threadIdx.x; first < run.end; first += MB_THREADS * SLICE_BATCH) {
        float a[SLICE_BATCH], b[SLICE_BATCH];
#pragma unroll
        for (int k = 0; k < SLICE_BATCH; k++) {
            const int i = first + k * MB_THREADS;
            const bool in = i < run.end;
            a[k] = in ? fmaf(factor, p[i], x[i]) : 0.0f;
            b[k] = in ? fmaf(-factor, q[i], r[i]) : 0.0f;
        }
#pragma unroll
        for (int k = 0; k < SLICE_BATCH; k++) {
            const int i = first + k * MB_THREADS;
            sum += (double)b[k] * (double)b[k];
            if (i < run.end) {
                x[i] = a[k];
                r[i] = b[k];
            }
        }
    }
    return sum;
}

__global__ static void __launch_bounds__(MB_THREADS)
    cgls_update_kernel(const mb_slices slices, const cgls_vectors v, const mb_slice_factor factor,
                       double *partials)
{
    SLICE_SEGMENTS(item, slices)
    {
        const slice_segment s(slices, item);
        const float f = mb_slice_factor_at(&factor, s.slice);
        double sum = 0;
        for (int64_t y = s.first; y < s.end; y++)
            sum += step_row(mb_slice_row(&v.x, s.slice, y), mb_slice_row(&v.r, s.slice, y),
                            mb_slice_row(&v.p, s.slice, y), mb_slice_row(&v.q, s.slice, y),
                            mb_circle_row(&slices.circle, y, slices.nx), f);
        sum = mb_block_fold(sum, mb_fold_sum());
        if (threadIdx.x == 0)
            partials[item] = sum;
    }
}

extern "C" mb_status mb_cuda_cgls_update(const mb_op_call *call)
{
    const mb_cgls_update_params *p = (const mb_cgls_update_params *)call->params;
    const mb_slices slices = mb_slices_of(&call->arrays[MB_CGLS_UPDATE_X]->shape, p->circle);
    const cgls_vectors v = {mb_slice_view_of(call->arrays[MB_CGLS_UPDATE_X]),
                            mb_slice_view_of(call->arrays[MB_CGLS_UPDATE_R]),
                            mb_slice_view_of(call->arrays[MB_CGLS_UPDATE_P]),
                            mb_slice_view_of(call->arrays[MB_CGLS_UPDATE_Q])};
    double *partials = (double *)call->slots[MB_CGLS_UPDATE_PARTIALS];
    cgls_update_kernel<<<slice_blocks(call, &slices), MB_THREADS, 0, mb_stream(call)>>>(
        slices, v,
        mb_slice_factor_of(call->arrays[MB_CGLS_UPDATE_GROWTH], call->arrays[MB_CGLS_UPDATE_OVER]),
        partials);
    MB_LAUNCHED("cgls_update_kernel");
    return slice_add(call, &slices, partials, call->arrays[MB_CGLS_UPDATE_SQUARES]);
}
