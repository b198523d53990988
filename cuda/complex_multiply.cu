/*
** complex_multiply on CUDA: a spectrum times a transfer function (or its conjugate), in place.
*/
#include "cuda_complex.cuh"
#include "cuda_launch.cuh"
#include "ops/op_complex_multiply.h"

template <bool BATCH>
__global__ void __launch_bounds__(MB_THREADS)
    complex_multiply_kernel(float2 *a, const float2 *b, int64_t count, int64_t period, float scale,
                            float sign)
{
    MB_BATCH_LOOP(first, count)
    {
        float2 x[MB_BATCH], y[MB_BATCH];
#pragma unroll
        for (int k = 0; k < MB_BATCH; k++) {
            int64_t i = first + k * MB_THREADS;
            if (i < count) {
                x[k] = a[i];
                y[k] = b[BATCH ? i % period : i];
            }
        }
#pragma unroll
        for (int k = 0; k < MB_BATCH; k++) {
            int64_t i = first + k * MB_THREADS;
            if (i < count)
                a[i] = mb_complex_mul(x[k], make_float2(y[k].x * scale, y[k].y * scale * sign));
        }
    }
}

extern "C" mb_status mb_cuda_complex_multiply(const mb_op_call *call)
{
    const mb_complex_multiply_params *p = (const mb_complex_multiply_params *)call->params;
    const mb_array *a = call->arrays[MB_COMPLEX_MULTIPLY_A],
                   *b = call->arrays[MB_COMPLEX_MULTIPLY_B];
    int64_t count = 1, period = 1;
    for (int i = 0; i < a->shape.rank; i++)
        count *= a->shape.dims[i];
    for (int i = 0; i < b->shape.rank; i++)
        period *= b->shape.dims[i];
    if (count == 0)
        return MB_STATUS_OK;
    unsigned blocks = mb_blocks(call, count, MB_THREADS * MB_BATCH);
    float scale = (float)p->scale, sign = p->conj ? -1.0f : 1.0f;
    if (count == period)
        complex_multiply_kernel<false><<<blocks, MB_THREADS, 0, mb_stream(call)>>>(
            (float2 *)a->data, (const float2 *)b->data, count, period, scale, sign);
    else
        complex_multiply_kernel<true><<<blocks, MB_THREADS, 0, mb_stream(call)>>>(
            (float2 *)a->data, (const float2 *)b->data, count, period, scale, sign);
    MB_LAUNCHED("complex_multiply_kernel");
    return MB_STATUS_OK;
}
