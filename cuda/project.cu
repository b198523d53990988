/*
** project on CUDA: the exact transpose of backproject, as a gather.
**
** A thread owns one (angle, bin) of L slices. A pixel whose shadow falls on u gives its value times 1 - |u - bin| to the
** bins nearer than 1: the weights with which backproject reads them. Along the image axis that runs more across the ray
** (columns where |cos| >= |sin|, rows elsewhere) at most three pixels of each line are that near, so the sum is three
** candidates per line, in a fixed order.
** The place where the ray crosses a line is kept in fixed point, 2^-32 of a pixel: exact to add, the same speed on devices
** without fast double precision, and as accurate at the last line as at the first.
*/
#include "cuda_launch.cuh"
#include "ops/op_project.h"
#include <stdlib.h>

#define SLICES 4

struct project_job {
    mb_parallel_geometry geometry;
    const mb_parallel_angle *angles;
    const float *volume;
    int64_t stride_z, stride_y;
    float *sino;
    int64_t sino_z, sino_a;
    float scale;
    int slices;
};

template <bool MASK>
__global__ void __launch_bounds__(128) project_kernel(project_job job)
{
    const mb_parallel_geometry &g = job.geometry;
    const int bin = blockIdx.x * blockDim.x + threadIdx.x, z0 = blockIdx.z * SLICES;
    const double one = 4294967296.0;
    if (bin >= g.cols)
        return;
    for (int64_t a = blockIdx.y; a < g.angles; a += gridDim.y) {
        const mb_parallel_angle t = job.angles[a];
        const bool by_rows =
            fabs(t.cosine) >= fabs(t.sine); /* lines are image rows, candidates are columns */
        /* u = o + p cross + q along: p the candidate's index, q the line's. u = bin at p = start + q slope. */
        const double cross = by_rows ? t.cosine : -t.sine, along = by_rows ? -t.sine : t.cosine;
        const double start = ((double)bin - t.offset) / cross, slope = -along / cross,
                     reach = 1.0 / fabs(cross);
        const int lines = (int)(by_rows ? g.ny : g.nx), across = (int)(by_rows ? g.nx : g.ny);
        const int64_t line_stride = by_rows ? job.stride_y : 1, step = by_rows ? 1 : job.stride_y;
        /* Lines on which the ray is within reach of the image: -2 <= start + q slope <= across + 1. */
        int q0 = 0, q1 = lines - 1;
        if (fabs(slope) > 1e-9) {
            double e = (-2.0 - start) / slope, f = (across + 1.0 - start) / slope;
            q0 = (int)fmin(fmax(floor(fmin(e, f)), 0.0), (double)lines);
            q1 = (int)fmin(fmax(ceil(fmax(e, f)), -1.0), (double)(lines - 1));
        } else if (start < -3.0 || start > across + 2.0) {
            q1 = -1;
        }
        float sum[SLICES] = {};
        if (q0 <= q1) { /* then start + q slope is of the image's size and fits */
            int64_t at = __double2ll_rn((start + q0 * slope) * one);
            const int64_t add = __double2ll_rn(slope * one), back = __double2ll_rn(reach * one);
            const float weight = (float)fabs(cross);
            const float *line = job.volume + z0 * job.stride_z + q0 * line_stride;
            for (int q = q0; q <= q1; q++, at += add, line += line_stride) {
                const int p0 = (int)((at - back) >> 32) + 1;
                const float far = (float)(((int64_t)p0 << 32) - at) *
                                  2.3283064365386963e-10f; /* p0 - crossing, in pixels */
#pragma unroll
                for (int k = 0; k < 3; k++) {
                    const int p = p0 + k;
                    float w = 1.0f - fabsf(far + k) * weight;
                    bool take = w > 0 && p >= 0 && p < across;
                    if (MASK)
                        take = take && mb_parallel_inside(&g, by_rows ? q : p, by_rows ? p : q);
                    if (!take)
                        continue;
#pragma unroll
                    for (int z = 0; z < SLICES; z++)
                        if (z0 + z < job.slices)
                            sum[z] = fmaf(w, __ldg(line + z * job.stride_z + p * step), sum[z]);
                }
            }
        }
        for (int z = 0; z < SLICES; z++)
            if (z0 + z < job.slices)
                job.sino[(z0 + z) * job.sino_z + a * job.sino_a + bin] = sum[z] * job.scale;
    }
}

static mb_status upload_angles(const mb_op_call *call, const mb_parallel_geometry *g)
{
    const mb_project_params *params = (const mb_project_params *)call->params;
    uint64_t bytes = (uint64_t)g->angles * sizeof(mb_parallel_angle);
    mb_parallel_angle *table = (mb_parallel_angle *)malloc(bytes);
    if (!table)
        return mb_cuda_core->fail(MB_STATUS_MEMORY, NULL, "out of host memory for %lld angles",
                                  (long long)g->angles);
    for (int64_t k = 0; k < g->angles; k++)
        table[k] = mb_project_angle(params, g, k);
    mb_status status = mb_upload(call, call->slots[MB_PROJECT_ANGLES], table, bytes);
    free(table);
    return status;
}

extern "C" mb_status mb_cuda_project(const mb_op_call *call)
{
    const mb_project_params *params = (const mb_project_params *)call->params;
    const mb_array *volume = call->arrays[MB_PROJECT_VOLUME],
                   *result = call->arrays[MB_PROJECT_RESULT];
    const mb_parallel_geometry g = mb_project_geometry(params, &volume->shape);
    const int axes = volume->shape.rank, out_axes = result->shape.rank;
    if (g.rows == 0 || g.angles == 0 || g.cols == 0)
        return MB_STATUS_OK;
    if (g.nx > INT32_MAX / 4 || g.ny > INT32_MAX / 4 || g.cols > INT32_MAX / 4 ||
        g.rows > INT32_MAX / 4)
        return mb_cuda_core->fail(MB_STATUS_UNSUPPORTED, NULL,
                                  "project on CUDA: an extent is too large");
    MB_TRY(upload_angles(call, &g));
    project_job job = {};
    job.geometry = g;
    job.angles = (const mb_parallel_angle *)call->slots[MB_PROJECT_ANGLES];
    job.scale = (float)g.scale;
    const int64_t stride_z = axes == 3 ? volume->strides[0] : 0,
                  sino_z = out_axes == 3 ? result->strides[0] : 0;
    job.stride_z = stride_z;
    job.stride_y = volume->strides[axes - 2];
    job.sino_z = sino_z;
    job.sino_a = result->strides[out_axes - 2];
    const int64_t most = 65535 * (int64_t)SLICES;
    for (int64_t first = 0; first < g.rows; first += most) {
        job.slices = (int)(g.rows - first < most ? g.rows - first : most);
        job.volume = (const float *)volume->data + first * stride_z;
        job.sino = (float *)result->data + first * sino_z;
        dim3 grid((unsigned)((g.cols + 127) / 128), (unsigned)(g.angles < 65535 ? g.angles : 65535),
                  (job.slices + SLICES - 1) / SLICES);
        if (g.radius2 < 0)
            project_kernel<false><<<grid, 128, 0, mb_stream(call)>>>(job);
        else
            project_kernel<true><<<grid, 128, 0, mb_stream(call)>>>(job);
        MB_LAUNCHED("project_kernel");
    }
    return MB_STATUS_OK;
}
