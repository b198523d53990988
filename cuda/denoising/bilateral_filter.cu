/*
** bilateral_filter on CUDA: a block has a tile of 32 columns and 16 rows, two rows a thread. It
** loads the tile with its neighbors from one plane after the other; of a slice there is one plane.
*/
#include "ops/denoising/op_bilateral_filter.h"
#include "ops/frames.h"
#include "shared/cuda_launch.cuh"

#define COLUMNS 32
#define ROWS 16
#define PATCH 2 /* rows of a thread, one beside the other */
#define LINE (COLUMNS + 2 * MB_BILATERAL_MOST)
#define FAR 1e38f /* for what is not finite: its weight is 0 */

typedef struct bilateral_job {
    mb_frames s;
    int planes, rows, columns, radius, deep; /* deep: neighbors along planes */
    int mode;
    bool apart;                     /* slices: each plane by itself */
    float outside, value, distance; /* distance: exponent of 2 of distance 1 */
} bilateral_job;

__device__ static __forceinline__ float bilateral_power(float y)
{
    float made;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(made) : "f"(y));
    return made;
}

/* The tile with its neighbors, of one plane. Beyond the array values are those of the mode. */
__device__ static void bilateral_load(float *tile, const bilateral_job &job, int64_t z, int x0,
                                      int y0, int width, int height)
{
    const int64_t plane = job.apart ? z : mb_pad_source(job.mode, z, job.planes);
    for (int i = threadIdx.x; i < width * height; i += COLUMNS * ROWS / PATCH) {
        const int64_t y = mb_pad_source(job.mode, y0 + i / width, job.rows);
        const int64_t x = mb_pad_source(job.mode, x0 + i % width, job.columns);
        const float v = plane < 0 || y < 0 || x < 0
                            ? job.outside
                            : job.s.from[plane * job.s.from_frame + y * job.s.from_pitch + x];
        tile[i / width * LINE + i % width] = isfinite(v) ? v : FAR;
    }
}

__global__ void __launch_bounds__(COLUMNS *ROWS / PATCH) bilateral(bilateral_job job, int first)
{
    extern __shared__ float tile[];
    const int r = job.radius, width = COLUMNS + 2 * r, height = ROWS + 2 * r;
    const int tx = threadIdx.x % COLUMNS, ty = threadIdx.x / COLUMNS * PATCH;
    const int x0 = blockIdx.x * COLUMNS, y0 = blockIdx.y * ROWS, z = blockIdx.z + first;
    float *const far = tile + height * LINE; /* exponents of distances -r ... r */
    float c[PATCH], sum[PATCH], weights[PATCH];
    for (int i = threadIdx.x; i <= 2 * r; i += COLUMNS * ROWS / PATCH)
        far[i] = job.distance * (float)((i - r) * (i - r));
#pragma unroll
    for (int i = 0; i < PATCH; i++) {
        const int x = min(x0 + tx, job.columns - 1), y = min(y0 + ty + i, job.rows - 1);
        const float v = job.s.from[z * job.s.from_frame + y * job.s.from_pitch + x];
        c[i] = isfinite(v) ? v : 0;
        sum[i] = weights[i] = 0;
    }
    for (int dz = -job.deep; dz <= job.deep; dz++) {
        __syncthreads();
        bilateral_load(tile, job, (int64_t)z + dz, x0 - r, y0 - r, width, height);
        __syncthreads();
        for (int j = 0; j < 2 * r + PATCH; j++) {
            float own[PATCH], count[PATCH];
#pragma unroll
            for (int i = 0; i < PATCH; i++)
                own[i] = count[i] = 0;
#pragma unroll 4
            for (int dx = 0; dx <= 2 * r; dx++) {
                const float v = tile[(ty + j) * LINE + tx + dx], s = far[dx];
#pragma unroll
                for (int i = 0; i < PATCH; i++) {
                    const float d = v - c[i];
                    const float w = bilateral_power(fmaf(d * d, job.value, s));
                    own[i] = fmaf(w, d, own[i]);
                    count[i] += w;
                }
            }
#pragma unroll
            for (int i = 0; i < PATCH; i++)
                if (j >= i && j - i <= 2 * r) {
                    const float w = bilateral_power(far[j - i]) *
                                    bilateral_power(job.distance * (float)(dz * dz));
                    sum[i] = fmaf(w, own[i], sum[i]);
                    weights[i] = fmaf(w, count[i], weights[i]);
                }
        }
    }
#pragma unroll
    for (int i = 0; i < PATCH; i++) {
        const int x = x0 + tx, y = y0 + ty + i;
        if (x >= job.columns || y >= job.rows)
            continue;
        const float v = job.s.from[z * job.s.from_frame + y * job.s.from_pitch + x];
        job.s.to[z * job.s.to_frame + y * job.s.to_pitch + x] =
            isfinite(v) ? v + sum[i] / weights[i] : v;
    }
}

extern "C" mb_status mb_cuda_bilateral_filter(const mb_op_call *call)
{
    const mb_bilateral_filter_params *p = (const mb_bilateral_filter_params *)call->params;
    const mb_array *a = call->arrays[MB_BILATERAL_FILTER_A];
    const mb_bilateral_extents n = mb_bilateral_extents_of(p, &a->shape);
    bilateral_job job = {};
    job.s = mb_frames_of(a, call->arrays[MB_BILATERAL_FILTER_RESULT]);
    job.apart = p->dimensions == 2;
    job.planes = (int)(n.slices * n.planes);
    job.rows = (int)n.rows;
    job.columns = (int)n.columns;
    job.radius = (int)mb_bilateral_radius(p);
    job.deep = job.apart ? 0 : job.radius;
    job.mode = p->mode;
    job.outside = (float)p->value;
    job.value = mb_bilateral_value(p);
    job.distance = (float)mb_bilateral_distance(p, 1);
    if (n.slices * n.planes * n.rows * n.columns == 0)
        return MB_STATUS_OK;
    const int bytes = ((ROWS + 2 * job.radius) * LINE + 2 * job.radius + 1) *
                      (int)sizeof(float); /* at most 43 KiB */
    for (int z = 0; z < job.planes; z += 65535) {
        const dim3 blocks((job.columns + COLUMNS - 1) / COLUMNS, (job.rows + ROWS - 1) / ROWS,
                          job.planes - z < 65535 ? job.planes - z : 65535);
        bilateral<<<blocks, COLUMNS * ROWS / PATCH, bytes, mb_stream(call)>>>(job, z);
        MB_LAUNCHED("bilateral");
    }
    return MB_STATUS_OK;
}
