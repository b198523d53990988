/*
** rl_total_variation on CUDA: a stencil over the estimate that writes the correction.
*/
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_rl_total_variation.h"

__global__ void __launch_bounds__(MB_THREADS) tv_kernel(mb_rl_tv job)
{
    MB_ROW_LOOP(row, job.n[0] * job.n[1])
    {
        const int64_t z = row / job.n[1], y = row - z * job.n[1];
        float *correction = (float *)job.correction.data + mb_grid_row(&job.correction, z, y);
        MB_LANE_LOOP(x, job.n[2])
        {
            correction[x * job.correction.step[2]] /= mb_rl_tv_divisor(&job, z, y, x);
        }
    }
}

extern "C" mb_status mb_cuda_rl_total_variation(const mb_op_call *call)
{
    const mb_rl_tv job = mb_rl_tv_of(call);
    if (job.n[0] * job.n[1] * job.n[2] == 0)
        return MB_STATUS_OK;
    tv_kernel<<<mb_row_blocks(job.n[0] * job.n[1]), MB_THREADS, 0, mb_stream(call)>>>(job);
    MB_LAUNCHED("tv_kernel");
    return MB_STATUS_OK;
}
