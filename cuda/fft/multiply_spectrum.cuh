/*
** The product of a spectrum with a factor, in place, for the operators that are or contain one.
*/
#ifndef MB_CUDA_MULTIPLY_SPECTRUM_CUH
#define MB_CUDA_MULTIPLY_SPECTRUM_CUH

#include "shared/cuda_complex.cuh"
#include "shared/cuda_launch.cuh"

/* One rounding of one product in every instance of the kernel: left to itself a compiler may fuse
** either product with the sum. */
__device__ static __forceinline__ float2 mb_spectrum_product(float2 x, float2 y)
{
    return make_float2(__fmaf_rn(x.x, y.x, -__fmul_rn(x.y, y.y)),
                       __fmaf_rn(x.x, y.y, __fmul_rn(x.y, y.x)));
}

template <bool BATCH>
__global__ static void __launch_bounds__(MB_THREADS)
    mb_multiply_spectrum_kernel(float2 *a, const float2 *b, int64_t count, int64_t period,
                                float scale, float sign)
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
                a[i] =
                    mb_spectrum_product(x[k], make_float2(y[k].x * scale, y[k].y * scale * sign));
        }
    }
}

/* Multiplies a, `count` complex numbers, by b (`period` numbers, repeated) or its conjugate, and by
** scale. */
static inline mb_status mb_cuda_multiply_spectrum(const mb_op_call *call, float2 *a,
                                                  const float2 *b, int64_t count, int64_t period,
                                                  double scale, bool conj)
{
    if (count == 0)
        return MB_STATUS_OK;
    unsigned blocks = mb_blocks(call, count, MB_THREADS * MB_BATCH);
    float factor = (float)scale, sign = conj ? -1.0f : 1.0f;
    if (count == period)
        mb_multiply_spectrum_kernel<false>
            <<<blocks, MB_THREADS, 0, mb_stream(call)>>>(a, b, count, period, factor, sign);
    else
        mb_multiply_spectrum_kernel<true>
            <<<blocks, MB_THREADS, 0, mb_stream(call)>>>(a, b, count, period, factor, sign);
    return MB_LAUNCH_STATUS("mb_multiply_spectrum_kernel");
}

#endif
