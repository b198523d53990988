/*
** Back-projection on CUDA: what its kernels share. The job they work on, the packed sinograms, the
** packing kernels, the interpolation.
**
**   u = offset[a] + x cosine[a] - y sine[a]   detector coordinate of pixel (x, y) of the full slice
**   image(z, y, x) = scale * sum over a of lerp(sinogram[z, a, .], u), zero outside the detector
**
** Packets are 16 bytes here, not the packets of slices that a call is cut into. Packed layout
** [slices / C][angle][guard + bins + guard], C = 8 halves or 4 floats: one load brings the same bin
** of C slices, and any detector window is contiguous. The zero guard bins make a clamped index
** enough for every coordinate outside the detector. Split packets are halves in two planes a group,
** [slices / 8][high, low][angle][guard + bins + guard]: high plus low is the value to 22 bits.
** Coordinates are made relative to a tile in double and are small in single precision, so their
** error (about 2e-6 bins) does not grow with the image.
*/
#ifndef MB_CUDA_BACKPROJECT_JOB_CUH
#define MB_CUDA_BACKPROJECT_JOB_CUH

#include "shared/cuda_launch.cuh"
#include "ops/tomography/op_backproject.h"

#define BP_GUARD MB_BACKPROJECT_CUDA_GUARD
/* Angles whose sum is a sum of its own in single precision: rounding grows with a sum's length. */
#define BP_SUM 64

enum bp_format { BP_FLOATS, BP_HALVES, BP_SPLIT }; /* of packets of one bin of a group */

struct bp_job {
    mb_parallel_geometry geometry;
    const mb_parallel_angle *angles;
    const uint4 *packets;
    /* Of every slice {factor applied when packing, its inverse}; halves and split. */
    const float2 *half_scale;
    int64_t plane;     /* packets from one group of slices to the next */
    int64_t low_plane; /* split: packets from a group's high plane to its low one; else 0 */
    int row;           /* packets of one line, its guards included */
    int n_angles, bins;
    int slices;   /* of this piece */
    int groups;   /* of its packets */
    float *image; /* first slice of this piece, first pixel of the region */
    int64_t stride_z, stride_y;
    int nx, ny;           /* extents of the region */
    bool begun;           /* add to what the image holds */
    float scale, outside; /* outside: the value of masked pixels */
};

/* (x, y) are relative to the region, here and below. */
__device__ static inline bool bp_masked(const bp_job &job, int x, int y)
{
    return !mb_parallel_inside(&job.geometry, job.geometry.y0 + y, job.geometry.x0 + x);
}

/* Is the whole tile outside the mask? Its point nearest to the middle decides; half a pixel of
** slack for rounding. */
__device__ static inline bool bp_tile_masked(const bp_job &job, int x0, int y0, int w, int h)
{
    const mb_parallel_geometry &g = job.geometry;
    if (g.radius2 < 0)
        return false;
    double x = (double)(g.x0 + x0) - 0.5 * (g.nx - 1), dx = fmax(x, -(x + w - 1)) - 0.5;
    double y = (double)(g.y0 + y0) - 0.5 * (g.ny - 1), dy = fmax(y, -(y + h - 1)) - 0.5;
    dx = fmax(0.0, dx);
    dy = fmax(0.0, dy);
    return dx * dx + dy * dy > g.radius2;
}

/* Detector coordinate of a tile's first pixel. */
__device__ static inline double bp_coordinate(const bp_job &job, const mb_parallel_angle &t, int x0,
                                              int y0)
{
    return t.offset + (double)(job.geometry.x0 + x0) * t.cosine -
           (double)(job.geometry.y0 + y0) * t.sine;
}

/* A pixel of a slice that the job has. */
__device__ static inline void bp_finish(const bp_job &job, int z, int y, int x, bool masked,
                                        float value)
{
    float *pixel = job.image + z * job.stride_z + y * job.stride_y + x;
    if (job.begun)
        value += *pixel;
    *pixel = masked ? job.outside : value;
}

/* ---- packing ---- */

struct bp_source { /* sinogram rows: (slice, angle, bin) with a dense last axis */
    const float *data;
    int64_t stride_z, stride_a;
    int slices, n_angles, bins;
};

/* Largest finite magnitude of each slice, as the bits of a float: for values >= 0 those order as the
** values do, so that the result of the atomics does not depend on their order. Grid: rows, slices. */
__global__ void __launch_bounds__(MB_THREADS) bp_largest(bp_source src, unsigned *bits)
{
    float most = 0;
    for (int a = blockIdx.x; a < src.n_angles; a += gridDim.x) {
        const float *line = src.data + blockIdx.y * src.stride_z + a * src.stride_a;
        for (int first = threadIdx.x; first < src.bins; first += MB_THREADS * MB_BATCH) {
            float v[MB_BATCH];
#pragma unroll
            for (int k = 0; k < MB_BATCH; k++)
                v[k] = first + k * MB_THREADS < src.bins ? fabsf(line[first + k * MB_THREADS]) : 0;
#pragma unroll
            for (int k = 0; k < MB_BATCH; k++)
                most = v[k] <= 3.402823466e38f ? fmaxf(most, v[k]) : most;
        }
    }
    most = mb_block_fold(most, mb_fold_max());
    if (threadIdx.x == 0 && most > 0)
        atomicMax(bits + blockIdx.y, __float_as_uint(most));
}

/* The power of two that brings a slice's largest magnitude into [2^13, 2^14): differences of two
** bins stay finite in a half, and values 2^-27 of the largest are still normal numbers. */
__global__ void bp_choose_scale(const unsigned *bits, float2 *half_scale, int slices)
{
    const int z = blockIdx.x * blockDim.x + threadIdx.x;
    if (z >= slices)
        return;
    const float most = __uint_as_float(bits[z]);
    int exponent = 0;
    if (most > 0)
        frexpf(most, &exponent); /* most = m 2^exponent, 0.5 <= m < 1 */
    const int shift = most > 0 ? max(-120, min(120, 14 - exponent)) : 0;
    half_scale[z] = make_float2(ldexpf(1.0f, shift), ldexpf(1.0f, -shift));
}

__device__ static inline uint4 bp_pack_halves(const float *v)
{
    __half2 h[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
        h[k] = __floats2half2_rn(v[2 * k], v[2 * k + 1]);
    return *(const uint4 *)h;
}

/* Grid: packets of an angle, angles, groups. */
template <bp_format FORMAT>
__global__ void __launch_bounds__(128)
    bp_pack(bp_source src, uint4 *packets, const __grid_constant__ bp_job job)
{
    constexpr int C = FORMAT == BP_FLOATS ? 4 : 8;
    const int row = job.row, group = blockIdx.z;
    const int p = blockIdx.x * blockDim.x + threadIdx.x, b = p - BP_GUARD;
    if (p >= row)
        return;
    float factor[C];
#pragma unroll
    for (int k = 0; k < C; k++)
        factor[k] = FORMAT != BP_FLOATS && group * C + k < src.slices
                        ? job.half_scale[group * C + k].x
                        : 1.0f;
    for (int a = blockIdx.y; a < src.n_angles; a += gridDim.y) {
        float v[8];
#pragma unroll
        for (int k = 0; k < C; k++) {
            int z = group * C + k;
            bool inside = b >= 0 && b < src.bins && z < src.slices;
            v[k] = inside ? src.data[z * src.stride_z + a * src.stride_a + b] * factor[k] : 0.0f;
        }
        uint4 *to = packets + group * job.plane + (int64_t)a * row + p;
        if (FORMAT == BP_FLOATS) {
            *to = make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
                             __float_as_uint(v[3]));
        } else {
            *to = bp_pack_halves(v);
        }
        if (FORMAT == BP_SPLIT) {
#pragma unroll
            for (int k = 0; k < C; k++)
                v[k] -= __half2float(__float2half_rn(v[k]));
            to[job.low_plane] = bp_pack_halves(v);
        }
    }
}

/* ---- interpolation ---- */

/* Adds the interpolated pair of halves to two sums, in single precision. */
__device__ static inline void bp_add_half(float *sum, uint32_t a, uint32_t b, float g, float f)
{
    const float2 u = __half22float2(*(const __half2 *)&a), v = __half22float2(*(const __half2 *)&b);
    sum[0] = fmaf(f, v.x, fmaf(g, u.x, sum[0]));
    sum[1] = fmaf(f, v.y, fmaf(g, u.y, sum[1]));
}

/* Adds the interpolated packet to C sums. */
template <bool HALF>
__device__ static inline void bp_add(float *sum, uint4 a, uint4 b, float f)
{
    const float g = 1.0f - f;
    if (HALF) {
        bp_add_half(sum + 0, a.x, b.x, g, f);
        bp_add_half(sum + 2, a.y, b.y, g, f);
        bp_add_half(sum + 4, a.z, b.z, g, f);
        bp_add_half(sum + 6, a.w, b.w, g, f);
    } else {
        sum[0] = fmaf(f, __uint_as_float(b.x), fmaf(g, __uint_as_float(a.x), sum[0]));
        sum[1] = fmaf(f, __uint_as_float(b.y), fmaf(g, __uint_as_float(a.y), sum[1]));
        sum[2] = fmaf(f, __uint_as_float(b.z), fmaf(g, __uint_as_float(a.z), sum[2]));
        sum[3] = fmaf(f, __uint_as_float(b.w), fmaf(g, __uint_as_float(a.w), sum[3]));
    }
}

#endif
