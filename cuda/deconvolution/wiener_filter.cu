/*
** wiener_filter on CUDA: the regularized inverse of a transfer function, in place.
*/
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_wiener_filter.h"

__device__ static inline float laplacian(int64_t k, int64_t n)
{
    float s = sinpif((float)((double)k / (double)n));
    return 4 * s * s;
}

__global__ void __launch_bounds__(MB_THREADS)
    wiener_kernel(float2 *a, const float2 *h, mb_grid3 d, int64_t n, float lambda, float scale,
                  bool smooth)
{
    const int64_t rows = d.v[0] * d.v[1];
    MB_ROW_LOOP(row, rows)
    {
        float outer =
            smooth ? laplacian(row / d.v[1], d.v[0]) + laplacian(row % d.v[1], d.v[1]) : 1;
        MB_LANE_LOOP(x, d.v[2])
        {
            float2 v = a[row * d.v[2] + x], w = h[row * d.v[2] + x];
            float r = smooth ? outer + laplacian(x, n) : 1.0f;
            float bottom = w.x * w.x + w.y * w.y + lambda * r * r,
                  factor = bottom > 0 ? scale / bottom : 0.0f;
            a[row * d.v[2] + x] =
                make_float2((v.x * w.x + v.y * w.y) * factor, (v.y * w.x - v.x * w.y) * factor);
        }
    }
}

extern "C" mb_status mb_cuda_wiener_filter(const mb_op_call *call)
{
    const mb_wiener_filter_params *p = (const mb_wiener_filter_params *)call->params;
    const mb_array *a = call->arrays[MB_WIENER_FILTER_A];
    mb_grid3 d;
    mb_grid_dims(&a->shape, d.v);
    wiener_kernel<<<mb_row_blocks(d.v[0] * d.v[1]), MB_THREADS, 0, mb_stream(call)>>>(
        (float2 *)a->data, (const float2 *)call->arrays[MB_WIENER_FILTER_OTF]->data, d,
        mb_wiener_filter_samples(p, d.v[2]), (float)p->lambda, (float)p->scale, p->laplacian);
    MB_LAUNCHED("wiener_kernel");
    return MB_STATUS_OK;
}
