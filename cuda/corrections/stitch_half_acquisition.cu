/*
** stitch_half_acquisition on CUDA: each block takes a result row at a time.
*/
#include "shared/cuda_launch.cuh"
#include "ops/frames.h"
#include "ops/corrections/op_stitch_half_acquisition.h"

/* Frames are sinograms here; each has `half` rows of result. */
__global__ void __launch_bounds__(MB_THREADS)
    stitch_half_acquisition_kernel(mb_frames s, int64_t half, mb_half_acquisition h)
{
    for (int64_t i = blockIdx.x; i < s.count * half; i += gridDim.x) {
        const int64_t row = i / half, k = i - row * half;
        const float *own = s.from + row * s.from_frame + k * s.from_pitch;
        const float *other = k + half < s.rows ? own + half * s.from_pitch : nullptr;
        float *to = s.to + row * s.to_frame + k * s.to_pitch;
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
    const mb_frames s = mb_frames_of(sino, result);
    const mb_half_acquisition h = mb_half_acquisition_of(p->center, s.cols);
    const int64_t half = result->shape.dims[result->shape.rank - 2];
    const dim3 blocks(mb_blocks(call, s.count * half, 1),
                      (unsigned)((h.extended + MB_THREADS * 4 - 1) / (MB_THREADS * 4)));
    stitch_half_acquisition_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(s, half, h);
    return MB_LAUNCH_STATUS("stitch_half_acquisition_kernel");
}
