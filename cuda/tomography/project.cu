/*
** project on CUDA: chooses between the kernels behind the operator. The rows of a packet of slices
** decide (mb_project_cuda_packing): the tensor cores take all packets but a last one of few rows.
**
** Milliseconds per slice by the number of slices (2048^2 x 1500 angles, an H200), without mask; with
** the mask of the field of view 64 take 0.78. Then what older devices' kernel takes there.
**          1     4     8     16    32    64
**          7.8   3.7   3.5   1.71  1.16  0.92
**   80     7.8   3.7   3.5   3.40  3.4   3.34
** Queued work only: tables go through the staging ring, and the factors that fit slices into halves
** are found and used on the device.
*/
#include "tomography/project_plain.cuh"
#include "tomography/project_split.cuh"

extern "C" mb_status mb_cuda_project(const mb_op_call *call)
{
    const mb_project_params *params = (const mb_project_params *)call->params;
    const mb_array *volume = call->arrays[MB_PROJECT_VOLUME],
                   *result = call->arrays[MB_PROJECT_RESULT];
    const mb_parallel_geometry g = mb_project_geometry(params, &volume->shape);
    const int axes = volume->shape.rank, out_axes = result->shape.rank;
    if (g.rows == 0 || g.angles == 0 || g.cols == 0)
        return MB_STATUS_OK;
    if (g.nx > 32 * 65535 || g.ny > 32 * 65535 || g.cols > INT32_MAX / 4 ||
        g.angles > PROJECT_ANGLES * (int64_t)65535)
        return mb_cuda_core->fail(MB_STATUS_UNSUPPORTED, NULL,
                                  "project on CUDA: an extent is too large");
    const int64_t stride_z = axes == 3 ? volume->strides[0] : 0,
                  stride_y = volume->strides[axes - 2],
                  sino_z = out_axes == 3 ? result->strides[0] : 0,
                  sino_a = result->strides[out_axes - 2];
    const mb_project_packing packing = mb_project_cuda_packing(&g, &call->device->facts);
    const float *from = (const float *)volume->data;
    float *sino = (float *)result->data;
    if (packing.split > 0)
        MB_TRY(project_split_run(call, &g, project_source{from, stride_z, stride_y, g, 0}, sino,
                                 sino_z, sino_a, packing));
    if (packing.plain == 0)
        return MB_STATUS_OK;
    project_job job = {};
    job.cols = (int)g.cols;
    job.packed = call->slots[MB_PROJECT_PACKED];
    job.scale = (float)g.scale;
    job.distance = params->method == MB_PARALLEL_DISTANCE;
    job.sino_z = sino_z;
    job.sino_a = sino_a;
    return project_plain_run(call, &g, job, from + packing.split * stride_z, stride_z, stride_y,
                             sino + packing.split * sino_z, packing.plain);
}
