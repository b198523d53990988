/*
** ellipsoid_volume on CUDA: one thread per pixel.
*/
#include "shared/cuda_launch.cuh"
#include "ops/phantom/op_ellipsoid_volume.h"

__global__ void __launch_bounds__(MB_THREADS)
    ellipsoid_volume_kernel(float *to, const double *ellipsoids, int64_t n_ellipsoids,
                            const double *heights, int64_t nz, int64_t ny, int64_t nx,
                            int64_t subsamples, int64_t subslices)
{
    MB_GRID_LOOP(i, nz * ny * nx)
    {
        double x = (double)(i % nx) - 0.5 * (double)(nx - 1),
               y = 0.5 * (double)(ny - 1) - (double)(i / nx % ny);
        float sum = 0.0f;
        for (int64_t k = 0; k < n_ellipsoids; k++) {
            mb_ellipsoid e = mb_ellipsoid_at(ellipsoids, k);
            const double dx = x - e.x, dy = y - e.y, reach = mb_ellipsoid_reach(&e);
            if (fabs(dx) <= reach && fabs(dy) <= reach)
                sum += (float)(e.density * mb_ellipsoid_part(&e, heights[i / (nx * ny)], dx, dy,
                                                             cos(e.phi), sin(e.phi), subsamples,
                                                             subslices));
        }
        to[i] = sum;
    }
}

extern "C" mb_status mb_cuda_ellipsoid_volume(const mb_op_call *call)
{
    const mb_ellipsoid_volume_params *p = (const mb_ellipsoid_volume_params *)call->params;
    const mb_array *result = call->arrays[MB_ELLIPSOID_VOLUME_RESULT];
    double *table = (double *)call->slots[MB_ELLIPSOID_VOLUME_TABLE],
           *heights = table + p->ellipsoids.count;
    if (p->ellipsoids.count)
        MB_TRY(mb_upload(call, table, p->ellipsoids.values,
                         (uint64_t)p->ellipsoids.count * sizeof(double)));
    MB_TRY(
        mb_upload(call, heights, p->heights.values, (uint64_t)p->heights.count * sizeof(double)));
    const int64_t nz = result->shape.dims[0], ny = result->shape.dims[1],
                  nx = result->shape.dims[2];
    ellipsoid_volume_kernel<<<mb_blocks(call, nz * ny * nx, MB_THREADS), MB_THREADS, 0,
                              mb_stream(call)>>>((float *)result->data, table,
                                                 p->ellipsoids.count / MB_ELLIPSOID_NUMBERS,
                                                 heights, nz, ny, nx, p->subsamples, p->subslices);
    return MB_LAUNCH_STATUS("ellipsoid_volume_kernel");
}
