/*
** extrapolate on CUDA: the momentum step, on dense and padded rows at once.
*/
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_extrapolate.h"

__global__ void __launch_bounds__(MB_THREADS)
    extrapolate_kernel(float *__restrict__ estimate, float *__restrict__ previous,
                       float *__restrict__ target, int64_t rows, int64_t n, int64_t pitch,
                       float alpha, float least)
{
    MB_ROW_LOOP(row, rows)
    {
#pragma unroll 4
        MB_LANE_LOOP(x, n)
        {
            float now = estimate[row * n + x];
            float value = mb_extrapolated(now, previous[row * n + x], alpha, least);
            previous[row * n + x] = now;
            estimate[row * n + x] = value;
            target[row * pitch + x] = value;
        }
    }
}

extern "C" mb_status mb_cuda_extrapolate(const mb_op_call *call)
{
    const mb_extrapolate_params *p = (const mb_extrapolate_params *)call->params;
    const mb_array *estimate = call->arrays[MB_EXTRAPOLATE_ESTIMATE];
    int64_t n[3];
    mb_grid_dims(&estimate->shape, n);
    if (n[0] * n[1] * n[2] == 0)
        return MB_STATUS_OK;
    extrapolate_kernel<<<mb_row_blocks(n[0] * n[1]), MB_THREADS, 0, mb_stream(call)>>>(
        (float *)estimate->data, (float *)call->arrays[MB_EXTRAPOLATE_PREVIOUS]->data,
        (float *)call->arrays[MB_EXTRAPOLATE_TARGET]->data, n[0] * n[1], n[2], mb_grid_pitch(n[2]),
        (float)p->alpha, (float)p->min);
    MB_LAUNCHED("extrapolate_kernel");
    return MB_STATUS_OK;
}
