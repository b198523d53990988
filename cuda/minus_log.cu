/*
** minus_log on CUDA: -log of the clipped value, in place or apart, any strides.
*/
#include "cuda_launch.cuh"
#include "ops/op_minus_log.h"

enum { TO, FROM }; /* in walks */

__global__ void __launch_bounds__(MB_THREADS)
    minus_log_kernel(float *to, const float *from, mb_grid_walk walk, bool dense, float low, float high)
{
    MB_GRID_LOOP(i, walk.count)
    {
        int64_t at[2] = {i, i};
        if (!dense)
            mb_grid_walk_at<2>(walk, i, at);
        float v = from[at[FROM]];
        v = v < low ? low : v > high ? high : v; /* NaN stays */
        to[at[TO]] = -logf(v);
    }
}

extern "C" mb_status mb_cuda_minus_log(const mb_op_call *call)
{
    const mb_minus_log_params *params = (const mb_minus_log_params *)call->params;
    const mb_array *arrays[] = {call->arrays[MB_MINUS_LOG_RESULT], call->arrays[MB_MINUS_LOG_A]};
    mb_grid_walk walk;
    mb_grid_walk_make(&walk, arrays, 2);
    if (walk.count == 0)
        return MB_STATUS_OK;
    minus_log_kernel<<<mb_blocks(call, walk.count, MB_THREADS), MB_THREADS, 0, mb_stream(call)>>>(
        (float *)arrays[TO]->data, (const float *)arrays[FROM]->data, walk, mb_grid_walk_dense(&walk, 2), (float)params->min,
        (float)params->max);
    MB_LAUNCHED("minus_log_kernel");
    return MB_STATUS_OK;
}
