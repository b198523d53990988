/*
** Gridding of fourier_reconstruct on CUDA: a thread owns a block of 2 x 2 cells of P grids and
** reads a sample once for the four; a warp owns such a block of the center, where all rays meet. No
** atomics: the same input gives the same bits.
** Mathematics: ops/fourier_gridding.h. Positions k * kappa * direction are formed by fused
** multiply-adds with a direction in two floats: exact to 1e-7 cells.
** Samples are [pairs / 2][ray][k + half][2], or [ray][k + half] for one pair.
*/
#ifndef MB_CUDA_FOURIER_GATHER_CUH
#define MB_CUDA_FOURIER_GATHER_CUH

#include "shared/cuda_launch.cuh"
#include "ops/tomography/op_fourier_reconstruct.h"

#define FOURIER_BLOCK 2 /* cells of a thread, each way */

struct fourier_job {
    mb_gridding g;      /* of blocks of cells */
    const float4 *rays; /* two to a ray */
    const int32_t *starts;
    const float2 *samples;
    float2 *cells;    /* [pair][G][G] */
    int n, half;      /* samples of a ray, half of them */
    bool leave_empty; /* cells that no sample reaches are not written */
    bool lone;        /* of rows cell_y < 0 only the first is needed (op_fourier_reconstruct.h) */
};

/* Tiles in super-tiles of 8 x 8, so that thread blocks in flight share samples in the L2 cache. A
** warp owns 8 x 4 blocks of cells: they share samples. Super-tiles go from the middle of the grid
** outwards, for those of the middle take longest. */
#define FOURIER_TILE (16 * FOURIER_BLOCK)
#define FOURIER_SUPER 8

/* 0 ... count - 1 from the middle outwards: the i-th. */
__device__ static inline int fourier_outwards(int i, int count)
{
    return count / 2 + (i & 1 ? -(i + 1) / 2 : i / 2);
}

template <int DEGREE>
__device__ static inline float fourier_window(const mb_gridding &g, float d)
{
    float t = fmaf(d * d, g.minus_inv_half2, 1.0f), sum = g.poly[DEGREE];
#pragma unroll
    for (int i = DEGREE - 1; i >= 0; i--)
        sum = fmaf(sum, t, g.poly[i]);
    return t > 0 ? sum : 0.0f;
}

/* A sample into B x B cells. */
template <int P, int B>
__device__ static inline void fourier_add(const float2 *value, int64_t plane, const float *wx,
                                          const float *wy, float (&sums)[B * B][2 * P])
{
    float weight[B * B];
#pragma unroll
    for (int c = 0; c < B * B; c++)
        weight[c] = wx[c % B] * wy[c / B];
    if (P == 1) {
        const float2 v = *value;
#pragma unroll
        for (int c = 0; c < B * B; c++) {
            sums[c][0] = fmaf(weight[c], v.x, sums[c][0]);
            sums[c][1] = fmaf(weight[c], v.y, sums[c][1]);
        }
    } else {
#pragma unroll
        for (int p = 0; p < P / 2; p++) {
            const float4 v = *(const float4 *)(value + p * plane);
#pragma unroll
            for (int c = 0; c < B * B; c++) {
                sums[c][4 * p] = fmaf(weight[c], v.x, sums[c][4 * p]);
                sums[c][4 * p + 1] = fmaf(weight[c], v.y, sums[c][4 * p + 1]);
                sums[c][4 * p + 2] = fmaf(weight[c], v.z, sums[c][4 * p + 2]);
                sums[c][4 * p + 3] = fmaf(weight[c], v.w, sums[c][4 * p + 3]);
            }
        }
    }
}

/* One sample into the block of cells around (x, y). */
template <int P, int DEGREE, int B>
__device__ static inline void fourier_take(const mb_gridding &g, float x, float y, float k,
                                           const float4 &a, const float4 &b, const float2 *value,
                                           int64_t plane, float (&sums)[B * B][2 * P])
{
    const float dx = fmaf(-k, b.x, fmaf(-k, a.x, x)), dy = fmaf(-k, b.y, fmaf(-k, a.y, y));
    float wx[B], wy[B];
#pragma unroll
    for (int i = 0; i < B; i++) {
        wx[i] = fourier_window<DEGREE>(g, dx + ((float)i - 0.5f * (B - 1)));
        wy[i] = fourier_window<DEGREE>(g, dy + ((float)i - 0.5f * (B - 1)));
    }
    fourier_add<P, B>(value, plane, wx, wy, sums);
}

__device__ static inline int fourier_ray(const mb_gridding &g, int s)
{
    return s < 0 ? s + g.rays : s >= g.rays ? s - g.rays : s;
}

/* Rays and samples in one loop: the threads of a warp differ in how many samples they find on a
** ray. */
template <int P, int DEGREE, int B>
__device__ static inline void fourier_cells(const fourier_job &job, int cell_x, int cell_y,
                                            float (&sums)[B * B][2 * P])
{
    const mb_gridding &g = job.g;
    const int V = P > 1 ? 2 : 1;
    const int64_t plane = (int64_t)g.rays * job.n * V;
    for (int image = 0; image < 3; image++) {
        float x = (float)cell_x + 0.5f * (B - 1), y = (float)cell_y + 0.5f * (B - 1);
        int low, high;
        if (!mb_gridding_image(&g, image, &x, &y))
            continue;
        mb_gridding_buckets(&g, x, y, &low, &high);
        low = mb_gridding_start(&g, job.starts, low);
        high = mb_gridding_start(&g, job.starts, high);
        int s = low - 1, k = 0, last = -1;
        float4 a, b;
        const float2 *value = job.samples;
#pragma unroll 1
        for (;; k++, value += V) {
            if (k > last) {
                int ray;
                do {
                    if (++s >= high)
                        break;
                    ray = fourier_ray(g, s);
                    a = job.rays[2 * ray];
                    mb_gridding_span(&g, a.z, a.w, x, y, &k, &last);
                } while (k > last);
                if (s >= high)
                    break;
                b = job.rays[2 * ray + 1];
                value = job.samples + ((int64_t)ray * job.n + k + job.half) * V;
            }
            fourier_take<P, DEGREE, B>(g, x, y, (float)k, a, b, value, plane, sums);
        }
    }
}

/* The same by a whole warp: four rays at a time, eight samples of each. */
template <int P, int DEGREE, int B>
__device__ static inline void fourier_cells_by_warp(const fourier_job &job, int cell_x, int cell_y,
                                                    int lane, float (&sums)[B * B][2 * P])
{
    const mb_gridding &g = job.g;
    const int V = P > 1 ? 2 : 1;
    const int64_t plane = (int64_t)g.rays * job.n * V;
    for (int image = 0; image < 3; image++) {
        float x = (float)cell_x + 0.5f * (B - 1), y = (float)cell_y + 0.5f * (B - 1);
        int low, high;
        if (!mb_gridding_image(&g, image, &x, &y))
            continue;
        mb_gridding_buckets(&g, x, y, &low, &high);
        low = mb_gridding_start(&g, job.starts, low);
        high = mb_gridding_start(&g, job.starts, high);
        for (int s = low + lane / 8; s < high; s += 4) {
            const int ray = fourier_ray(g, s);
            const float4 a = job.rays[2 * ray], b = job.rays[2 * ray + 1];
            int first, last;
            mb_gridding_span(&g, a.z, a.w, x, y, &first, &last);
            for (int k = first + lane % 8; k <= last; k += 8)
                fourier_take<P, DEGREE, B>(g, x, y, (float)k, a, b,
                                           job.samples + ((int64_t)ray * job.n + k + job.half) * V,
                                           plane, sums);
        }
    }
}

/* Squared distance of the block that holds this cell from frequency 0. */
__device__ static inline float fourier_radius2(const mb_gridding &g, int cell_x, int cell_y)
{
    const int half = g.grid / 2;
    float x = (float)((cell_x + half) / FOURIER_BLOCK * FOURIER_BLOCK - half);
    float y = (float)((cell_y + half) / FOURIER_BLOCK * FOURIER_BLOCK - half);
    x += 0.5f * (FOURIER_BLOCK - 1);
    y += 0.5f * (FOURIER_BLOCK - 1);
    return fmaf(x, x, y * y);
}

__device__ static inline bool fourier_is_center(const mb_gridding &g, int cell_x, int cell_y)
{
    return fourier_radius2(g, cell_x, cell_y) < g.center * g.center;
}

/* Cells that no sample reaches. */
__device__ static inline bool fourier_is_empty(const mb_gridding &g, int cell_x, int cell_y)
{
    return fourier_radius2(g, cell_x, cell_y) >= g.outer * g.outer;
}

/* Is this block of cells one of those that nobody needs? */
__device__ static inline bool fourier_is_spare(const fourier_job &job, int cell_y)
{
    return job.lone && cell_y < 0 && cell_y != -job.g.grid / 2;
}

__device__ static inline float2 *fourier_at(const fourier_job &job, int pair, int cell_x,
                                            int cell_y)
{
    const int64_t size = job.g.grid, half = size / 2;
    return job.cells + (pair * size + cell_y + half) * size + cell_x + half;
}

/* A block of cells of the center, by one warp. */
template <int P, int DEGREE>
__device__ static inline void fourier_center(const fourier_job &job, int at, int side)
{
    constexpr int B = FOURIER_BLOCK;
    const int lane = threadIdx.x & 31, half = job.g.grid / 2, middle = half / B;
    const int cell_x = (at % side - side / 2 + middle) * B - half,
              cell_y = (at / side - side / 2 + middle) * B - half;
    if (at >= side * side || cell_x < -half || cell_x >= half || cell_y < -half || cell_y >= half ||
        fourier_is_spare(job, cell_y) || !fourier_is_center(job.g, cell_x, cell_y))
        return; /* the whole warp */
    float sums[B * B][2 * P] = {};
    fourier_cells_by_warp<P, DEGREE, B>(job, cell_x, cell_y, lane, sums);
#pragma unroll
    for (int c = 0; c < B * B; c++)
#pragma unroll
        for (int i = 0; i < 2 * P; i++)
            for (int step = 16; step > 0; step >>= 1)
                sums[c][i] += __shfl_xor_sync(0xffffffffu, sums[c][i], step);
#pragma unroll
    for (int c = 0; c < B * B; c++)
#pragma unroll
        for (int p = 0; p < P; p++)
            if (lane == (c * P + p) % 32)
                *fourier_at(job, p, cell_x + c % B, cell_y + c / B) =
                    make_float2(sums[c][2 * p], sums[c][2 * p + 1]);
}

/* The first thread blocks take the center, whose warps run longest; the others a tile each. */
template <int P, int DEGREE>
__global__ void __launch_bounds__(256, 2)
    fourier_gather(const __grid_constant__ fourier_job job, int tiles, int side)
{
    constexpr int B = FOURIER_BLOCK;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, half = job.g.grid / 2;
    const int center = (side * side + 7) / 8;
    if ((int)blockIdx.x < center) {
        fourier_center<P, DEGREE>(job, blockIdx.x * 8 + warp, side);
        return;
    }
    const int tile = blockIdx.x - center;
    const int supers = (tiles + FOURIER_SUPER - 1) / FOURIER_SUPER,
              area = FOURIER_SUPER * FOURIER_SUPER;
    const int super = tile / area, inner = tile % area;
    const int sx = fourier_outwards(super % supers, supers),
              sy = fourier_outwards(super / supers, supers);
    const int tx = sx * FOURIER_SUPER + inner % FOURIER_SUPER;
    const int ty = sy * FOURIER_SUPER + inner / FOURIER_SUPER;
    const int cell_x = tx * FOURIER_TILE + ((warp & 1) * 8 + (lane & 7)) * B - half;
    const int cell_y = ty * FOURIER_TILE + ((warp >> 1) * 4 + (lane >> 3)) * B - half;
    if (cell_x >= half || cell_y >= half || fourier_is_spare(job, cell_y) ||
        fourier_is_center(job.g, cell_x, cell_y) ||
        (job.leave_empty && fourier_is_empty(job.g, cell_x, cell_y)))
        return;
    float sums[B * B][2 * P] = {};
    fourier_cells<P, DEGREE, B>(job, cell_x, cell_y, sums);
#pragma unroll
    for (int p = 0; p < P; p++)
#pragma unroll
        for (int c = 0; c < B * B; c += B) {
            float2 *to = fourier_at(job, p, cell_x, cell_y + c / B);
            *(float4 *)to = make_float4(sums[c][2 * p], sums[c][2 * p + 1], sums[c + 1][2 * p],
                                        sums[c + 1][2 * p + 1]);
        }
}

template <int P, int DEGREE>
static mb_status fourier_grid_as(const fourier_job &job, cudaStream_t stream)
{
    const int tiles = (job.g.grid + FOURIER_TILE - 1) / FOURIER_TILE;
    const int64_t supers = (tiles + FOURIER_SUPER - 1) / FOURIER_SUPER;
    const int64_t side = 2 * ((int64_t)ceilf(job.g.center / FOURIER_BLOCK) + 1);
    const int64_t blocks = (side * side + 7) / 8 + supers * supers * FOURIER_SUPER * FOURIER_SUPER;
    fourier_gather<P, DEGREE><<<(unsigned)blocks, 256, 0, stream>>>(job, tiles, (int)side);
    MB_LAUNCHED("fourier_gather");
    return MB_STATUS_OK;
}

template <int P>
static mb_status fourier_grid(const fourier_job &job, cudaStream_t stream)
{
    return job.g.degree == MB_FOURIER_FAST_DEGREE
               ? fourier_grid_as<P, MB_FOURIER_FAST_DEGREE>(job, stream)
               : fourier_grid_as<P, MB_GRIDDING_DEGREE>(job, stream);
}

#endif
