/*
** Gridding of fourier_reconstruct on CUDA: a thread owns one cell of P grids, a warp one cell of
** the centre, where all rays meet. No atomics: the same input gives the same bits.
** Mathematics: ops/fourier_gridding.h. Positions k * kappa * direction are formed by fused
** multiply-adds with a direction in two floats: exact to 1e-7 cells.
*/
#ifndef MB_CUDA_FOURIER_GATHER_CUH
#define MB_CUDA_FOURIER_GATHER_CUH

#include "cuda_launch.cuh"
#include "ops/op_fourier_reconstruct.h"

struct fourier_job {
    mb_gridding g;
    const float4 *rays; /* two to a ray */
    const int32_t *starts;
    const float2 *samples; /* [ray][k + half][pair] */
    float2 *cells;         /* [pair][G][G] */
    int n, half;           /* samples of a ray, half of them */
};

#define FOURIER_TILE 16
#define FOURIER_SUPER                                                                              \
    8 /* tiles in super-tiles of 8 x 8, so that blocks in flight share samples in the L2 cache */

template <int DEGREE>
__device__ static inline float fourier_window(const mb_gridding &g, float d)
{
    float t = fmaf(d * d, g.minus_inv_half2, 1.0f), sum = g.poly[DEGREE];
#pragma unroll
    for (int i = DEGREE - 1; i >= 0; i--)
        sum = fmaf(sum, t, g.poly[i]);
    return sum;
}

template <int P>
__device__ static inline void fourier_add(const float2 *value, float weight, float *sums)
{
    if (P == 1) {
        float2 v = *value;
        sums[0] = fmaf(weight, v.x, sums[0]);
        sums[1] = fmaf(weight, v.y, sums[1]);
    } else {
        const float4 *values = (const float4 *)value;
#pragma unroll
        for (int p = 0; p < P / 2; p++) {
            float4 v = values[p];
            sums[4 * p] = fmaf(weight, v.x, sums[4 * p]);
            sums[4 * p + 1] = fmaf(weight, v.y, sums[4 * p + 1]);
            sums[4 * p + 2] = fmaf(weight, v.z, sums[4 * p + 2]);
            sums[4 * p + 3] = fmaf(weight, v.w, sums[4 * p + 3]);
        }
    }
}

/* Every `lanes`-th ray from `lane` on. */
template <int P, int DEGREE>
__device__ static inline void fourier_cell(const fourier_job &job, int cell_x, int cell_y, int lane,
                                           int lanes, float *sums)
{
    const mb_gridding &g = job.g;
#pragma unroll 1
    for (int image = 0; image < 3; image++) {
        float x, y;
        int low, high;
        if (!mb_gridding_image(&g, image, cell_x, cell_y, &x, &y))
            continue;
        mb_gridding_buckets(&g, x, y, &low, &high);
        low = mb_gridding_start(&g, job.starts, low);
        high = mb_gridding_start(&g, job.starts, high);
#pragma unroll 1
        for (int s = low + lane; s < high; s += lanes) {
            const int ray = s < 0 ? s + g.rays : s >= g.rays ? s - g.rays : s;
            const float4 a = job.rays[2 * ray];
            int first, last;
            mb_gridding_span(&g, a.z, a.w, x, y, &first, &last);
            if (first > last)
                continue;
            const float4 b = job.rays[2 * ray + 1];
            const float2 *value = job.samples + ((int64_t)ray * job.n + first + job.half) * P;
            for (int k = first; k <= last; k++, value += P) {
                const float kf = (float)k;
                const float dx = fmaf(-kf, b.x, fmaf(-kf, a.x, x));
                const float dy = fmaf(-kf, b.y, fmaf(-kf, a.y, y));
                fourier_add<P>(value, fourier_window<DEGREE>(g, dx) * fourier_window<DEGREE>(g, dy),
                               sums);
            }
        }
    }
}

__device__ static inline bool fourier_is_centre(const mb_gridding &g, int cell_x, int cell_y)
{
    float x = (float)cell_x, y = (float)cell_y;
    return fmaf(x, x, y * y) < g.centre * g.centre;
}

__device__ static inline float2 *fourier_at(const fourier_job &job, int pair, int cell_x,
                                            int cell_y)
{
    const int64_t size = job.g.grid, half = size / 2;
    return job.cells + (pair * size + cell_y + half) * size + cell_x + half;
}

template <int P, int DEGREE>
__global__ void __launch_bounds__(256)
    fourier_gather(const __grid_constant__ fourier_job job, int tiles)
{
    const int supers = (tiles + FOURIER_SUPER - 1) / FOURIER_SUPER,
              area = FOURIER_SUPER * FOURIER_SUPER;
    const int super = blockIdx.x / area, inner = blockIdx.x % area;
    const int tx = super % supers * FOURIER_SUPER + inner % FOURIER_SUPER;
    const int ty = super / supers * FOURIER_SUPER + inner / FOURIER_SUPER;
    /* A warp owns 8 x 4 cells: they share samples. */
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, half = job.g.grid / 2;
    const int cell_x = tx * FOURIER_TILE + (warp & 1) * 8 + (lane & 7) - half;
    const int cell_y = ty * FOURIER_TILE + (warp >> 1) * 4 + (lane >> 3) - half;
    if (cell_x >= half || cell_y >= half || fourier_is_centre(job.g, cell_x, cell_y))
        return;
    float sums[2 * P] = {};
    fourier_cell<P, DEGREE>(job, cell_x, cell_y, 0, 1, sums);
#pragma unroll
    for (int p = 0; p < P; p++)
        *fourier_at(job, p, cell_x, cell_y) = make_float2(sums[2 * p], sums[2 * p + 1]);
}

template <int P, int DEGREE>
__global__ void __launch_bounds__(256)
    fourier_centre(const __grid_constant__ fourier_job job, int radius)
{
    const int64_t side = 2 * radius + 1, cell = blockIdx.x * (int64_t)8 + (threadIdx.x >> 5);
    const int lane = threadIdx.x & 31, half = job.g.grid / 2;
    const int cell_x = (int)(cell % side) - radius, cell_y = (int)(cell / side) - radius;
    if (cell_x < -half || cell_x >= half || cell_y < -half || cell_y >= half || cell_y > radius ||
        !fourier_is_centre(job.g, cell_x, cell_y))
        return; /* the whole warp */
    float sums[2 * P] = {};
    fourier_cell<P, DEGREE>(job, cell_x, cell_y, lane, 32, sums);
#pragma unroll
    for (int i = 0; i < 2 * P; i++)
        for (int step = 16; step > 0; step >>= 1)
            sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], step);
#pragma unroll
    for (int p = 0; p < P; p++)
        if (lane == p)
            *fourier_at(job, p, cell_x, cell_y) = make_float2(sums[2 * p], sums[2 * p + 1]);
}

template <int P, int DEGREE>
static mb_status fourier_grid_as(const fourier_job &job, cudaStream_t stream)
{
    const int tiles = (job.g.grid + FOURIER_TILE - 1) / FOURIER_TILE;
    const int64_t supers = (tiles + FOURIER_SUPER - 1) / FOURIER_SUPER;
    const int radius = (int)ceilf(job.g.centre);
    const int64_t side = 2 * (int64_t)radius + 1;
    fourier_centre<P, DEGREE><<<(unsigned)((side * side + 7) / 8), 256, 0, stream>>>(job, radius);
    MB_LAUNCHED("fourier_centre");
    fourier_gather<P, DEGREE>
        <<<(unsigned)(supers * supers * FOURIER_SUPER * FOURIER_SUPER), 256, 0, stream>>>(job,
                                                                                          tiles);
    MB_LAUNCHED("fourier_gather");
    return MB_STATUS_OK;
}

template <int P>
static mb_status fourier_grid(const fourier_job &job, cudaStream_t stream)
{
    return job.g.degree == MB_GRIDDING_DEGREE
               ? fourier_grid_as<P, MB_GRIDDING_DEGREE>(job, stream)
               : fourier_grid_as<P, MB_FOURIER_FAST_DEGREE>(job, stream);
}

#endif
