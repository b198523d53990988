/*
** psf_gaussian on CUDA: the product of the factors of three axes, which the host computes.
*/
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_psf_gaussian.h"
#include <stdlib.h>

__global__ void __launch_bounds__(MB_THREADS)
    gaussian_kernel(const double *tables, float *out, mb_grid3 n)
{
    const int64_t rows = n.v[0] * n.v[1];
    MB_ROW_LOOP(row, rows)
    {
        double factor = tables[row / n.v[1]] * tables[n.v[0] + row % n.v[1]];
        MB_LANE_LOOP(x, n.v[2])
        out[row * n.v[2] + x] = (float)(factor * tables[n.v[0] + n.v[1] + x]);
    }
}

extern "C" mb_status mb_cuda_psf_gaussian(const mb_op_call *call)
{
    const mb_psf_gaussian_params *p = (const mb_psf_gaussian_params *)call->params;
    const mb_array *result = call->arrays[MB_PSF_GAUSSIAN_RESULT];
    mb_grid3 n;
    mb_grid_dims(&result->shape, n.v);
    uint64_t bytes = (uint64_t)(n.v[0] + n.v[1] + n.v[2]) * sizeof(double);
    void *slot = call->slots[MB_PSF_GAUSSIAN_TABLES];
    double *tables = (double *)malloc(bytes);
    if (!tables)
        return mb_cuda_core->fail(MB_STATUS_MEMORY, NULL,
                                  "psf_gaussian: no host memory for the factors of the axes");
    mb_psf_gaussian_factors(p, 0, n.v[0], tables);
    mb_psf_gaussian_factors(p, 1, n.v[1], tables + n.v[0]);
    mb_psf_gaussian_factors(p, 2, n.v[2], tables + n.v[0] + n.v[1]);
    mb_status status = mb_upload(call, slot, tables, bytes);
    free(tables);
    MB_TRY(status);
    gaussian_kernel<<<mb_row_blocks(n.v[0] * n.v[1]), MB_THREADS, 0, mb_stream(call)>>>(
        (const double *)slot, (float *)result->data, n);
    MB_LAUNCHED("gaussian_kernel");
    return MB_STATUS_OK;
}
