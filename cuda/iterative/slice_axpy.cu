/*
** slice_axpy on CUDA.
*/
#include "iterative/slice_walk.cuh"
#include "ops/iterative/op_slice_axpy.h"

/* to = from + factor * b for a row, of which `to` may be one or the other; LESS: b - less, where
** less may be `from`. */
template <bool FOURS, bool LESS>
__device__ static inline void combine_row(float *to, const float *from, const float *b,
                                          const float *less, mb_circle_run run, float factor)
{
    SLICE_FOURS(first, run)
    {
        slice_four old[SLICE_BATCH], a[SLICE_BATCH], v[SLICE_BATCH], c[SLICE_BATCH];
#pragma unroll
        for (int k = 0; k < SLICE_BATCH; k++) {
            const int x = first + k * 4 * MB_THREADS;
            a[k] = slice_load<FOURS>(from, x, run);
            v[k] = factor != 0 || b == to ? slice_load<FOURS>(b, x, run) : slice_four{};
            old[k] = to == from ? a[k] : v[k];
            c[k] = !LESS || factor == 0 ? slice_four{}
                   : less == from       ? a[k]
                                        : slice_load<FOURS>(less, x, run);
        }
#pragma unroll
        for (int k = 0; k < SLICE_BATCH; k++) {
            const int x = first + k * 4 * MB_THREADS;
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (slice_has(run, x + j)) /* with the factor 0 b may be anything */
                    old[k].v[j] =
                        factor != 0
                            ? fmaf(factor, LESS ? v[k].v[j] - c[k].v[j] : v[k].v[j], a[k].v[j])
                            : a[k].v[j];
            slice_store<FOURS>(to, x, run, old[k]);
        }
    }
}

template <bool FOURS, bool LESS>
__global__ static void __launch_bounds__(MB_THREADS)
    slice_axpy_kernel(const mb_slices slices, const mb_slice_view dst, const mb_slice_view other,
                      const mb_slice_view less, const mb_slice_factor factor, double scale,
                      bool of_dst)
{
    __shared__ mb_circle_run runs[MB_THREADS];
    SLICE_SEGMENTS(item, slices)
    {
        const slice_segment s(slices, item);
        const float f = (float)(scale * (double)mb_slice_factor_at(&factor, s.slice));
        if (f == 0 && !of_dst)
            continue;
        for (int64_t y = s.first; y < s.end; y++) {
            float *to = mb_slice_row(&dst, s.slice, y);
            const float *b = mb_slice_row(&other, s.slice, y);
            if ((y - s.first) % MB_THREADS == 0)
                slice_runs(runs, slices, y, s.end);
            combine_row<FOURS, LESS>(to, of_dst ? b : to, of_dst ? to : b,
                                     LESS ? mb_slice_row(&less, s.slice, y) : NULL,
                                     runs[(y - s.first) % MB_THREADS], f);
        }
    }
}

extern "C" mb_status mb_cuda_slice_axpy(const mb_op_call *call)
{
    const mb_slice_axpy_params *p = (const mb_slice_axpy_params *)call->params;
    const mb_array *dst = call->arrays[MB_SLICE_AXPY_DST_ARRAY];
    const mb_slices slices = mb_slices_of(&dst->shape, p->circle);
    const mb_slice_view to = mb_slice_view_of(dst),
                        other = mb_slice_view_of(call->arrays[MB_SLICE_AXPY_OTHER_ARRAY]),
                        less = mb_slice_view_of(call->arrays[MB_SLICE_AXPY_LESS]);
    const bool fours = slice_by_fours(to, slices.nx) && slice_by_fours(other, slices.nx) &&
                       (!less.data || slice_by_fours(less, slices.nx));
    const auto kernel =
        less.data ? (fours ? slice_axpy_kernel<true, true> : slice_axpy_kernel<false, true>)
                  : (fours ? slice_axpy_kernel<true, false> : slice_axpy_kernel<false, false>);
    kernel<<<slice_blocks(&slices), MB_THREADS, 0, mb_stream(call)>>>(
        slices, to, other, less,
        mb_slice_factor_of(call->arrays[MB_SLICE_AXPY_GROWTH], call->arrays[MB_SLICE_AXPY_OVER]),
        p->scale, p->of == MB_SLICE_AXPY_DST);
    MB_LAUNCHED("slice_axpy_kernel");
    return MB_STATUS_OK;
}
