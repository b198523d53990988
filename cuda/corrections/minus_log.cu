/*
** minus_log on CUDA: -log of the clipped value, in place or apart, any strides.
*/
#include "shared/cuda_launch.cuh"
#include "ops/corrections/op_minus_log.h"

enum { TO, FROM }; /* in walks */

__global__ void __launch_bounds__(MB_THREADS)
    minus_log_kernel(float *to, const float *from, mb_grid_walk walk, bool dense, float low,
                     float high)
{
    MB_BATCH_LOOP(first, walk.count)
    {
        float v[MB_BATCH];
        int64_t at[MB_BATCH][2];
#pragma unroll
        for (int k = 0; k < MB_BATCH; k++) {
            int64_t i = first + k * MB_THREADS;
            at[k][TO] = at[k][FROM] = i;
            if (!dense && i < walk.count)
                mb_grid_walk_at<2>(walk, i, at[k]);
            v[k] = i < walk.count ? from[at[k][FROM]] : 1.0f;
        }
#pragma unroll
        for (int k = 0; k < MB_BATCH; k++) {
            float c = v[k] < low ? low : v[k] > high ? high : v[k]; /* NaN is kept */
            if (first + k * MB_THREADS < walk.count)
                to[at[k][TO]] = -logf(c);
        }
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
    minus_log_kernel<<<mb_blocks(call, walk.count, MB_THREADS * MB_BATCH), MB_THREADS, 0,
                       mb_stream(call)>>>(
        (float *)arrays[TO]->data, (const float *)arrays[FROM]->data, walk,
        mb_grid_walk_dense(&walk, 2), (float)params->min, (float)params->max);
    return MB_LAUNCH_STATUS("minus_log_kernel");
}
