/*
** blend_seam on CUDA: a thread makes one column of one row.
*/
#include "ops/frames.h"
#include "ops/geometry/op_blend_seam.h"
#include "shared/cuda_launch.cuh"

__global__ void __launch_bounds__(MB_THREADS)
    blend_seam_kernel(mb_frames s, int64_t cols, int64_t seam, int64_t overlap)
{
    const int64_t x = blockIdx.x * (int64_t)MB_THREADS + threadIdx.x;
    if (x >= cols)
        return;
    for (int64_t f = blockIdx.z; f < s.count; f += gridDim.z)
        for (int64_t y = blockIdx.y; y < s.rows; y += gridDim.y)
            s.to[f * s.to_frame + y * s.to_pitch + x] =
                mb_blend_seam_at(s.from + f * s.from_frame + y * s.from_pitch, seam, overlap, x);
}

extern "C" mb_status mb_cuda_blend_seam(const mb_op_call *call)
{
    const mb_blend_seam_params *p = (const mb_blend_seam_params *)call->params;
    const mb_array *result = call->arrays[MB_BLEND_SEAM_RESULT];
    const mb_frames s = mb_frames_of(call->arrays[MB_BLEND_SEAM_A], result);
    const int64_t cols = result->shape.dims[result->shape.rank - 1];
    if (mb_count(result) == 0)
        return MB_STATUS_OK;
    const dim3 blocks((unsigned)((cols + MB_THREADS - 1) / MB_THREADS),
                      (unsigned)(s.rows < 65535 ? s.rows : 65535),
                      (unsigned)(s.count < 65535 ? s.count : 65535));
    blend_seam_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(s, cols, p->seam, p->overlap);
    return MB_LAUNCH_STATUS("blend_seam_kernel");
}
