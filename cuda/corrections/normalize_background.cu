/*
** normalize_background on CUDA: a warp for each row. Its sums are folded in a fixed order, in double
** precision; the parabola's pass reads the row a second time out of the cache.
*/
#include "shared/cuda_launch.cuh"
#include "ops/frames.h"
#include "ops/corrections/op_normalize_background.h"

#define AHEAD 8 /* columns that a lane has in flight */

struct background_rows {
    mb_frames f;
    int64_t width;
    bool chebyshev, subtract;
    float floor_value;
};

__device__ static inline double warp_sum(double v)
{
#pragma unroll
    for (int step = 16; step > 0; step >>= 1)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}

/* The background of a row, for all lanes of a warp. */
__device__ static mb_background
background_of(const background_rows &s, const mb_background_basis &b, const float *row, int lane)
{
    double sums[3] = {0, 0, 0};
    if (!s.chebyshev) {
        for (int64_t x = lane; x < s.width; x += 32) {
            sums[0] += (double)row[x];
            sums[1] += (double)row[s.f.cols - s.width + x];
        }
        return mb_background_of_edges(&b, s.width, warp_sum(sums[0]) / (double)s.width,
                                      warp_sum(sums[1]) / (double)s.width);
    }
    const double step = 2 / b.columns, start = 1 / b.columns - 1;
    for (int64_t first = lane; first < s.f.cols; first += 32 * AHEAD) {
        float v[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            v[k] = first + 32 * k < s.f.cols ? row[first + 32 * k] : 0.0f;
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            const double u = (double)(first + 32 * k) * step + start, value = (double)v[k];
            sums[0] += value;
            sums[1] += u * value;
            sums[2] += (3 * u * u - b.mean) * value;
        }
    }
    return mb_background_of_sums(&b, warp_sum(sums[0]), warp_sum(sums[1]), warp_sum(sums[2]));
}

__global__ void __launch_bounds__(MB_THREADS)
    normalize_background_kernel(background_rows s, mb_background_basis b)
{
    const float scale = (float)(2 / b.columns), start = (float)(1 - b.columns) * 0.5f;
    const float mean = (float)b.mean;
    const int lane = threadIdx.x & 31, warps = MB_THREADS / 32;
    for (int64_t i = blockIdx.x * (int64_t)warps + threadIdx.x / 32; i < s.f.count * s.f.rows;
         i += (int64_t)gridDim.x * warps) {
        const int64_t z = i / s.f.rows, y = i - z * s.f.rows;
        const float *row = s.f.from + z * s.f.from_frame + y * s.f.from_pitch;
        float *to = s.f.to + z * s.f.to_frame + y * s.f.to_pitch;
        const mb_background c = background_of(s, b, row, lane);
        for (int64_t first = lane; first < s.f.cols; first += 32 * AHEAD) {
            float v[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                v[k] = first + 32 * k < s.f.cols ? row[first + 32 * k] : 0.0f;
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
                const int64_t x = first + 32 * k;
                const float slow = mb_background_at(&c, ((float)x + start) * scale, mean);
                v[k] =
                    s.subtract ? v[k] - slow : v[k] / (slow < s.floor_value ? s.floor_value : slow);
                if (x < s.f.cols)
                    to[x] = v[k];
            }
        }
    }
}

extern "C" mb_status mb_cuda_normalize_background(const mb_op_call *call)
{
    const mb_normalize_background_params *p = (const mb_normalize_background_params *)call->params;
    const mb_array *a = call->arrays[MB_NORMALIZE_BACKGROUND_A];
    background_rows s = {};
    s.f = mb_frames_of(a, call->arrays[MB_NORMALIZE_BACKGROUND_RESULT]);
    s.width = p->width;
    s.chebyshev = p->method == MB_BACKGROUND_CHEBYSHEV;
    s.subtract = p->operation == MB_BACKGROUND_SUBTRACT;
    s.floor_value = (float)p->floor;
    if (mb_count(a) == 0)
        return MB_STATUS_OK;
    normalize_background_kernel<<<mb_blocks(call, s.f.count * s.f.rows * 32, MB_THREADS),
                                  MB_THREADS, 0, mb_stream(call)>>>(
        s, mb_background_basis_of(s.f.cols));
    return MB_LAUNCH_STATUS("normalize_background_kernel");
}
