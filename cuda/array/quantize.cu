/*
** quantize on CUDA: one pass, eight values per thread, one atomic per counter and warp. Counters
** are integers, so their atomics give the same numbers in any order.
*/
#include "shared/cuda_launch.cuh"
#include "ops/array/op_quantize.h"

typedef unsigned long long tally;

#define VALUES 8

__device__ static inline void store(uint8_t *to, float v, const mb_quantize_scale *s,
                                    unsigned *outside)
{
    *to = (uint8_t)mb_quantize_step(v, s, outside);
}

__device__ static inline void store(uint16_t *to, float v, const mb_quantize_scale *s,
                                    unsigned *outside)
{
    *to = (uint16_t)mb_quantize_step(v, s, outside);
}

__device__ static inline void store(__half *to, float v, const mb_quantize_scale *s,
                                    unsigned *outside)
{
    *to = __float2half_rn(mb_quantize_half(v, s, outside));
}

/* walk: result, a. */
template <class T>
__global__ void __launch_bounds__(MB_THREADS)
    quantize_kernel(T *to, const float *from, mb_grid_walk walk, bool dense,
                    mb_quantize_scale scale, tally *counts)
{
    unsigned outside[MB_QUANTIZE_COUNTERS] = {0, 0, 0};
    for (int64_t first = blockIdx.x * (int64_t)(MB_THREADS * VALUES) + threadIdx.x;
         first < walk.count; first += (int64_t)gridDim.x * (MB_THREADS * VALUES)) {
        int64_t at[VALUES][2];
        float v[VALUES];
#pragma unroll
        for (int k = 0; k < VALUES; k++) {
            const int64_t i = first + k * MB_THREADS;
            at[k][0] = at[k][1] = i;
            if (!dense)
                mb_grid_walk_at<2>(walk, i < walk.count ? i : 0, at[k]);
            v[k] = i < walk.count ? from[at[k][1]] : 0.0f;
        }
#pragma unroll
        for (int k = 0; k < VALUES; k++)
            if (first + k * MB_THREADS < walk.count)
                store(to + at[k][0], v[k], &scale, outside);
    }
    for (int c = 0; c < MB_QUANTIZE_COUNTERS; c++) {
        unsigned sum = outside[c];
        for (int lanes = 16; lanes > 0; lanes /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, lanes);
        if (threadIdx.x % 32 == 0 && sum > 0)
            atomicAdd(&counts[c], (tally)sum);
    }
}

__global__ void quantize_counts(const tally *counts, double *to, int64_t step)
{
    to[threadIdx.x * step] = (double)counts[threadIdx.x];
}

template <class T>
static mb_status run(const mb_op_call *call, const mb_grid_walk &walk, tally *counts)
{
    const mb_quantize_params *p = (const mb_quantize_params *)call->params;
    quantize_kernel<<<mb_blocks(call, walk.count, MB_THREADS * VALUES), MB_THREADS, 0,
                      mb_stream(call)>>>((T *)call->arrays[MB_QUANTIZE_RESULT]->data,
                                         (const float *)call->arrays[MB_QUANTIZE_A]->data, walk,
                                         mb_grid_walk_dense(&walk, 2), mb_quantize_scale_of(p),
                                         counts);
    return MB_LAUNCH_STATUS("quantize_kernel");
}

extern "C" mb_status mb_cuda_quantize(const mb_op_call *call)
{
    const mb_quantize_params *p = (const mb_quantize_params *)call->params;
    const mb_array *arrays[] = {call->arrays[MB_QUANTIZE_RESULT], call->arrays[MB_QUANTIZE_A]};
    const mb_array *counts = call->arrays[MB_QUANTIZE_COUNTS];
    tally *sums = (tally *)call->slots[MB_QUANTIZE_TALLY];
    mb_grid_walk walk;
    mb_grid_walk_make(&walk, arrays, 2);
    MB_CUDA(cudaMemsetAsync(sums, 0, MB_QUANTIZE_TALLY_BYTES, mb_stream(call)));
    if (walk.count > 0)
        switch (mb_quantize_dtype(p->dtype)) {
        case MB_U8: MB_TRY(run<uint8_t>(call, walk, sums)); break;
        case MB_U16: MB_TRY(run<uint16_t>(call, walk, sums)); break;
        default: MB_TRY(run<__half>(call, walk, sums)); break;
        }
    if (counts) {
        quantize_counts<<<1, MB_QUANTIZE_COUNTERS, 0, mb_stream(call)>>>(
            sums, (double *)counts->data, counts->strides[0]);
        MB_LAUNCHED("quantize_counts");
    }
    return MB_STATUS_OK;
}
