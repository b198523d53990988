/*
** blend_seam on CUDA: a thread makes one column of one row.
*/
#include "ops/geometry/op_blend_seam.h"
#include "shared/cuda_launch.cuh"

struct seam_job {
    const float *from;
    float *to;
    int64_t from_frame, from_pitch, to_frame, to_pitch, frames, rows, cols, seam, overlap;
};

__global__ void __launch_bounds__(MB_THREADS) blend_seam_kernel(seam_job job)
{
    const int64_t x = blockIdx.x * (int64_t)MB_THREADS + threadIdx.x;
    if (x >= job.cols)
        return;
    for (int64_t f = blockIdx.z; f < job.frames; f += gridDim.z)
        for (int64_t y = blockIdx.y; y < job.rows; y += gridDim.y)
            job.to[f * job.to_frame + y * job.to_pitch + x] = mb_blend_seam_at(
                job.from + f * job.from_frame + y * job.from_pitch, job.seam, job.overlap, x);
}

extern "C" mb_status mb_cuda_blend_seam(const mb_op_call *call)
{
    const mb_blend_seam_params *p = (const mb_blend_seam_params *)call->params;
    const mb_array *a = call->arrays[MB_BLEND_SEAM_A], *result = call->arrays[MB_BLEND_SEAM_RESULT];
    const int rank = a->shape.rank;
    seam_job job = {};
    job.from = (const float *)a->data;
    job.to = (float *)result->data;
    job.from_frame = rank == 3 ? a->strides[0] : 0;
    job.to_frame = rank == 3 ? result->strides[0] : 0;
    job.from_pitch = a->strides[rank - 2];
    job.to_pitch = result->strides[rank - 2];
    job.frames = rank == 3 ? a->shape.dims[0] : 1;
    job.rows = a->shape.dims[rank - 2];
    job.cols = result->shape.dims[rank - 1];
    job.seam = p->seam;
    job.overlap = p->overlap;
    if (job.frames == 0 || job.rows == 0 || job.cols == 0)
        return MB_STATUS_OK;
    const dim3 blocks((unsigned)((job.cols + MB_THREADS - 1) / MB_THREADS),
                      (unsigned)(job.rows < 65535 ? job.rows : 65535),
                      (unsigned)(job.frames < 65535 ? job.frames : 65535));
    blend_seam_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(job);
    return MB_LAUNCH_STATUS("blend_seam_kernel");
}
