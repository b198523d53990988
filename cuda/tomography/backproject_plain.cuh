/*
** Back-projection by plain loads. bp_plain reads packets and is the path of devices before compute
** capability 8.0: a thread owns one pixel and L groups of C slices. bp_unpacked reads one slice
** of the sinogram as it is, on any device: a thread owns four pixels. In both a warp covers 8 x 4
** pixels and a block is 16 wide, so that neighboring threads read neighboring bins. In both the
** sums of 64 angles are summed: the rounding of a long sum grows with its length.
*/
#ifndef MB_CUDA_BACKPROJECT_PLAIN_CUH
#define MB_CUDA_BACKPROJECT_PLAIN_CUH

#include "tomography/backproject_job.cuh"

#define BP_PLAIN_TILE 16
#define BP_PLAIN_ANGLES 64 /* table entries made at a time */

/* Cosine, minus sine, and the coordinate of the tile's first pixel split into fraction and base. */
__device__ static inline float4 bp_table_entry(const bp_job &job, int a, int x0, int y0)
{
    mb_parallel_angle t = job.angles[a];
    double u = bp_coordinate(job, t, x0, y0);
    double base = fmin(fmax(floor(u), -1073741824.0), 1073741824.0); /* beyond, all bins are zero */
    float rest = (float)fmin(fmax(u - base, -1.0), 1.0);
    return make_float4((float)t.cosine, (float)-t.sine, rest, __int_as_float((int)base));
}

template <bool HALF, int L>
__global__ void __launch_bounds__(256) bp_plain(bp_job job, int first_group)
{
    constexpr int C = HALF ? 8 : 4;
    __shared__ float4 table[BP_PLAIN_ANGLES];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int px = (warp & 1) * 8 + (lane & 7), py = (warp >> 1) * 4 + (lane >> 3);
    const int x0 = blockIdx.x * BP_PLAIN_TILE, y0 = blockIdx.y * BP_PLAIN_TILE;
    const int x = x0 + px, y = y0 + py;
    const int group = first_group + blockIdx.z * L;
    const uint4 *line = job.packets + group * job.plane + BP_GUARD;
    float sum[L][C] = {};
    const bool skip = bp_tile_masked(job, x0, y0, BP_PLAIN_TILE, BP_PLAIN_TILE);
    for (int a0 = 0; a0 < job.n_angles && !skip; a0 += BP_PLAIN_ANGLES) {
        const int count = min(BP_PLAIN_ANGLES, job.n_angles - a0);
        __syncthreads();
        if (threadIdx.x < count)
            table[threadIdx.x] = bp_table_entry(job, a0 + threadIdx.x, x0, y0);
        __syncthreads();
        float part[L][C] = {};
#pragma unroll 2
        for (int k = 0; k < count; k++, line += job.row) {
            float4 t = table[k];
            float u = fmaf((float)px, t.x, fmaf((float)py, t.y, t.z)), r = floorf(u);
            int i = max(-BP_GUARD, min(job.bins, (int)r + __float_as_int(t.w)));
#pragma unroll
            for (int l = 0; l < L; l++) {
                const uint4 *at = line + l * job.plane + i;
                bp_add<HALF>(part[l], __ldg(at), __ldg(at + 1), u - r);
            }
        }
#pragma unroll
        for (int l = 0; l < L; l++)
#pragma unroll
            for (int c = 0; c < C; c++)
                sum[l][c] += part[l][c];
    }
    if (x >= job.nx || y >= job.ny)
        return;
    const bool masked = bp_masked(job, x, y);
#pragma unroll
    for (int l = 0; l < L; l++)
#pragma unroll
        for (int k = 0; k < C; k++) {
            const int z = (group + l) * C + k;
            if (z < job.slices)
                bp_finish(job, z, y, x, masked,
                          sum[l][k] * (HALF ? job.scale * job.half_scale[z].y : job.scale));
        }
}

template <bool HALF>
static mb_status bp_plain_run(const bp_job &job, cudaStream_t stream)
{
    constexpr int C = HALF ? 8 : 4;
    const int groups = (job.slices + C - 1) / C;
    const dim3 tiles((job.nx + BP_PLAIN_TILE - 1) / BP_PLAIN_TILE,
                     (job.ny + BP_PLAIN_TILE - 1) / BP_PLAIN_TILE);
    if (groups >= 2)
        bp_plain<HALF, 2><<<dim3(tiles.x, tiles.y, groups / 2), 256, 0, stream>>>(job, 0);
    if (groups % 2)
        bp_plain<HALF, 1><<<tiles, 256, 0, stream>>>(job, groups - 1);
    return MB_LAUNCH_STATUS("bp_plain");
}

/* Several pixels a thread keep enough loads in flight. */
#define BP_UNPACKED_PIXELS 4

template <bool DISTANCE>
__global__ void __launch_bounds__(256) bp_unpacked(bp_job job, const float *sino, int64_t stride_a)
{
    __shared__ float4 table[BP_PLAIN_ANGLES];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int px = (warp & 1) * 8 + (lane & 7), py = (warp >> 1) * 4 + (lane >> 3);
    const int height = BP_PLAIN_TILE * BP_UNPACKED_PIXELS;
    const int x0 = blockIdx.x * BP_PLAIN_TILE, y0 = blockIdx.y * height, x = x0 + px;
    float sum[BP_UNPACKED_PIXELS] = {};
    const bool skip = bp_tile_masked(job, x0, y0, BP_PLAIN_TILE, height);
    for (int a0 = 0; a0 < job.n_angles && !skip; a0 += BP_PLAIN_ANGLES) {
        const int count = min(BP_PLAIN_ANGLES, job.n_angles - a0);
        __syncthreads();
        if (threadIdx.x < count)
            table[threadIdx.x] = bp_table_entry(job, a0 + threadIdx.x, x0, y0);
        __syncthreads();
        const float *line = sino + a0 * stride_a;
        float part[BP_UNPACKED_PIXELS] = {};
        for (int k = 0; k < count; k++, line += stride_a) {
            float4 t = table[k];
            float first = fmaf((float)px, t.x, fmaf((float)py, t.y, t.z));
            const mb_parallel_shadow shadow = mb_parallel_shadow_of(t.x, t.y);
#pragma unroll
            for (int p = 0; p < BP_UNPACKED_PIXELS; p++) {
                float u = fmaf((float)(BP_PLAIN_TILE * p), t.y, first), r = floorf(u), f = u - r;
                int i = (int)r + __float_as_int(t.w);
                if (DISTANCE)
                    f = mb_parallel_share(f, shadow);
                float a = i >= 0 && i < job.bins ? __ldg(line + i) : 0.0f;
                float b = i >= -1 && i < job.bins - 1 ? __ldg(line + i + 1) : 0.0f;
                part[p] = fmaf(f, b, fmaf(1.0f - f, a, part[p]));
            }
        }
#pragma unroll
        for (int p = 0; p < BP_UNPACKED_PIXELS; p++)
            sum[p] += part[p];
    }
#pragma unroll
    for (int p = 0; p < BP_UNPACKED_PIXELS; p++) {
        int y = y0 + py + BP_PLAIN_TILE * p;
        if (x < job.nx && y < job.ny)
            bp_finish(job, 0, y, x, bp_masked(job, x, y), sum[p] * job.scale);
    }
}

template <bool DISTANCE>
static mb_status bp_unpacked_run(const bp_job &job, const float *sino, int64_t stride_a,
                                 cudaStream_t stream)
{
    const int height = BP_PLAIN_TILE * BP_UNPACKED_PIXELS;
    const dim3 grid((job.nx + BP_PLAIN_TILE - 1) / BP_PLAIN_TILE, (job.ny + height - 1) / height);
    bp_unpacked<DISTANCE><<<grid, 256, 0, stream>>>(job, sino, stride_a);
    return MB_LAUNCH_STATUS("bp_unpacked");
}

#endif
