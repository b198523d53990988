/*
** roll on CUDA: every element of the result finds its source. Elements are moved as raw bits of
** their size.
*/
#include "shared/cuda_launch.cuh"
#include "ops/array/op_roll.h"

struct roll_job {
    int rank;
    int64_t count;
    int64_t dims[MB_MAX_RANK], origin[MB_MAX_RANK];
    int64_t to_strides[MB_MAX_RANK], from_strides[MB_MAX_RANK];
};

template <class T>
__global__ void __launch_bounds__(MB_THREADS) roll_kernel(const T *from, T *to, roll_job job)
{
    MB_GRID_LOOP(i, job.count)
    {
        int64_t left = i, at = 0, source = 0;
        for (int axis = job.rank - 1; axis >= 0; axis--) {
            const int64_t n = job.dims[axis];
            int64_t next, k;
            if (job.count <= 0x7fffffff) { /* 32-bit division is several times cheaper */
                next = (uint32_t)left / (uint32_t)n;
                k = (uint32_t)left - (uint32_t)next * (uint32_t)n;
            } else {
                next = left / n;
                k = left - next * n;
            }
            left = next;
            at += k * job.to_strides[axis];
            k += job.origin[axis];
            source += (k < n ? k : k - n) * job.from_strides[axis];
        }
        to[at] = from[source];
    }
}

template <class T>
static mb_status run(const mb_op_call *call, const roll_job &job)
{
    roll_kernel<<<mb_blocks(call, job.count, MB_THREADS), MB_THREADS, 0, mb_stream(call)>>>(
        (const T *)call->arrays[MB_ROLL_A]->data, (T *)call->arrays[MB_ROLL_RESULT]->data, job);
    return MB_LAUNCH_STATUS("roll_kernel");
}

extern "C" mb_status mb_cuda_roll(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_ROLL_A], *result = call->arrays[MB_ROLL_RESULT];
    roll_job job = {};
    job.rank = a->shape.rank;
    job.count = 1;
    for (int i = 0; i < job.rank; i++) {
        job.count *= job.dims[i] = a->shape.dims[i];
        job.origin[i] = mb_roll_origin((const mb_roll_params *)call->params, i, job.dims[i]);
        job.to_strides[i] = result->strides[i];
        job.from_strides[i] = a->strides[i];
    }
    switch (mb_cuda_dtype_bytes(a->dtype)) {
    case 1: return run<uint8_t>(call, job);
    case 2: return run<uint16_t>(call, job);
    case 4: return run<uint32_t>(call, job);
    case 8: return run<uint64_t>(call, job);
    default: return run<double2>(call, job);
    }
}
