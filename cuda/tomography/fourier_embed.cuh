/*
** The 2-D forward transform of fourier_project on CUDA, from pixels straight to the grid: one
** kernel along x, one along y, the transposes of those of fourier_image.cuh. Zeros around the image
** are neither stored nor read, and cells that no sample reads are not written. Between the kernels
** lie lines in tiles of C columns, [pair][x / C][line][C]: the first kernel takes as many lines
** together as the second takes transforms, so that both move runs of whole sectors. The grid is
** [x][y][V]: all V pairs lie side by side for the kernel that makes samples. A block of the second
** kernel takes C columns of `lanes` pairs; those of other pairs come next, for their cells share
** sectors. G = m T, T threads a transform: fourier_block.cuh.
*/
#ifndef MB_CUDA_FOURIER_EMBED_CUH
#define MB_CUDA_FOURIER_EMBED_CUH

#include "shared/prefetch.cuh"
#include "tomography/fourier_line.cuh"

struct fourier_embed_job {
    fourier_image_job image; /* `to` are the slices; `cells` and `outside` are not used */
    float2 *cells;
    int tile, lanes, side; /* C, pairs of a block, V: powers of two */
    int ahead;             /* blocks that work at a time, about */
};

/* Complex numbers of shared memory for a transform; those of a block begin in different banks. */
template <int T>
__host__ __device__ static inline int fourier_embed_room(int grid)
{
    return fourier_room(grid) + (fourier_columns<T>::W > 1 ? 4 : 0);
}

/* The last pass of a transform from registers to its place in shared memory, for the whole
** block. */
template <int T>
__device__ static __forceinline__ void fourier_keep(const float2 (&v)[FOURIER_HELD], int t,
                                                    int points, float2 *shared)
{
    using R = fourier_radices<T>;
    constexpr int LAST = R::C > 1 ? R::C : R::B, Q = FOURIER_HELD / LAST;
    const int step = points / LAST;
#pragma unroll
    for (int k = 0; k < Q; k++) {
        const int b = t + T * k;
        if (b < step)
#pragma unroll
            for (int r = 0; r < LAST; r++)
                shared[fourier_place(b + r * step)] = v[k + Q * r];
    }
    __syncthreads();
}

/* Lines of a pair of slices, as many as a block has transforms. */
template <int T>
__global__ void __launch_bounds__(T *fourier_columns<T>::W)
    fourier_embed_x(const __grid_constant__ fourier_embed_job job)
{
    extern __shared__ float2 fourier_shared[];
    constexpr int L = fourier_columns<T>::W, H = FOURIER_HELD;
    __shared__ int chords[2 * L];
    const fourier_image_job &image = job.image;
    const int t = threadIdx.x % T, w = threadIdx.x / T, grid = image.grid;
    const int high = (int)(image.g.y1 - image.g.y0), wide = (int)(image.g.x1 - image.g.x0);
    const int room = fourier_embed_room<T>(grid), i0 = blockIdx.x * L, i = i0 + w, hx = wide / 2;
    const int64_t pair = blockIdx.y;
    float2 *shared = fourier_shared + w * room;
    float2 v[H];
    if (threadIdx.x < 2 * L) { /* a line of a slice */
        const int64_t block = blockIdx.y * (int64_t)gridDim.x + blockIdx.x + job.ahead,
                      slice = block / gridDim.x * 2 + threadIdx.x % 2,
                      line = block % gridDim.x * L + threadIdx.x / 2;
        if (block < (int64_t)gridDim.x * gridDim.y && line < high && slice < image.to.slices)
            mb_prefetch_floats(row_of(image.to, slice, line), wide);
    }
    if (t == 0 && i < high) {
        const fourier_line line(image, i);
        chords[2 * w] = line.xa;
        chords[2 * w + 1] = line.xb;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < H; e++)
        v[e] = make_float2(0, 0);
    if (i < high && 2 * pair < image.to.slices) {
        const bool two = 2 * pair + 1 < image.to.slices;
        const fourier_line line(image, i, chords[2 * w], chords[2 * w + 1]);
        const float *even = row_of(image.to, 2 * pair, i),
                    *odd = row_of(image.to, two ? 2 * pair + 1 : 2 * pair, i);
#pragma unroll
        for (int e = 0; e < H; e++) {
            const int p = t + T * e, xs = 2 * p < grid ? p : p - grid, x = xs + hx;
            if (e < image.kept && x >= 0 && x < wide && line.has(x)) {
                const float weight = line.weight(xs, image.deapodise[xs < 0 ? -xs : xs]);
                v[e] = make_float2(even[x] * weight, two ? odd[x] * weight : 0.0f);
            }
        }
    }
    fourier_first<T, -1>(v, t, image.kept, shared);
    fourier_passes<T, -1, false>(v, t, image.kept, grid, shared, w);
    fourier_keep<T>(v, t, grid, shared);
    /* Runs of lines within a tile, in pieces of a pair of columns, or one. */
    const int piece = job.tile > 1 ? 2 : 1, pieces = job.tile / piece, bits = __ffs(pieces) - 1;
    for (int at = threadIdx.x; at < grid / piece * L; at += T * L) {
        const int u = (at & (pieces - 1)) * piece, line = (at >> bits) % L, tile = (at >> bits) / L;
        const float2 *from = fourier_shared + line * room + fourier_place(tile * job.tile + u);
        float2 *to =
            image.lines + ((pair * (grid / job.tile) + tile) * high + i0 + line) * job.tile + u;
        if (i0 + line >= high)
            continue;
        if (piece == 2)
            *(float4 *)to = make_float4(from[0].x, from[0].y, from[1].x, from[1].y);
        else
            *to = *from;
    }
}

/* A tile of columns of some pairs. */
template <int T>
__global__ void __launch_bounds__(T *fourier_columns<T>::W)
    fourier_embed_y(const __grid_constant__ fourier_embed_job job)
{
    extern __shared__ float2 fourier_shared[];
    constexpr int W = fourier_columns<T>::W, H = FOURIER_HELD;
    const fourier_image_job &image = job.image;
    const int t = threadIdx.x % T, w = threadIdx.x / T, grid = image.grid, half = grid / 2;
    const int high = (int)(image.g.y1 - image.g.y0), hy = high / 2;
    const int room = fourier_embed_room<T>(grid);
    const int tile = job.tile, lanes = job.lanes, groups = job.side / lanes;
    const int group = (int)blockIdx.x % groups, at_tile = (int)blockIdx.x / groups;
    const int64_t x0 = (int64_t)at_tile * tile;
    float2 *shared = fourier_shared + w * room;
    float2 v[H];
    if (threadIdx.x < lanes && blockIdx.x + job.ahead < gridDim.x) {
        const int block = (int)blockIdx.x + job.ahead;
        const int64_t line = (int64_t)(block % groups * lanes + threadIdx.x) * (grid / tile);
        mb_prefetch_floats((const float *)(image.lines + (line + block / groups) * high * tile),
                           (int64_t)2 * high * tile);
    }
    const int lane_bits = __ffs(lanes) - 1, own = w >> lane_bits; /* column of the tile */
    const float2 *from =
        image.lines + own +
        ((int64_t)(group * lanes + (w & (lanes - 1))) * (grid / tile) + at_tile) * high * tile;
#pragma unroll
    for (int e = 0; e < H; e++) {
        const int p = t + T * e, y = (2 * p < grid ? p : p - grid) + hy;
        v[e] = make_float2(0, 0);
        if (e < image.kept && y >= 0 && y < high)
            v[e] = from[y * tile]; /* a tile's columns share lines of the first-level cache */
    }
    fourier_first<T, -1>(v, t, image.kept, shared);
    fourier_passes<T, -1, false>(v, t, image.kept, grid, shared, w);
    fourier_keep<T>(v, t, grid, shared);
    const int pieces = lanes > 1 ? lanes / 2 : 1, bits = __ffs(pieces) - 1;
    for (int c = 0; c < tile; c++) {
        /* Cells farther out are not read. */
        const float xs = (float)(x0 + c - half), rest = fmaf(-xs, xs, image.reach * image.reach);
        const int far = rest < 0 ? -1 : (int)sqrtf(rest);
        const float2 *values = fourier_shared + c * lanes * room;
        float2 *to = job.cells + (x0 + c) * grid * job.side + group * lanes;
        for (int at = threadIdx.x; at < grid * pieces; at += T * W) {
            const int y = at >> bits, lane = (at & (pieces - 1)) * 2;
            const float2 a = values[lane * room + fourier_place(y)];
            if (abs(y - half) > far)
                continue;
            if (lanes > 1) {
                const float2 b = values[(lane + 1) * room + fourier_place(y)];
                *(float4 *)(to + (int64_t)y * job.side + lane) = make_float4(a.x, a.y, b.x, b.y);
            } else {
                to[(int64_t)y * job.side] = a;
            }
        }
    }
}

template <int T>
static mb_status fourier_embed_as(const fourier_embed_job &job, int64_t pairs, cudaStream_t stream)
{
    constexpr int W = fourier_columns<T>::W;
    const fourier_image_job &image = job.image;
    const int bytes = W * fourier_embed_room<T>(image.grid) * (int)sizeof(float2);
    const int64_t high = image.g.y1 - image.g.y0;
    const cudaFuncAttribute limit = cudaFuncAttributeMaxDynamicSharedMemorySize;
    MB_CUDA(cudaFuncSetAttribute(fourier_embed_x<T>, limit, bytes));
    MB_CUDA(cudaFuncSetAttribute(fourier_embed_y<T>, limit, bytes));
    fourier_embed_x<T>
        <<<dim3((unsigned)((high + W - 1) / W), (unsigned)pairs), T * W, bytes, stream>>>(job);
    MB_LAUNCHED("fourier_embed_x");
    fourier_embed_y<T>
        <<<(unsigned)(image.grid / job.tile * (job.side / job.lanes)), T * W, bytes, stream>>>(job);
    MB_LAUNCHED("fourier_embed_y");
    return MB_STATUS_OK;
}

static mb_status fourier_embed(const fourier_embed_job &job, int64_t pairs, cudaStream_t stream)
{
    switch (job.image.grid / job.image.kept) {
    case 32: return fourier_embed_as<32>(job, pairs, stream);
    case 64: return fourier_embed_as<64>(job, pairs, stream);
    case 128: return fourier_embed_as<128>(job, pairs, stream);
    case 256: return fourier_embed_as<256>(job, pairs, stream);
    case 512: return fourier_embed_as<512>(job, pairs, stream);
    default: return fourier_embed_as<1024>(job, pairs, stream);
    }
}

#endif
