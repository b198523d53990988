/*
** overlap_metric on CUDA: a block for each window, a warp for each of its rows in turn. Sums are of
** doubles, in a fixed order.
*/
#include "shared/cuda_launch.cuh"
#include "ops/axis/op_overlap_metric.h"

#define WARPS (MB_THREADS / 32)

__device__ static inline double warp_sum(double value)
{
#pragma unroll
    for (int step = 16; step > 0; step >>= 1)
        value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

struct images {
    const float *first, *second;
    int64_t first_stride, second_stride, rows;
    mb_overlap_window at;
};

/* The factor of a row of the first image's window, for all lanes. */
__device__ static inline double factor_of(const float *a, const float *b, int64_t step,
                                          int64_t window)
{
    double sa = 0, sb = 0;
    for (int64_t i = threadIdx.x % 32; i < window; i += 32) {
        sa += fabsf(a[i]);
        sb += fabsf(b[i * step]);
    }
    return warp_sum(sb) / warp_sum(sa);
}

__global__ void __launch_bounds__(MB_THREADS)
    compare_windows(const __grid_constant__ images m, mb_overlap_metric_params p, float *to,
                    int64_t step, int64_t count)
{
    for (int64_t x = blockIdx.x; x < count; x += gridDim.x) {
        mb_overlap_sums s = {};
        for (int64_t y = threadIdx.x / 32; y < m.rows; y += WARPS) {
            const float *a = m.first + y * m.first_stride + x;
            const float *b = m.second + y * m.second_stride + m.at.start;
            const double factor = p.normalize ? factor_of(a, b, m.at.step, p.window) : 1.0;
            for (int64_t i = threadIdx.x % 32; i < p.window; i += 32) {
                const double va = factor * a[i], vb = b[i * m.at.step];
                s.a += va;
                s.b += vb;
                s.aa += va * va;
                s.bb += vb * vb;
                s.ab += va * vb;
                if (p.blend) {
                    const double ramp = mb_overlap_metric_ramp(i, p.window, p.side);
                    const double vc = ramp * va + (1 - ramp) * vb;
                    s.c += vc;
                    s.cc += vc * vc;
                    s.ac += va * vc;
                    s.bc += vb * vc;
                }
            }
        }
        double *const sums = &s.a;
        for (int k = 0; k < (int)(sizeof s / sizeof(double)); k++)
            sums[k] = mb_block_fold(sums[k], mb_fold_sum());
        if (threadIdx.x == 0)
            to[x * step] = mb_overlap_metric_of(&s, (double)(m.rows * p.window), p.blend);
    }
}

extern "C" mb_status mb_cuda_overlap_metric(const mb_op_call *call)
{
    const mb_overlap_metric_params *p = (const mb_overlap_metric_params *)call->params;
    const mb_array *first = call->arrays[MB_OVERLAP_METRIC_FIRST];
    const mb_array *second = call->arrays[MB_OVERLAP_METRIC_SECOND];
    const mb_array *result = call->arrays[MB_OVERLAP_METRIC_RESULT];
    const int64_t count = result->shape.dims[0];
    images m;
    m.first = (const float *)first->data;
    m.second = (const float *)second->data;
    m.first_stride = first->strides[0];
    m.second_stride = second->strides[0];
    m.rows = first->shape.dims[0];
    m.at = mb_overlap_metric_window(p, second->shape.dims[1]);
    compare_windows<<<(unsigned)(count < 65535 ? count : 65535), MB_THREADS, 0, mb_stream(call)>>>(
        m, *p, (float *)result->data, result->strides[0], count);
    return MB_LAUNCH_STATUS("compare_windows");
}
