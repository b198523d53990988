/*
** phase_filter on CUDA: the transforms along columns with the response between them, in place. A
** thread block has a tile of frequencies m and -m of all pairs of rows, so that each thread can
** tell the spectra of the two rows of a pair apart when it loads them, F = (Z(m) + conj Z(-m)) / 2
** and (Z(m) - conj Z(-m)) / 2i, and join them when it stores them. The columns of frequency 0 and
** of the highest one are their own mirror; the latter is a tile of its own.
*/
#ifndef MB_CUDA_PHASE_COLUMNS_CUH
#define MB_CUDA_PHASE_COLUMNS_CUH

#include "phase/phase_rows.cuh"

template <int N>
struct phase_columns {
    typedef phase_cut<N> cut;
    static constexpr int T = cut::T, most = 512 / T, W = most < 8 ? most : 8, threads = T * W;
};

/* A column of a tile: its frequencies m and -m of pair 0; others follow W
 * apart. */
struct phase_column {
    float2 *plus, *minus;
    bool real;     /* the column exists */
    bool self;     /* it is its own mirror: minus is not read or stored */
    float outside; /* the spectrum of a row of constant padding */
};

__device__ static __forceinline__ float2 phase_first(float2 a, float2 b)
{
    return make_float2(0.5f * (a.x + b.x), 0.5f * (a.y - b.y));
}
__device__ static __forceinline__ float2 phase_second(float2 a, float2 b)
{
    return make_float2(0.5f * (a.y + b.y), 0.5f * (b.x - a.x));
}

/* The spectrum of a row at this column. */
template <int W>
__device__ static __forceinline__ float2 phase_of_row(const phase_job &job, const phase_column &c,
                                                      int row)
{
    const int pair = row < job.apart ? row : row - job.apart;
    if (!c.real)
        return make_float2(0, 0);
    const float2 a = c.plus[pair * W], b = c.self ? a : c.minus[pair * W];
    return row < job.apart ? phase_first(a, b) : phase_second(a, b);
}

/* Pairs of rows of a column, Z(m) in the first J points and Z(-m) in the next. */
template <class C, int J, int W>
__device__ static __forceinline__ void phase_load(float2 (&v)[C::E], const phase_job &job,
                                                  const phase_column &c, int t)
{
    const float2 *plus = c.plus + t * W, *minus = c.self ? plus : c.minus + t * W;
#pragma unroll
    for (int j = 0; j < J; j++) {
        v[j] = v[j + J] = make_float2(0, 0);
        if (c.real && t + C::T * j < job.pairs) {
            v[j] = plus[C::T * W * j];
            v[j + J] = minus[C::T * W * j];
        }
    }
#pragma unroll
    for (int j = 0; j < J; j++) {
        const float2 a = v[j], b = v[j + J];
        v[j] = phase_first(a, b);
        v[j + J] = phase_second(a, b);
    }
}

/* A column, padded by its edges. Rows J * T apart are pairs. */
template <class C, int J, int W>
__device__ static __forceinline__ void phase_fill_edge(float2 (&v)[C::E], const phase_job &job,
                                                       const phase_column &c, int t)
{
    const float2 top = phase_of_row<W>(job, c, 0), bottom = phase_of_row<W>(job, c, job.rows - 1);
    phase_load<C, J, W>(v, job, c, t);
#pragma unroll
    for (int j = 0; j < C::E; j++) {
        const int y = t + C::T * j;
        const float2 outside = y < job.row_half ? bottom : top;
        v[j] = j < 2 * J && y < job.rows ? v[j] : outside;
    }
}

/* A column, padded in any way. */
template <class C, int J, int W>
__device__ static __forceinline__ void phase_fill(float2 (&v)[C::E], const phase_job &job,
                                                  const phase_column &c, int t)
{
    phase_load<C, J, W>(v, job, c, t);
#pragma unroll
    for (int j = 0; j < C::E; j++) {
        const int y = t + C::T * j;
        if (j < 2 * J && y < job.rows)
            continue;
        const int row = __ldg(job.row_sources + y);
        v[j] = row < 0 ? make_float2(c.outside, 0) : phase_of_row<W>(job, c, row);
    }
}

template <class C, int J, int W>
__device__ static __forceinline__ void phase_store(const float2 (&v)[C::E], const phase_job &job,
                                                   const phase_column &c, int t)
{
    float2 *plus = c.plus + t * W, *minus = c.minus + t * W;
#pragma unroll
    for (int j = 0; j < J; j++) {
        const int y = t + C::T * j;
        const float2 a = v[j], b = y + C::T * J < job.rows ? v[j + J] : make_float2(0, 0);
        if (!c.real || y >= job.pairs)
            continue;
        plus[C::T * W * j] = make_float2(a.x - b.y, a.y + b.x); /* a + i b */
        if (!c.self)                                            /* conj a + i conj b */
            minus[C::T * W * j] = make_float2(a.x + b.y, b.x - a.y);
    }
}

/* Multiplies the spectrum of the column of frequency m, and swaps its parts for
 * the way back. */
template <class C, bool RATIONAL>
__device__ static __forceinline__ void phase_multiply(float2 (&v)[C::E], const phase_job &job,
                                                      int m, int t)
{
    const float one = 1.0f + job.column_table[m];
#pragma unroll
    for (int j = 0; j < C::E; j++) {
        const int k = t + C::T * j, y = j < C::E / 2 ? k : C::N - k;
        const float factor = RATIONAL
                                 ? __fdividef(job.response.scale, one + __ldg(job.row_table + y))
                                 : mb_phase_response_at(&job.response, job.row_table, job.row_count,
                                                        y, job.column_table, job.column_count, m);
        v[j] = make_float2(v[j].y * factor, v[j].x * factor);
    }
}

/* Brings the next tile to the second-level cache. */
__device__ static __forceinline__ void phase_prefetch(const float2 *from, int points)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from),
                     "r"(points * (int)sizeof(float2)));
#endif
}

template <int N, int J, bool RATIONAL>
__global__ void __launch_bounds__(phase_columns<N>::threads)
    phase_columns_filter(const __grid_constant__ phase_job job)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    typedef phase_cut<N> C;
    constexpr int W = phase_columns<N>::W;
    extern __shared__ float2 phase_memory[];
    const int lane = threadIdx.x % W, t = threadIdx.x / W, half = job.column_count - 1;
    float2 *shared = phase_memory + C::table;
    const int tiles = (half + W - 1) / W + 1; /* and that of the highest frequency */
    phase_copy_table<C>(phase_memory, job.column_twiddles);
    __syncthreads();
    for (int item = blockIdx.x; item < job.frames * tiles; item += gridDim.x) {
        const int frame = item / tiles, tile = item - frame * tiles, points = 2 * job.pairs * W;
        const int next = item + gridDim.x, next_frame = next / tiles;
        if (next < job.frames * tiles && next - next_frame * tiles < tiles - 1)
            phase_prefetch(job.spectra + next_frame * job.frame_points +
                               (int64_t)(next - next_frame * tiles) * points,
                           points);
        const bool highest = tile == tiles - 1;
        const int m = highest ? half : tile * W + lane;
        float2 *plus = job.spectra + frame * job.frame_points +
                       (highest ? 0 : (int64_t)tile * points) + lane,
               *minus = plus + job.pairs * W;
        const phase_column column = {highest ? minus : plus, minus, highest ? lane == 0 : m < half,
                                     m == 0 || highest,
                                     m == 0 ? job.constant * (float)(2 * half) : 0.0f};
        float2 v[C::E];
        if (job.edge)
            phase_fill_edge<C, J, W>(v, job, column, t);
        else
            phase_fill<C, J, W>(v, job, column, t);
        mb_fft_run<C, false>(v, t, phase_memory, shared, W, lane);
        phase_multiply<C, RATIONAL>(v, job, column.real ? m : 0, t);
        mb_fft_run<C, false>(v, t, phase_memory, shared, W, lane);
#pragma unroll
        for (int j = 0; j < C::E; j++)
            v[j] = mb_fft_swap(v[j]);
        phase_store<C, J, W>(v, job, column, t);
    }
#endif
}

#endif
