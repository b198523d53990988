/*
** maximum_projection on CUDA: a thread for every element of the result walks along the axis.
*/
#include "shared/cuda_launch.cuh"
#include "ops/array/op_maximum_projection.h"

struct projection_job {
    int rank; /* of the result */
    int64_t dims[MB_MAX_RANK], from[MB_MAX_RANK], to[MB_MAX_RANK];
    int64_t count, length, along;
};

template <class T>
__global__ void __launch_bounds__(MB_THREADS)
    project_maximum(const T *a, T *out, projection_job job)
{
    MB_GRID_LOOP(i, job.count)
    {
        int64_t rest = i, base = 0, target = 0;
        for (int axis = job.rank - 1; axis >= 0; axis--) {
            int64_t next = rest / job.dims[axis], index = rest - next * job.dims[axis];
            rest = next;
            base += index * job.from[axis];
            target += index * job.to[axis];
        }
        T best = a[base];
#pragma unroll 4
        for (int64_t k = 1; k < job.length; k++) {
            T v = a[base + k * job.along];
            best = v > best || v != v ? v : best;
        }
        out[target] = best;
    }
}

template <class T>
static mb_status launch(const mb_op_call *call, const projection_job &job)
{
    project_maximum<<<mb_blocks(call, job.count, MB_THREADS), MB_THREADS, 0, mb_stream(call)>>>(
        (const T *)call->arrays[MB_MAXIMUM_PROJECTION_A]->data,
        (T *)call->arrays[MB_MAXIMUM_PROJECTION_RESULT]->data, job);
    return MB_LAUNCH_STATUS("project_maximum");
}

extern "C" mb_status mb_cuda_maximum_projection(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_MAXIMUM_PROJECTION_A],
                   *result = call->arrays[MB_MAXIMUM_PROJECTION_RESULT];
    int axis = mb_maximum_projection_axis((const mb_maximum_projection_params *)call->params,
                                          a->shape.rank);
    projection_job job;
    job.rank = result->shape.rank;
    job.count = 1;
    job.length = a->shape.dims[axis];
    job.along = a->strides[axis];
    for (int i = 0; i < job.rank; i++) {
        job.dims[i] = result->shape.dims[i];
        job.from[i] = a->strides[i < axis ? i : i + 1];
        job.to[i] = result->strides[i];
        job.count *= job.dims[i];
    }
    if (job.count == 0)
        return MB_STATUS_OK;
    switch (a->dtype) {
    case MB_U8: return launch<uint8_t>(call, job);
    case MB_U16: return launch<uint16_t>(call, job);
    case MB_I32: return launch<int32_t>(call, job);
    default: return launch<float>(call, job);
    }
}
