/*
** circular_mask on CUDA: a thread for each column of a row; slices and rows are the grid. In place,
** only pixels outside the circle are written.
*/
#include "shared/cuda_launch.cuh"
#include "ops/corrections/op_circular_mask.h"

struct mask_slices {
    const float *from;
    float *to;
    int64_t ny, nx, slices;
    int64_t from_z, from_y, from_x, to_z, to_y, to_x;
};

__global__ void __launch_bounds__(MB_THREADS)
    circular_mask_kernel(mask_slices s, mb_circle circle, float value)
{
    for (int64_t y = blockIdx.y; y < s.ny; y += gridDim.y)
        for (int64_t x = blockIdx.x * (int64_t)MB_THREADS + threadIdx.x; x < s.nx;
             x += (int64_t)gridDim.x * MB_THREADS) {
            const bool inside = mb_circle_has(&circle, y, x);
            if (inside && s.from == s.to)
                continue;
            for (int64_t z = blockIdx.z; z < s.slices; z += gridDim.z)
                s.to[z * s.to_z + y * s.to_y + x * s.to_x] =
                    inside ? s.from[z * s.from_z + y * s.from_y + x * s.from_x] : value;
        }
}

static unsigned extent_of(int64_t count, int64_t most)
{
    return (unsigned)(count < most ? count : most);
}

extern "C" mb_status mb_cuda_circular_mask(const mb_op_call *call)
{
    const mb_circular_mask_params *p = (const mb_circular_mask_params *)call->params;
    const mb_array *a = call->arrays[MB_CIRCULAR_MASK_A],
                   *result = call->arrays[MB_CIRCULAR_MASK_RESULT];
    const int rank = a->shape.rank;
    mask_slices s = {};
    s.from = (const float *)a->data;
    s.to = (float *)result->data;
    s.slices = rank == 3 ? a->shape.dims[0] : 1;
    s.ny = a->shape.dims[rank - 2];
    s.nx = a->shape.dims[rank - 1];
    s.from_z = rank == 3 ? a->strides[0] : 0;
    s.to_z = rank == 3 ? result->strides[0] : 0;
    s.from_y = a->strides[rank - 2];
    s.to_y = result->strides[rank - 2];
    s.from_x = a->strides[rank - 1];
    s.to_x = result->strides[rank - 1];
    if (s.slices * s.ny * s.nx == 0)
        return MB_STATUS_OK;
    const dim3 blocks(extent_of((s.nx + MB_THREADS - 1) / MB_THREADS, 1 << 20),
                      extent_of(s.ny, 65535), extent_of(s.slices, 16));
    circular_mask_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(
        s, mb_circular_mask_circle(p, &a->shape), (float)p->value);
    return MB_LAUNCH_STATUS("circular_mask_kernel");
}
