/*
** The 2-D inverse transform of fourier_reconstruct on CUDA, from the grid straight to pixels: one
** kernel along y, one along x. Only the lines and points that the image needs are made, and cells
** that no sample reaches are not read.
** The grid is [pair][x][y], y fastest (the gridder is given rays with x and y exchanged): the first
** kernel reads along y, and writes [pair][line][x] through shared memory; the second reads along x
** and writes slices, with the window's transform divided out and the pair taken apart. Of a slice
** without a partner only the lines x >= 0 and the first exist, and two of its lines are a pair.
** G = m T, T threads a transform: fourier_block.cuh.
*/
#ifndef MB_CUDA_FOURIER_IMAGE_CUH
#define MB_CUDA_FOURIER_IMAGE_CUH

#include "tomography/fourier_gather.cuh"
#include "tomography/fourier_line.cuh"

template <int T>
__global__ void __launch_bounds__(T *fourier_columns<T>::W)
    fourier_along_y(const __grid_constant__ fourier_image_job job)
{
    extern __shared__ float2 fourier_shared[];
    using R = fourier_radices<T>;
    constexpr int W = fourier_columns<T>::W, H = FOURIER_HELD;
    constexpr int LAST = R::C > 1 ? R::C : R::B, Q = H / LAST;
    const int t = threadIdx.x % T, w = threadIdx.x / T, grid = job.grid, half = grid / 2;
    const int from_x = job.lone && blockIdx.x > 0 ? half - W : 0;
    const int room = fourier_room(grid), x0 = from_x + blockIdx.x * W, x = x0 + w;
    const int64_t pair = blockIdx.y, high = job.g.y1 - job.g.y0;
    float2 *shared = fourier_shared + w * room;
    const float2 *from = job.cells + (pair * grid + x) * grid;
    /* Cells farther out hold nothing: they were not written (fourier_is_empty). */
    const float reach = job.reach, xs = (float)(x - half), rest = fmaf(-xs, xs, reach * reach);
    const int far = rest < 0 ? -1 : (int)sqrtf(rest);
    float2 v[H];
#pragma unroll
    for (int e = 0; e < H; e++) {
        const int y = t + T * e;
        v[e] = e < job.kept && abs(y - half) <= far ? __ldcs(from + y) : make_float2(0, 0);
    }
    fourier_first<T, 1>(v, t, job.kept, shared);
    fourier_passes<T, 1, false>(v, t, job.kept, grid, shared, w);
    const int step = grid / LAST;
#pragma unroll
    for (int k = 0; k < Q; k++) {
        const int b = t + T * k;
        if (b < step)
#pragma unroll
            for (int r = 0; r < LAST; r++)
                shared[fourier_place(b + r * step)] = v[k + Q * r];
    }
    __syncthreads();
    const int hy = (int)(high / 2);
    for (int i = threadIdx.x; i < high; i += T * W) {
        const int place = fourier_place(i < hy ? i - hy + grid : i - hy);
        float2 *to = job.lines + (pair * high + i) * grid + x0;
        if (W == 1)
            to[0] = fourier_shared[place];
#pragma unroll
        for (int c = 0; c + 1 < W; c += 2) {
            const float2 a = fourier_shared[c * room + place],
                         b = fourier_shared[(c + 1) * room + place];
            *(float4 *)(to + c) = make_float4(a.x, a.y, b.x, b.y);
        }
    }
}

/* A line of a pair of slices; LONE: lines 2 i and 2 i + 1 of a slice without a partner. */
template <int T, bool LONE>
__global__ void __launch_bounds__(T, T >= 1024 ? 1 : FOURIER_ALONG_THREADS / (T > 64 ? T : 64))
    fourier_along_x(const __grid_constant__ fourier_image_job job)
{
    extern __shared__ float2 fourier_shared[];
    using R = fourier_radices<T>;
    constexpr int H = FOURIER_HELD, LAST = R::C > 1 ? R::C : R::B, Q = H / LAST;
    const int t = threadIdx.x, grid = job.grid, i = LONE ? 2 * blockIdx.x : blockIdx.x;
    const int high = (int)(job.g.y1 - job.g.y0), wide = (int)(job.g.x1 - job.g.x0);
    const int64_t pair = blockIdx.y;
    const bool two = LONE ? i + 1 < high : 2 * pair + 1 < job.to.slices;
    const float2 *from = job.lines + (pair * high + i) * grid, *next = two ? from + grid : from;
    float2 v[H];
    if (2 * pair >= job.to.slices)
        return;
#pragma unroll
    for (int e = 0; e < H; e++) {
        int x = t + T * e;
        v[e] = make_float2(0, 0);
        if (e >= job.kept)
            continue;
        if (!LONE) {
            v[e] = __ldcs(from + x);
        } else { /* at -x the conjugate of x */
            const float sign = x > 0 && x < grid / 2 ? -1.0f : 1.0f;
            x = x > 0 && x < grid / 2 ? grid - x : x;
            const float2 a = __ldcs(from + x), b = __ldcs(next + x);
            v[e] = make_float2(a.x - sign * b.y, sign * a.y + b.x);
        }
    }
    fourier_first<T, 1>(v, t, job.kept, fourier_shared);
    fourier_passes<T, 1, false>(v, t, job.kept, grid, fourier_shared, 0);
    const int step = grid / LAST, hx = wide / 2;
    const fourier_line line(job, i), second = LONE && two ? fourier_line(job, i + 1) : line;
    float *even = (float *)row_of(job.to, 2 * pair, i);
    float *odd = !two   ? even
                 : LONE ? (float *)row_of(job.to, 2 * pair, i + 1)
                        : (float *)row_of(job.to, 2 * pair + 1, i);
#pragma unroll
    for (int k = 0; k < Q; k++) {
        const int b = t + T * k;
        if (b >= step)
            break;
#pragma unroll
        for (int r = 0; r < LAST; r++) {
            const int f = b + r * step, xs = 2 * f < grid ? f : f - grid, x = xs + hx;
            if (x < 0 || x >= wide)
                continue;
            const float deapodise = job.deapodise[xs < 0 ? -xs : xs];
            const float weight = line.weight(xs, deapodise);
            even[x] = line.has(x) ? v[k + Q * r].x * weight : job.outside;
            if (two)
                odd[x] = (LONE ? second : line).has(x)
                             ? v[k + Q * r].y * (LONE ? second.weight(xs, deapodise) : weight)
                             : job.outside;
        }
    }
}

template <int T>
static mb_status fourier_image_as(const fourier_image_job &job, int64_t pairs, cudaStream_t stream)
{
    constexpr int W = fourier_columns<T>::W;
    const int bytes = fourier_room(job.grid) * (int)sizeof(float2);
    const cudaFuncAttribute limit = cudaFuncAttributeMaxDynamicSharedMemorySize;
    MB_CUDA(cudaFuncSetAttribute(fourier_along_y<T>, limit, W * bytes));
    const auto along_x = job.lone ? fourier_along_x<T, true> : fourier_along_x<T, false>;
    MB_CUDA(cudaFuncSetAttribute(along_x, limit, bytes));
    const int64_t high = job.g.y1 - job.g.y0, columns = job.lone ? job.grid / 2 + W : job.grid;
    fourier_along_y<T>
        <<<dim3((unsigned)(columns / W), (unsigned)pairs), T * W, W * bytes, stream>>>(job);
    MB_LAUNCHED("fourier_along_y");
    along_x<<<dim3((unsigned)(job.lone ? (high + 1) / 2 : high), (unsigned)pairs), T, bytes,
              stream>>>(job);
    MB_LAUNCHED("fourier_along_x");
    return MB_STATUS_OK;
}

static mb_status fourier_image(const fourier_image_job &job, int64_t pairs, cudaStream_t stream)
{
    switch (job.grid / job.kept) {
    case 32: return fourier_image_as<32>(job, pairs, stream);
    case 64: return fourier_image_as<64>(job, pairs, stream);
    case 128: return fourier_image_as<128>(job, pairs, stream);
    case 256: return fourier_image_as<256>(job, pairs, stream);
    case 512: return fourier_image_as<512>(job, pairs, stream);
    default: return fourier_image_as<1024>(job, pairs, stream);
    }
}

#endif
