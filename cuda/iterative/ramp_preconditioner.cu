/*
** ramp_preconditioner on CUDA.
*/
#include "ops/iterative/op_ramp_preconditioner.h"
#include "shared/cuda_launch.cuh"

__global__ static void __launch_bounds__(MB_THREADS)
    ramp_preconditioner_kernel(float *to, int64_t points, int64_t py, int64_t px, double floor)
{
    MB_GRID_LOOP(i, points)
    {
        const int64_t x = i / py, y = i - x * py;
        to[i] = mb_ramp_preconditioner_at(mb_ramp_preconditioner_frequency(x, px),
                                          mb_ramp_preconditioner_frequency(y, py), floor);
    }
}

extern "C" mb_status mb_cuda_ramp_preconditioner(const mb_op_call *call)
{
    const mb_ramp_preconditioner_params *p = (const mb_ramp_preconditioner_params *)call->params;
    const mb_array *result = call->arrays[MB_RAMP_PRECONDITIONER_RESULT];
    const int64_t py = result->shape.dims[1], px = 2 * (result->shape.dims[0] - 1),
                  points = mb_count(result);
    ramp_preconditioner_kernel<<<mb_blocks(call, points, MB_THREADS), MB_THREADS, 0,
                                 mb_stream(call)>>>((float *)result->data, points, py, px,
                                                    p->floor);
    MB_LAUNCHED("ramp_preconditioner_kernel");
    return MB_STATUS_OK;
}
