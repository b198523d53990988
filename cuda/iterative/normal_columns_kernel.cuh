/*
** normal_operator on CUDA: the transforms along columns with the spectrum between them, in place,
** in registers. A tile of W columns is one contiguous piece. Pairs come fastest, then the tile and
** its mirrored one, so that the columns of the kernel stay in cache.
*/
#ifndef MB_CUDA_NORMAL_COLUMNS_KERNEL_CUH
#define MB_CUDA_NORMAL_COLUMNS_KERNEL_CUH

#include "iterative/normal_lines.cuh"

/* A tile of a pair, by its number in the order above. */
struct normal_tile {
    int tile;
    float2 *data;

    __device__ __forceinline__ normal_tile(const normal_job &job, int item, int tiles, int width)
    {
        const int m = item / job.pairs, pair = item - m * job.pairs;
        const int part = normal_is_split(job.px) ? tiles / 2 : tiles, own = m % part;
        tile = m - own + (own & 1 ? part - 1 - own / 2 : own / 2);
        data = job.spectra + pair * job.pair_points + (int64_t)tile * job.ny * width;
    }
};

/* The frequency -k of a transform of N points. */
template <int N>
__device__ static __forceinline__ int normal_mirror(int k)
{
    return (N & (N - 1)) == 0 ? (N - k) & (N - 1) : k ? N - k : 0;
}

/* WHOLE: the images have N / 2 rows. Kernels for any number of them take 5 % longer. */
template <int N, bool WHOLE>
__global__ void __launch_bounds__(normal_columns_of<N>::threads, normal_columns_of<N>::blocks)
    normal_columns_kernel(const __grid_constant__ normal_job job)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    typedef normal_columns_of<N> R;
    typedef typename R::cut C;
    constexpr int W = R::L;
    extern __shared__ float2 normal_memory[];
    const int lane = threadIdx.x % W, t = threadIdx.x / W, tiles = job.px / W;
    float2 *shared = normal_memory + C::table;
    normal_copy_table<C>(normal_memory, job.column_twiddles);
    __syncthreads();
    for (int item = blockIdx.x; item < tiles * job.pairs; item += gridDim.x) {
        const normal_tile here(job, item, tiles, W);
        const int kx = normal_frequency(here.tile * W + lane, job.px);
        if (threadIdx.x == 0 && item + gridDim.x < tiles * job.pairs)
            mb_prefetch(normal_tile(job, item + gridDim.x, tiles, W).data, job.ny * W * 8);
        float2 *column = here.data + t * W + lane;
        float2 v[C::E];
#pragma unroll
        for (int j = 0; j < C::E / 2; j++)
            v[j] = WHOLE || t + C::T * j < job.ny ? __ldcs(column + j * (C::T * W))
                                                  : make_float2(0, 0);
        mb_fft_run_half<C, true, false>(v, t, normal_memory, shared, W, lane);
        const bool mirrored = 2 * kx > job.px;
        const float *kernel = job.kernel + (mirrored ? job.px - kx : kx) * job.kernel_row;
#pragma unroll
        for (int j = 0; j < C::E; j++) {
            const int k = t + C::T * j;
            const float w = __ldg(kernel + (mirrored ? normal_mirror<N>(k) : k));
            v[j] = make_float2(v[j].y * w, v[j].x * w); /* parts swapped for the way back */
        }
        mb_fft_run_half<C, false, true>(v, t, normal_memory, shared, W, lane);
#pragma unroll
        for (int j = 0; j < C::E / 2; j++)
            if (WHOLE || t + C::T * j < job.ny)
                column[j * (C::T * W)] = mb_fft_swap(v[j]);
    }
#endif
}

template <int N>
static mb_status normal_launch_columns(const mb_op_call *call, const normal_job &job)
{
    typedef normal_columns_of<N> R;
    auto kernel = normal_columns_kernel<N, false>;
    if constexpr (N == 2048 || N == 4096) /* few others, for they take long to compile */
        kernel = job.ny == N / 2 ? normal_columns_kernel<N, true> : kernel;
    return mb_launch_resident(call, kernel, job, R::threads, mb_normal_shared(N),
                              (int64_t)job.pairs * (job.px / R::L));
}

#endif
