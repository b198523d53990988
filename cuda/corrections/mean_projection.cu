/*
** mean_projection on CUDA: a thread adds what a pixel has in a segment of frames, in double
** precision; the sums of several segments are added by a second kernel. Segments depend on the
** number of frames alone, so a mean does not depend on how many rows are given.
*/
#include "shared/cuda_launch.cuh"
#include "ops/corrections/op_mean_projection.h"

#define AHEAD 8 /* frames that a thread has in flight */

struct mean_frames {
    const float *from;
    float *to;
    int64_t frames, height, width, segments;
    int64_t stride_f, stride_y, stride_x, to_y, to_x;
};

template <bool TRANSMISSION>
__global__ void __launch_bounds__(MB_THREADS)
    mean_projection_kernel(mean_frames s, double *partials)
{
    const int64_t pixels = s.height * s.width, segment = blockIdx.y;
    const int64_t first = segment * MB_MEAN_PROJECTION_SEGMENT;
    const int64_t left = s.frames - first;
    const int64_t n = left < MB_MEAN_PROJECTION_SEGMENT ? left : MB_MEAN_PROJECTION_SEGMENT;
    MB_GRID_LOOP(i, pixels)
    {
        const int64_t y = i / s.width, x = i - y * s.width;
        const float *from = s.from + first * s.stride_f + y * s.stride_y + x * s.stride_x;
        double sum = 0;
        for (int64_t f = 0; f < n; f += AHEAD) {
            float v[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                v[k] = f + k < n ? from[(f + k) * s.stride_f] : 0.0f;
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
                if (TRANSMISSION)
                    v[k] = v[k] != v[k] ? v[k] : expf(-fminf(fmaxf(v[k], -87.0f), 87.0f));
                if (f + k < n)
                    sum += (double)v[k];
            }
        }
        if (s.segments > 1)
            partials[segment * pixels + i] = sum;
        else
            s.to[y * s.to_y + x * s.to_x] = (float)(sum / (double)s.frames);
    }
}

__global__ void __launch_bounds__(MB_THREADS)
    mean_projection_sum(mean_frames s, const double *partials)
{
    const int64_t pixels = s.height * s.width;
    MB_GRID_LOOP(i, pixels)
    {
        const int64_t y = i / s.width, x = i - y * s.width;
        double sum = 0;
        for (int64_t k = 0; k < s.segments; k++)
            sum += partials[k * pixels + i];
        s.to[y * s.to_y + x * s.to_x] = (float)(sum / (double)s.frames);
    }
}

extern "C" mb_status mb_cuda_mean_projection(const mb_op_call *call)
{
    const mb_mean_projection_params *p = (const mb_mean_projection_params *)call->params;
    const mb_array *a = call->arrays[MB_MEAN_PROJECTION_A],
                   *result = call->arrays[MB_MEAN_PROJECTION_RESULT];
    double *partials = (double *)call->slots[MB_MEAN_PROJECTION_PARTIALS];
    mean_frames s = {};
    s.from = (const float *)a->data;
    s.to = (float *)result->data;
    s.frames = a->shape.dims[0];
    s.height = a->shape.dims[1];
    s.width = a->shape.dims[2];
    s.segments = mb_mean_projection_segments(s.frames);
    s.stride_f = a->strides[0];
    s.stride_y = a->strides[1];
    s.stride_x = a->strides[2];
    s.to_y = result->strides[0];
    s.to_x = result->strides[1];
    if (s.height * s.width == 0)
        return MB_STATUS_OK;
    const unsigned blocks = mb_blocks(call, s.height * s.width, MB_THREADS);
    const dim3 grid(blocks, (unsigned)s.segments);
    if (p->transmission)
        mean_projection_kernel<true><<<grid, MB_THREADS, 0, mb_stream(call)>>>(s, partials);
    else
        mean_projection_kernel<false><<<grid, MB_THREADS, 0, mb_stream(call)>>>(s, partials);
    MB_LAUNCHED("mean_projection_kernel");
    if (s.segments > 1) {
        mean_projection_sum<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(s, partials);
        MB_LAUNCHED("mean_projection_sum");
    }
    return MB_STATUS_OK;
}
