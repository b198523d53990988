/*
** rl_total_variation on CUDA: a stencil over the estimate that writes the correction.
*/
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_rl_total_variation.h"

struct tv_job {
    mb_grid3 n;
    float inverse[3];
    float lambda, epsilon;
};

__global__ void __launch_bounds__(MB_THREADS)
    tv_kernel(const float *estimate, float *correction, tv_job job)
{
    const int64_t rows = job.n.v[0] * job.n.v[1], pitch = 2 * (job.n.v[2] / 2 + 1);
    MB_ROW_LOOP(row, rows)
    {
        MB_LANE_LOOP(x, job.n.v[2])
        {
            float divisor =
                1 - job.lambda * mb_rl_tv_divergence(estimate, job.n.v, job.inverse, job.epsilon,
                                                     row / job.n.v[1], row % job.n.v[1], x);
            correction[row * pitch + x] /= divisor > MB_RL_TV_LEAST ? divisor : MB_RL_TV_LEAST;
        }
    }
}

extern "C" mb_status mb_cuda_rl_total_variation(const mb_op_call *call)
{
    const mb_rl_total_variation_params *p = (const mb_rl_total_variation_params *)call->params;
    const mb_array *estimate = call->arrays[MB_RL_TOTAL_VARIATION_ESTIMATE];
    tv_job job;
    mb_grid_dims(&estimate->shape, job.n.v);
    mb_rl_tv_inverse(p, estimate->shape.rank, job.inverse);
    job.lambda = (float)p->lambda;
    job.epsilon = (float)p->epsilon;
    if (job.n.v[0] * job.n.v[1] * job.n.v[2] == 0)
        return MB_STATUS_OK;
    tv_kernel<<<mb_row_blocks(job.n.v[0] * job.n.v[1]), MB_THREADS, 0, mb_stream(call)>>>(
        (const float *)estimate->data,
        (float *)call->arrays[MB_RL_TOTAL_VARIATION_CORRECTION]->data, job);
    MB_LAUNCHED("tv_kernel");
    return MB_STATUS_OK;
}
