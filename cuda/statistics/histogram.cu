/*
** histogram on CUDA: one pass, a few values per thread. Counters are integers, so their atomics
** give the same numbers in any order.
**
** If all counters fit into a part of shared memory that leaves room for several blocks, each block
** counts there in 32 bits (a block sees fewer than 2^32 values) and adds the nonzero counters to
** the table at the end. Larger tables are counted into directly. Then the lanes of a warp with the
** same counter add once together, because the values of images fall into few counters, often into
** one.
*/
#include "shared/cuda_launch.cuh"
#include "ops/statistics/op_histogram.h"

typedef unsigned long long tally;

#define VALUES 8
#define SHARED_COUNTERS 8192 /* 32 KiB */
#define RESIDENT_BLOCKS 6    /* per multiprocessor: more blocks would only add more often */

__device__ static inline int counter_of(const mb_histogram_rule &rule, float v)
{
    return rule.bits == MB_HISTOGRAM_VALUE  ? mb_histogram_of_value(&rule, v)
           : rule.bits == MB_HISTOGRAM_HIGH ? mb_histogram_of_high(&rule, v)
                                            : mb_histogram_of_low(&rule, v);
}

/* Adds 1 to a counter for each lane of the warp that has one (not -1). All lanes call. */
__device__ static inline void add_together(tally *table, int counter)
{
    const unsigned same = __match_any_sync(0xffffffffu, counter);
    if (counter >= 0 && (int)(threadIdx.x & 31) == __ffs((int)same) - 1)
        atomicAdd(&table[counter], (tally)__popc(same));
}

/* The counters of this thread's values from `first` on, or -1 after the last value. */
template <class T>
__device__ static inline void counters_of(const T *from, const mb_grid_walk &walk, bool dense,
                                          const mb_histogram_rule &rule, int64_t first,
                                          int *counters)
{
    float v[VALUES];
#pragma unroll
    for (int k = 0; k < VALUES; k++) {
        const int64_t i = first + k * MB_THREADS;
        int64_t at[1] = {i};
        if (!dense)
            mb_grid_walk_at<1>(walk, i < walk.count ? i : 0, at);
        v[k] = i < walk.count ? (float)mb_load_as(from[at[0]]) : 0.0f;
    }
#pragma unroll
    for (int k = 0; k < VALUES; k++)
        counters[k] = first + k * MB_THREADS < walk.count ? counter_of(rule, v[k]) : -1;
}

/* The loops are the same for all threads of a block: `start` is the block's. */
#define BLOCK_LOOP(start, count)                                                                   \
    for (int64_t start = blockIdx.x * (int64_t)(MB_THREADS * VALUES); start < (count);             \
         start += (int64_t)gridDim.x * (MB_THREADS * VALUES))

template <class T>
__global__ void __launch_bounds__(MB_THREADS)
    count_shared(const T *from, mb_grid_walk walk, bool dense,
                 const __grid_constant__ mb_histogram_rule rule, tally *table)
{
    extern __shared__ unsigned mine[];
    const int counters = rule.bins + MB_HISTOGRAM_OUTSIDE;
    for (int i = threadIdx.x; i < counters; i += MB_THREADS)
        mine[i] = 0;
    __syncthreads();
    BLOCK_LOOP(start, walk.count)
    {
        int counter[VALUES];
        counters_of(from, walk, dense, rule, start + threadIdx.x, counter);
#pragma unroll
        for (int k = 0; k < VALUES; k++)
            if (counter[k] >= 0)
                atomicAdd(&mine[counter[k]], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < counters; i += MB_THREADS)
        if (mine[i] > 0)
            atomicAdd(&table[i], (tally)mine[i]);
}

template <class T>
__global__ void __launch_bounds__(MB_THREADS)
    count_direct(const T *from, mb_grid_walk walk, bool dense,
                 const __grid_constant__ mb_histogram_rule rule, tally *table)
{
    BLOCK_LOOP(start, walk.count)
    {
        int counter[VALUES];
        counters_of(from, walk, dense, rule, start + threadIdx.x, counter);
#pragma unroll
        for (int k = 0; k < VALUES; k++)
            add_together(table, counter[k]);
    }
}

__global__ void __launch_bounds__(MB_THREADS)
    store_counts(const tally *table, int64_t counters, double *to, int64_t step, bool add)
{
    MB_GRID_LOOP(i, counters)
    to[i * step] = (double)table[i] + (add ? to[i * step] : 0.0);
}

template <class T>
static mb_status count(const mb_op_call *call, const mb_grid_walk &walk,
                       const mb_histogram_rule &rule)
{
    const T *from = (const T *)call->arrays[MB_HISTOGRAM_A]->data;
    tally *table = (tally *)call->slots[MB_HISTOGRAM_TABLES];
    const int counters = rule.bins + MB_HISTOGRAM_OUTSIDE;
    const unsigned resident = (unsigned)call->device->facts.threads * RESIDENT_BLOCKS;
    const bool dense = mb_grid_walk_dense(&walk, 1);
    unsigned blocks = mb_blocks(call, walk.count, MB_THREADS * VALUES);
    if (counters <= SHARED_COUNTERS) {
        blocks = blocks > resident ? resident : blocks;
        count_shared<<<blocks, MB_THREADS, counters * sizeof(unsigned), mb_stream(call)>>>(
            from, walk, dense, rule, table);
        MB_LAUNCHED("count_shared");
    } else {
        count_direct<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(from, walk, dense, rule, table);
        MB_LAUNCHED("count_direct");
    }
    return MB_STATUS_OK;
}

extern "C" mb_status mb_cuda_histogram(const mb_op_call *call)
{
    const mb_histogram_rule rule = mb_histogram_rule_of((const mb_histogram_params *)call->params);
    const mb_array *a = call->arrays[MB_HISTOGRAM_A], *into = call->arrays[MB_HISTOGRAM_INTO];
    const mb_array *counts = into ? into : call->arrays[MB_HISTOGRAM_COUNTS];
    const int64_t counters = rule.bins + MB_HISTOGRAM_OUTSIDE;
    tally *table = (tally *)call->slots[MB_HISTOGRAM_TABLES];
    mb_grid_walk walk;
    mb_grid_walk_make(&walk, &a, 1);
    MB_CUDA(cudaMemsetAsync(table, 0, counters * sizeof *table, mb_stream(call)));
    if (walk.count > 0)
        switch (a->dtype) {
        case MB_U8: MB_TRY(count<uint8_t>(call, walk, rule)); break;
        case MB_U16: MB_TRY(count<uint16_t>(call, walk, rule)); break;
        case MB_F16: MB_TRY(count<__half>(call, walk, rule)); break;
        default: MB_TRY(count<float>(call, walk, rule)); break;
        }
    store_counts<<<mb_blocks(call, counters, MB_THREADS), MB_THREADS, 0, mb_stream(call)>>>(
        table, counters, (double *)counts->data, counts->strides[0], into != NULL);
    return MB_LAUNCH_STATUS("store_counts");
}
