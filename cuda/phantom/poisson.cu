/*
** poisson on CUDA: one thread per element, with the same counter-based random numbers as on the
** host.
*/
#include "shared/cuda_launch.cuh"
#include "ops/phantom/op_poisson.h"

__global__ void __launch_bounds__(MB_THREADS)
    poisson_kernel(float *to, const float *mean, int64_t count, uint64_t key, int64_t first)
{
    MB_GRID_LOOP(i, count) to[i] = mb_poisson_count(mean[i], key, first + i);
}

extern "C" mb_status mb_cuda_poisson(const mb_op_call *call)
{
    const mb_poisson_params *params = (const mb_poisson_params *)call->params;
    const mb_array *mean = call->arrays[MB_POISSON_MEAN], *result = call->arrays[MB_POISSON_RESULT];
    const int64_t count = mb_count(mean);
    if (count == 0)
        return MB_STATUS_OK;
    poisson_kernel<<<mb_blocks(call, count, MB_THREADS), MB_THREADS, 0, mb_stream(call)>>>(
        (float *)result->data, (const float *)mean->data, count,
        mb_poisson_mix((uint64_t)params->seed), params->first);
    return MB_LAUNCH_STATUS("poisson_kernel");
}
