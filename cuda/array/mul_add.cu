/*
** mul_add on CUDA: one thread per element of the region, blocks of 32 columns x 8 rows.
*/
#include "shared/cuda_launch.cuh"
#include "ops/array/op_mul_add.h"

__global__ void __launch_bounds__(MB_THREADS)
    mul_add_kernel(float *to, int64_t to_pitch, const float *from, int64_t from_pitch, int64_t rows,
                   int64_t cols, float a, float b)
{
    for (int64_t y = blockIdx.y * (int64_t)blockDim.y + threadIdx.y; y < rows;
         y += (int64_t)gridDim.y * blockDim.y)
        for (int64_t x = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; x < cols;
             x += (int64_t)gridDim.x * blockDim.x) {
            float *here = to + y * to_pitch + x;
            float v = b * from[y * from_pitch + x];
            *here = a == 0.0f ? v : a * *here + v;
        }
}

extern "C" mb_status mb_cuda_mul_add(const mb_op_call *call)
{
    const mb_mul_add_params *p = (const mb_mul_add_params *)call->params;
    const mb_array *dst = call->arrays[MB_MUL_ADD_DST], *other = call->arrays[MB_MUL_ADD_OTHER];
    const mb_mul_add_region d = mb_mul_add_region_of(&p->region, &dst->shape);
    const mb_mul_add_region o = mb_mul_add_region_of(&p->other_region, &other->shape);
    const int64_t rows = d.y1 - d.y0, cols = d.x1 - d.x0;
    const int64_t across = (cols + 31) / 32, down = (rows + 7) / 8;
    const dim3 threads(32, 8), blocks((unsigned)(across < 65536 ? across : 65536),
                                      (unsigned)(down < 65535 ? down : 65535));
    mul_add_kernel<<<blocks, threads, 0, mb_stream(call)>>>(
        (float *)dst->data + d.y0 * dst->strides[0] + d.x0, dst->strides[0],
        (const float *)other->data + o.y0 * other->strides[0] + o.x0, other->strides[0], rows, cols,
        (float)p->a, (float)p->b);
    return MB_LAUNCH_STATUS("mul_add_kernel");
}
