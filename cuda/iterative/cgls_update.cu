/*
** cgls_update on CUDA.
*/
#include "iterative/slice_walk.cuh"
#include "ops/iterative/op_cgls_update.h"

struct cgls_vectors {
    mb_slice_view x, r, p, q;
};

/* One row; returns what this thread adds to the sum of squares. */
template <bool FOURS>
__device__ static inline double step_row(float *x, float *r, const float *p, const float *q,
                                         mb_circle_run run, float factor)
{
    double sum = 0;
    SLICE_FOURS(first, run)
    {
        slice_four a[SLICE_BATCH], b[SLICE_BATCH], along[SLICE_BATCH], change[SLICE_BATCH];
#pragma unroll
        for (int k = 0; k < SLICE_BATCH; k++) {
            const int i = first + k * 4 * MB_THREADS;
            a[k] = slice_load<FOURS>(x, i, run);
            b[k] = slice_load<FOURS>(r, i, run);
            along[k] = slice_load<FOURS>(p, i, run);
            change[k] = slice_load<FOURS>(q, i, run);
        }
#pragma unroll
        for (int k = 0; k < SLICE_BATCH; k++) {
            const int i = first + k * 4 * MB_THREADS;
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (slice_has(run, i + j)) {
                    a[k].v[j] = fmaf(factor, along[k].v[j], a[k].v[j]);
                    b[k].v[j] = fmaf(-factor, change[k].v[j], b[k].v[j]);
                    sum += (double)b[k].v[j] * (double)b[k].v[j];
                }
            slice_store<FOURS>(x, i, run, a[k]);
            slice_store<FOURS>(r, i, run, b[k]);
        }
    }
    return sum;
}

template <bool FOURS>
__global__ static void __launch_bounds__(MB_THREADS)
    cgls_update_kernel(const mb_slices slices, const cgls_vectors v, const mb_slice_factor factor,
                       double *partials)
{
    __shared__ mb_circle_run runs[MB_THREADS];
    SLICE_SEGMENTS(item, slices)
    {
        const slice_segment s(slices, item);
        const float f = mb_slice_factor_at(&factor, s.slice);
        double sum = 0;
        for (int64_t y = s.first; y < s.end; y++) {
            if ((y - s.first) % MB_THREADS == 0)
                slice_runs(runs, slices, y, s.end);
            sum += step_row<FOURS>(mb_slice_row(&v.x, s.slice, y), mb_slice_row(&v.r, s.slice, y),
                                   mb_slice_row(&v.p, s.slice, y), mb_slice_row(&v.q, s.slice, y),
                                   runs[(y - s.first) % MB_THREADS], f);
        }
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
    const bool fours = slice_by_fours(v.x, slices.nx) && slice_by_fours(v.r, slices.nx) &&
                       slice_by_fours(v.p, slices.nx) && slice_by_fours(v.q, slices.nx);
    const auto kernel = fours ? cgls_update_kernel<true> : cgls_update_kernel<false>;
    kernel<<<slice_blocks(&slices), MB_THREADS, 0, mb_stream(call)>>>(
        slices, v,
        mb_slice_factor_of(call->arrays[MB_CGLS_UPDATE_GROWTH], call->arrays[MB_CGLS_UPDATE_OVER]),
        partials);
    MB_LAUNCHED("cgls_update_kernel");
    return slice_add(call, &slices, partials, call->arrays[MB_CGLS_UPDATE_SQUARES]);
}
