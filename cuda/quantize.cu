/*
** quantize on CUDA: one pass, eight values a thread, one atomic of each counter a warp. Counters are integers, so their
** atomics give the same numbers in any order.
*/
#include "cuda_launch.cuh"
#include "ops/op_quantize.h"

typedef unsigned long long tally;

#define VALUES 8

__device__ static inline void store(uint8_t *to, float v, double low, double high, double scale,
                                    double steps, unsigned *outside)
{
    *to = (uint8_t)mb_quantize_step(v, low, high, scale, steps, outside);
}

__device__ static inline void store(uint16_t *to, float v, double low, double high, double scale,
                                    double steps, unsigned *outside)
{
    *to = (uint16_t)mb_quantize_step(v, low, high, scale, steps, outside);
}

__device__ static inline void store(__half *to, float v, double low, double high, double scale,
                                    double steps, unsigned *outside)
{
    *to = __float2half_rn(mb_quantize_half(v, low, scale, outside));
}

template <class T>
__global__ void __launch_bounds__(MB_THREADS)
    quantize_kernel(T *to, const float *from, int64_t n, double low, double high, double scale,
                    double steps, tally *counts)
{
    unsigned outside[MB_QUANTIZE_COUNTERS] = {0, 0, 0};
    for (int64_t first = blockIdx.x * (int64_t)(MB_THREADS * VALUES) + threadIdx.x; first < n;
         first += (int64_t)gridDim.x * (MB_THREADS * VALUES)) {
        float v[VALUES];
#pragma unroll
        for (int k = 0; k < VALUES; k++) {
            const int64_t i = first + k * MB_THREADS;
            v[k] = i < n ? from[i] : 0.0f;
        }
#pragma unroll
        for (int k = 0; k < VALUES; k++) {
            const int64_t i = first + k * MB_THREADS;
            if (i < n)
                store(to + i, v[k], low, high, scale, steps, outside);
        }
    }
    for (int c = 0; c < MB_QUANTIZE_COUNTERS; c++) {
        unsigned sum = outside[c];
        for (int lanes = 16; lanes > 0; lanes /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, lanes);
        if (threadIdx.x % 32 == 0 && sum > 0)
            atomicAdd(&counts[c], (tally)sum);
    }
}

__global__ void quantize_counts(const tally *counts, double *to)
{
    to[threadIdx.x] = (double)counts[threadIdx.x];
}

template <class T>
static mb_status run(const mb_op_call *call, int64_t n, tally *counts)
{
    const mb_quantize_params *p = (const mb_quantize_params *)call->params;
    const double steps = mb_quantize_steps(p->dtype);
    quantize_kernel<<<mb_blocks(call, n, MB_THREADS * VALUES), MB_THREADS, 0, mb_stream(call)>>>(
        (T *)call->arrays[MB_QUANTIZE_RESULT]->data,
        (const float *)call->arrays[MB_QUANTIZE_A]->data, n, p->low, p->high,
        steps / (p->high - p->low), steps, counts);
    MB_LAUNCHED("quantize_kernel");
    return MB_STATUS_OK;
}

extern "C" mb_status mb_cuda_quantize(const mb_op_call *call)
{
    const mb_quantize_params *p = (const mb_quantize_params *)call->params;
    const mb_array *a = call->arrays[MB_QUANTIZE_A], *counts = call->arrays[MB_QUANTIZE_COUNTS];
    tally *sums = (tally *)call->slots[MB_QUANTIZE_TALLY];
    int64_t n = 1;
    for (int i = 0; i < a->shape.rank; i++)
        n *= a->shape.dims[i];
    MB_CUDA(cudaMemsetAsync(sums, 0, MB_QUANTIZE_TALLY_BYTES, mb_stream(call)));
    if (n > 0)
        switch (mb_quantize_dtype(p->dtype)) {
        case MB_U8: MB_TRY(run<uint8_t>(call, n, sums)); break;
        case MB_U16: MB_TRY(run<uint16_t>(call, n, sums)); break;
        default: MB_TRY(run<__half>(call, n, sums)); break;
        }
    if (counts) {
        quantize_counts<<<1, MB_QUANTIZE_COUNTERS, 0, mb_stream(call)>>>(sums,
                                                                         (double *)counts->data);
        MB_LAUNCHED("quantize_counts");
    }
    return MB_STATUS_OK;
}
