/*
** stitch_half_acquisition on CUDA: each block takes a result row at a time.
*/
#include "shared/cuda_launch.cuh"
#include "ops/corrections/op_stitch_half_acquisition.h"

struct stitch_job {
    const float *from;
    float *to;
    int64_t from_row, from_angle, to_row, to_angle; /* elements */
    int64_t count, angles, half;
};

__global__ void __launch_bounds__(MB_THREADS)
    stitch_half_acquisition_kernel(stitch_job job, mb_half_acquisition h)
{
    for (int64_t i = blockIdx.x; i < job.count; i += gridDim.x) {
        const int64_t row = i / job.half, k = i - row * job.half;
        const float *own = job.from + row * job.from_row + k * job.from_angle;
        const float *other = k + job.half < job.angles ? own + job.half * job.from_angle : nullptr;
        float *to = job.to + row * job.to_row + k * job.to_angle;
        for (int64_t x = blockIdx.y * (int64_t)MB_THREADS + threadIdx.x; x < h.extended;
             x += gridDim.y * (int64_t)MB_THREADS)
            to[x] = mb_stitch_at(&h, own, other, x);
    }
}

extern "C" mb_status mb_cuda_stitch_half_acquisition(const mb_op_call *call)
{
    const mb_stitch_half_acquisition_params *p =
        (const mb_stitch_half_acquisition_params *)call->params;
    const mb_array *sino = call->arrays[MB_STITCH_HALF_ACQUISITION_SINO],
                   *result = call->arrays[MB_STITCH_HALF_ACQUISITION_RESULT];
    const int rank = sino->shape.rank;
    const mb_half_acquisition h = mb_half_acquisition_of(p->center, sino->shape.dims[rank - 1]);
    stitch_job job = {};
    job.from = (const float *)sino->data;
    job.to = (float *)result->data;
    job.from_row = rank == 3 ? sino->strides[0] : 0;
    job.to_row = rank == 3 ? result->strides[0] : 0;
    job.from_angle = sino->strides[rank - 2];
    job.to_angle = result->strides[rank - 2];
    job.angles = sino->shape.dims[rank - 2];
    job.half = result->shape.dims[rank - 2];
    job.count = (rank == 3 ? sino->shape.dims[0] : 1) * job.half;
    const dim3 blocks(mb_blocks(call, job.count, 1),
                      (unsigned)((h.extended + MB_THREADS * 4 - 1) / (MB_THREADS * 4)));
    stitch_half_acquisition_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(job, h);
    return MB_LAUNCH_STATUS("stitch_half_acquisition_kernel");
}
