/*
** ellipsoid_projections on CUDA: one thread per detector bin, with ellipsoids in the same order as
** on the host.
*/
#include "shared/cuda_launch.cuh"
#include "ops/phantom/op_ellipsoid_projections.h"

__global__ void __launch_bounds__(MB_THREADS)
    ellipsoid_projections_kernel(float *to, const double *ellipsoids, int64_t n_ellipsoids,
                                 const double *angles, int64_t n_angles, const double *heights,
                                 int64_t rows, const double *shifts, int64_t cols, double center,
                                 int64_t subrays)
{
    MB_GRID_LOOP(i, n_angles * rows * cols)
    {
        int64_t x = i % cols, line = i / cols, a = line / rows;
        float sum = 0.0f;
        for (int64_t k = 0; k < n_ellipsoids; k++) {
            mb_ellipsoid e = mb_ellipsoid_at(ellipsoids, k);
            double s2 = mb_ellipsoid_section(&e, heights[line % rows]);
            if (s2 <= 0)
                continue;
            mb_ellipsoid_shadow shadow =
                mb_ellipsoid_shadow_of(&e, s2, angles[a], center + shifts[a], subrays);
            if (fabs((double)x - shadow.middle) <= shadow.w + 1)
                sum += (float)mb_ellipsoid_bin(&shadow, x, subrays);
        }
        to[i] = sum;
    }
}

extern "C" mb_status mb_cuda_ellipsoid_projections(const mb_op_call *call)
{
    const mb_ellipsoid_projections_params *p =
        (const mb_ellipsoid_projections_params *)call->params;
    double *table = (double *)call->slots[MB_ELLIPSOID_PROJECTIONS_TABLE];
    double *angles = table + p->ellipsoids.count, *heights = angles + p->angles.count,
           *shifts = heights + p->heights.count;
    const uint64_t angle_bytes = (uint64_t)p->angles.count * sizeof(double);
    if (p->ellipsoids.count)
        MB_TRY(mb_upload(call, table, p->ellipsoids.values,
                         (uint64_t)p->ellipsoids.count * sizeof(double)));
    MB_TRY(mb_upload(call, angles, p->angles.values, angle_bytes));
    MB_TRY(
        mb_upload(call, heights, p->heights.values, (uint64_t)p->heights.count * sizeof(double)));
    if (p->shifts.count)
        MB_TRY(mb_upload(call, shifts, p->shifts.values, angle_bytes));
    else
        MB_CUDA(cudaMemsetAsync(shifts, 0, angle_bytes, mb_stream(call)));
    const int64_t count = p->angles.count * p->heights.count * p->cols;
    ellipsoid_projections_kernel<<<mb_blocks(call, count, MB_THREADS), MB_THREADS, 0,
                                   mb_stream(call)>>>(
        (float *)call->arrays[MB_ELLIPSOID_PROJECTIONS_RESULT]->data, table,
        p->ellipsoids.count / MB_ELLIPSOID_NUMBERS, angles, p->angles.count, heights,
        p->heights.count, shifts, p->cols,
        isnan(p->center) ? 0.5 * (double)(p->cols - 1) : p->center, p->subrays);
    return MB_LAUNCH_STATUS("ellipsoid_projections_kernel");
}
