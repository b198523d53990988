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
    static constexpr int T = cut::T, most = 512 / T, W = most < 16 ? most : 16, threads = T * W;
};

/* A column of a tile: its frequencies m and -m of pair 0; others follow W apart. */
struct phase_column {
    const float2 *plus, *minus;
    bool real;     /* the column exists */
    float outside; /* the spectrum of a row of constant padding */
};

template <int W>
__device__ static __forceinline__ float2 phase_load(const phase_column &c, int row)
{
    if (!c.real)
        return make_float2(0, 0);
    const float2 a = c.plus[(row >> 1) * W], b = c.minus[(row >> 1) * W];
    return row & 1 ? make_float2(0.5f * (a.y + b.y), 0.5f * (b.x - a.x))
                   : make_float2(0.5f * (a.x + b.x), 0.5f * (a.y - b.y));
}

/* A column, padded. */
template <class C, int W>
__device__ static __forceinline__ void phase_fill(float2 (&v)[C::E], const phase_job &job,
                                                  const phase_column &c, int t)
{
    if (job.edge) {
        const float2 top = phase_load<W>(c, 0), bottom = phase_load<W>(c, job.rows - 1);
#pragma unroll
        for (int j = 0; j < C::E; j++) {
            const int y = t + C::T * j;
            v[j] = y < job.rows ? phase_load<W>(c, y) : y < job.row_half ? bottom : top;
        }
    } else {
#pragma unroll
        for (int j = 0; j < C::E; j++) {
            const int y = t + C::T * j;
            const int row = y < job.rows ? y : __ldg(job.row_sources + y);
            v[j] = row < 0 ? make_float2(c.outside, 0) : phase_load<W>(c, row);
        }
    }
}

/* Multiplies the spectrum of the column of frequency m. */
template <class C, bool RATIONAL>
__device__ static __forceinline__ void phase_multiply(float2 (&v)[C::E], const phase_job &job,
                                                      int m, int t)
{
    const float one = 1.0f + job.column_table[m];
#pragma unroll
    for (int j = 0; j < C::E; j++) {
        const int k = t + C::T * j, y = k <= C::N / 2 ? k : C::N - k;
        const float factor = RATIONAL
                                 ? __fdividef(job.response.scale, one + __ldg(job.row_table + y))
                                 : mb_phase_response_at(&job.response, job.row_table, job.row_count,
                                                        y, job.column_table, job.column_count, m);
        v[j].x *= factor;
        v[j].y *= factor;
    }
}

/* Threads of an even row and of the next one, W lanes apart, exchange their values: the first
** stores Z(m), the other one Z(-m). */
template <class C, int W>
__device__ static __forceinline__ void phase_store(const phase_job &job, float2 *plus,
                                                   float2 *minus, bool real, int y, float2 v)
{
    const float2 w =
        make_float2(__shfl_xor_sync(0xffffffffu, v.x, W), __shfl_xor_sync(0xffffffffu, v.y, W));
    const int pair = y >> 1;
    const bool odd = y & 1, alone = 2 * pair + 1 >= job.rows;
    if (!real || pair >= job.pairs)
        return;
    if (!odd && plus) /* v + i w */
        plus[pair * W] = alone ? v : make_float2(v.x - w.y, v.y + w.x);
    if (odd && minus) /* conj w + i conj v */
        minus[pair * W] = alone ? make_float2(w.x, -w.y) : make_float2(w.x + v.y, v.x - w.y);
}

template <int N, bool RATIONAL>
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
    mb_fft_fill_table<C>(phase_memory);
    __syncthreads();
    for (int item = blockIdx.x; item < job.frames * tiles; item += gridDim.x) {
        const int frame = item / tiles, tile = item - frame * tiles;
        const bool highest = tile == tiles - 1;
        const int m = highest ? half : tile * W + lane;
        float2 *plus = job.spectra + frame * job.frame_points +
                       (highest ? 0 : (int64_t)2 * tile * job.pairs * W) + lane,
               *minus = plus + (int64_t)job.pairs * W;
        const bool self = m == 0 || highest, real = highest ? lane == 0 : m < half;
        const phase_column column = {highest ? minus : plus, self && !highest ? plus : minus, real,
                                     m == 0 ? job.constant * (float)(2 * half) : 0.0f};
        float2 v[C::E];
        phase_fill<C, W>(v, job, column, t);
#pragma unroll 1
        for (int pass = 0; pass < 2; pass++) {
            mb_fft_run<C, false>(v, t, phase_memory, shared, W, lane);
            if (pass == 0)
                phase_multiply<C, RATIONAL>(v, job, real ? m : 0, t);
#pragma unroll
            for (int j = 0; j < C::E; j++)
                v[j] = mb_fft_swap(v[j]);
        }
        /* Of a column that is its own mirror only one half is stored. */
        float2 *const to_plus = highest ? minus : plus, *const to_minus = self ? NULL : minus;
#pragma unroll
        for (int j = 0; j < C::E; j++)
            if (C::T * j < job.rows + 1)
                phase_store<C, W>(job, to_plus, to_minus, real, t + C::T * j, v[j]);
    }
#endif
}

#endif
