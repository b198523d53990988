/*
** normal_operator on CUDA: the transforms along rows. Two slices are the real and the imaginary
** part of one complex row, of which the second half, the padding, is zero; on the way back only the
** first half is made. A block has L neighboring rows, because a tile has them side by side.
*/
#ifndef MB_CUDA_NORMAL_ROWS_KERNELS_CUH
#define MB_CUDA_NORMAL_ROWS_KERNELS_CUH

#include "iterative/normal_lines.cuh"

#define NORMAL_GROUP 8 /* points whose loads come before their stores, which might alias */

/* A row of a pair of slices. */
struct normal_row {
    int64_t slice; /* the first of the pair */
    int y, first, end;
    bool real, two; /* the row, the second slice exists */

    __device__ __forceinline__ normal_row(const normal_job &job, int pair, int y_)
        : slice(job.first + 2 * pair), y(y_), first(0), end(0), real(y_ < job.ny),
          two(2 * pair + 1 < job.slices)
    {
        if (real) {
            const int2 run = __ldg((const int2 *)job.runs + y);
            first = run.x;
            end = run.y;
        }
    }
    __device__ __forceinline__ bool has(int x) const { return x >= first && x < end; }
    /* Pixel (y, x) of both slices; 0 where it is outside or there is none. */
    __device__ __forceinline__ float2 load(const mb_slice_view &view, int x) const
    {
        const float *at = mb_slice_row(&view, slice, y) + x;
        return make_float2(has(x) ? at[0] : 0.0f, has(x) && two ? at[view.slice] : 0.0f);
    }
    /* Brings the row of the first or the second slice to the second-level cache. */
    __device__ __forceinline__ void prefetch(const mb_slice_view &view, int part) const
    {
        if (real && (part == 0 || two))
            mb_prefetch_floats(mb_slice_row(&view, slice + part, y) + first, end - first);
    }
    __device__ __forceinline__ void store(const mb_slice_view &view, int x, float2 value) const
    {
        float *at = mb_slice_row(&view, slice, y) + x;
        __stcs(at, value.x);
        if (two)
            __stcs(at + view.slice, value.y);
    }
};

/* The row of both slices in an array; of the first one twice where there is no second. */
struct normal_pixels {
    float *even, *odd;

    __device__ __forceinline__ normal_pixels(const mb_slice_view &view, const normal_row &row)
        : even(mb_slice_row(&view, row.slice, row.real ? row.y : 0)),
          odd(row.two ? even + view.slice : even)
    {
    }
    __device__ __forceinline__ void store(int x, float2 value) const
    {
        __stcs(odd + x, value.y);
        __stcs(even + x, value.x); /* second, because it counts where both are one */
    }
};

/* The points of a row, the direction made first. */
template <class C>
__device__ static __forceinline__ void normal_grow(float2 (&v)[C::E], const normal_job &job,
                                                   const normal_row &row, int t)
{
    const float even = __ldg(job.factors + row.slice),
                odd = row.two ? __ldg(job.factors + row.slice + 1) : 0.0f;
#pragma unroll
    for (int g = 0; g < C::E / 2; g += NORMAL_GROUP) {
        float2 p[NORMAL_GROUP];
#pragma unroll
        for (int j = 0; j < NORMAL_GROUP; j++) {
            v[g + j] = row.load(job.a, t + C::T * (g + j));
            p[j] = row.load(job.direction, t + C::T * (g + j));
        }
#pragma unroll
        for (int j = 0; j < NORMAL_GROUP; j++) {
            const int x = t + C::T * (g + j);
            if (even != 0) /* else it may be anything */
                v[g + j].x = fmaf(even, p[j].x, v[g + j].x);
            if (odd != 0)
                v[g + j].y = fmaf(odd, p[j].y, v[g + j].y);
            if (row.has(x))
                row.store(job.direction, x, v[g + j]);
        }
    }
}

/* Where a row's frequencies at `place`, place + T, ... lie in the spectra of its pair. */
__device__ static __forceinline__ float2 *normal_spectrum(const normal_job &job, int pair, int y,
                                                          int place)
{
    const int width = 1 << job.shift;
    return job.spectra + pair * job.pair_points +
           ((int64_t)(place >> job.shift) * job.ny + y) * width + (place & (width - 1));
}

template <int N, bool DIRECTION>
__global__ void __launch_bounds__(normal_rows_of<N>::threads, normal_rows_of<N>::blocks)
    normal_rows_forth_kernel(const __grid_constant__ normal_job job)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    typedef normal_rows_of<N> R;
    typedef typename R::cut C;
    extern __shared__ float2 normal_memory[];
    const int lane = threadIdx.x % R::L, t = threadIdx.x / R::L;
    const int groups = (job.ny + R::L - 1) / R::L;
    normal_copy_table<C>(normal_memory, job.row_twiddles);
    __syncthreads();
    for (int item = blockIdx.x; item < job.pairs * groups; item += gridDim.x) {
        const int pair = item / groups;
        const normal_row row(job, pair, (item - pair * groups) * R::L + lane);
        float2 v[C::E];
        if constexpr (DIRECTION) {
            normal_grow<C>(v, job, row, t);
        } else {
#pragma unroll
            for (int j = 0; j < C::E / 2; j++)
                v[j] = row.load(job.a, t + C::T * j);
        }
        mb_fft_run_half<C, true, false>(v, t, normal_memory, normal_memory + C::table, R::L, lane);
        float2 *to = normal_spectrum(job, pair, row.y, normal_place(t, N));
        const int64_t step = (int64_t)(normal_is_split(N) ? C::T / 2 : C::T) * job.ny;
        if (row.real)
#pragma unroll
            for (int j = 0; j < C::E; j++)
                to[j * step] = v[j];
    }
#endif
}

/* Rows of N points by two transforms of N / 2: x has the even frequencies, x exp(-2 pi i n / N) the
** odd ones. The pixels are read for each. */
template <int N>
__global__ void __launch_bounds__(normal_rows_of<N / 2>::threads, N == 4096 ? 2 : 1)
    normal_rows_split_kernel(const __grid_constant__ normal_job job)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    typedef normal_rows_of<N / 2> R;
    typedef typename R::cut C;
    extern __shared__ float2 normal_memory[];
    const int lane = threadIdx.x % R::L, t = threadIdx.x / R::L;
    const int groups = (job.ny + R::L - 1) / R::L;
    const float2 turn = mb_fft_root(t, N);
    const int64_t step = (int64_t)C::T * job.ny;
    static_assert(32 % (2 * C::E) == 0, "roots of mb_fft_turn");
    mb_fft_fill_table<C>(normal_memory);
    __syncthreads();
    for (int item = blockIdx.x; item < job.pairs * groups; item += gridDim.x) {
        const int pair = item / groups;
        const normal_row row(job, pair, (item - pair * groups) * R::L + lane);
#pragma unroll 1
        for (int odd = 0; odd < 2; odd++) {
            float2 v[C::E];
#pragma unroll
            for (int j = 0; j < C::E; j++)
                v[j] = row.load(job.a, t + C::T * j);
            if (odd)
#pragma unroll
                for (int j = 0; j < C::E; j++)
                    v[j] = mb_fft_mul(j ? mb_fft_mul(v[j], mb_fft_turn<2 * C::E>(j)) : v[j], turn);
            mb_fft_run<C, false>(v, t, normal_memory, normal_memory + C::table, R::L, lane);
            float2 *to = normal_spectrum(job, pair, row.y, t + odd * (N / 2));
            if (row.real)
#pragma unroll
                for (int j = 0; j < C::E; j++)
                    to[j * step] = v[j];
        }
    }
#endif
}

/* The sums over a warp, in one order: of `even` for its first 16 threads, of `odd` for the others. */
__device__ static __forceinline__ double normal_warp_sums(double even, double odd)
{
    const bool second = threadIdx.x & 16;
    double value = second ? odd : even;
    value += __shfl_xor_sync(0xffffffffu, second ? even : odd, 16);
#pragma unroll
    for (int step = 8; step > 0; step >>= 1)
        value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

template <int N>
__global__ void __launch_bounds__(normal_rows_of<N>::threads, normal_rows_of<N>::blocks)
    normal_rows_back_kernel(const __grid_constant__ normal_job job)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    typedef normal_rows_of<N> R;
    typedef typename R::cut C;
    extern __shared__ float2 normal_memory[];
    const int lane = threadIdx.x % R::L, t = threadIdx.x / R::L;
    const int groups = (job.ny + R::L - 1) / R::L;
    const mb_slice_view &p = job.direction.data ? job.direction : job.a;
    normal_copy_table<C>(normal_memory, job.row_twiddles);
    __syncthreads();
    for (int item = blockIdx.x; item < job.pairs * groups; item += gridDim.x) {
        const int pair = item / groups, group = item - pair * groups;
        const normal_row row(job, pair, group * R::L + lane);
        /* a row that does not exist is the first one; its points are not stored */
        const float2 *from = normal_spectrum(job, pair, row.real ? row.y : 0, normal_place(t, N));
        const int64_t step = (int64_t)(normal_is_split(N) ? C::T / 2 : C::T) * job.ny;
        float2 v[C::E];
        if (job.partials && t < 2)
            row.prefetch(p, t);
#pragma unroll
        for (int j = 0; j < C::E; j++)
            v[j] = mb_fft_swap(__ldcs(from + j * step));
        mb_fft_run_half<C, false, true>(v, t, normal_memory, normal_memory + C::table, R::L, lane);
        const normal_pixels to(job.result, row), other(p, row);
        const unsigned at = t - row.first, width = row.end - row.first,
                       dotted = job.partials ? width : 0, room = row.real ? job.nx : 0;
        const int64_t gap = row.two ? p.slice : 0; /* other.odd would take too many registers */
        float even = 0, odd = 0; /* of a thread's pixels, in double from there on */
#pragma unroll
        for (int g = 0; g < C::E / 2; g += NORMAL_GROUP) {
            float2 with[NORMAL_GROUP];
#pragma unroll
            for (int j = 0; j < NORMAL_GROUP; j++) {
                const int x = t + C::T * (g + j);
                const bool inside = at + C::T * (g + j) < dotted;
                with[j] =
                    make_float2(inside ? other.even[x] : 0.0f, inside ? other.even[x + gap] : 0.0f);
            }
#pragma unroll
            for (int j = 0; j < NORMAL_GROUP; j++) {
                const int x = t + C::T * (g + j);
                const float2 q = at + C::T * (g + j) < width
                                     ? make_float2(v[g + j].y * job.scale, v[g + j].x * job.scale)
                                     : make_float2(0, 0);
                even = fmaf(q.x, with[j].x, even);
                odd = fmaf(q.y, with[j].y, odd);
                if ((unsigned)x < room)
                    to.store(x, q);
            }
        }
        if (job.partials) {
            const double sum = normal_warp_sums(even, odd);
            double *sums = job.partials + row.slice * job.partial_count +
                           group * (R::threads / 32) + (threadIdx.x >> 5);
            if ((threadIdx.x & 31) == 0)
                sums[0] = sum;
            if ((threadIdx.x & 31) == 16 && row.two)
                sums[job.partial_count] = sum;
        }
    }
#endif
}

/* A launch of one of these. */
template <int N>
static mb_status normal_launch_rows(const mb_op_call *call, const normal_job &job,
                                    void (*kernel)(const normal_job))
{
    typedef normal_rows_of<N> R;
    return mb_launch_resident(call, kernel, job, R::threads, mb_normal_row_shared(N),
                              (int64_t)job.pairs * ((job.ny + R::L - 1) / R::L));
}

/* Forth, without a direction. */
template <int N>
static mb_status normal_launch_forth(const mb_op_call *call, const normal_job &job)
{
    if constexpr (normal_is_split(N)) {
        typedef normal_rows_of<N / 2> R;
        return mb_launch_resident(call, normal_rows_split_kernel<N>, job, R::threads,
                                  mb_normal_row_shared(N / 2),
                                  (int64_t)job.pairs * ((job.ny + R::L - 1) / R::L));
    } else {
        return normal_launch_rows<N>(call, job, normal_rows_forth_kernel<N, false>);
    }
}

#endif
