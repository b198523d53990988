/*
** phase_filter on CUDA: the transforms along rows. Rows y and y + apart of a frame are the real
** and the imaginary part of one complex row, which is padded in registers. The spectra are kept in
** tiles (op_phase_filter.h); nothing is taken apart here, because the columns' kernel has both
** halves of a spectrum at hand.
*/
#ifndef MB_CUDA_PHASE_ROWS_CUH
#define MB_CUDA_PHASE_ROWS_CUH

#include "ops/phase/op_phase_filter.h"
#include "shared/cuda_launch.cuh"
#include "shared/fft_registers.cuh"

/* The factorization of N points. */
template <int N>
struct phase_cut : mb_fft_cut_of<N> {
};
template <>
struct phase_cut<4096> : mb_fft_cut<4096, 32, 32, 32, 4> {
};

#define PHASE_EXTENTS(X) X(64) X(512) X(1024) X(2048) X(4096)

/* A batch of frames. */
struct phase_job {
    const float *image;
    float *result;
    int64_t image_frame, image_row, result_frame, result_row; /* strides */
    float2 *spectra;
    int64_t frame_points; /* of the spectra */
    int frames, rows, columns, pairs, apart;
    int shift;                 /* a tile has 1 << shift frequencies: mb_phase_tile */
    int row_half, column_half; /* where padding that belongs to the beginning starts */
    bool edge;                 /* padding repeats the edges */
    const int32_t *row_sources, *column_sources;
    const float *row_table, *column_table;
    int row_count, column_count; /* entries of the tables */
    const float2 *row_twiddles, *column_twiddles;
    float constant; /* of padding, less 1 */
    float min;      /* before the logarithm; 0: none is taken */
    mb_phase_response response;
};

/* L rows of a block. Forth, two blocks on a multiprocessor are faster; back, longer runs are. */
template <int N, bool BACK>
struct phase_rows {
    typedef phase_cut<N> cut;
    static constexpr int T = cut::T, most = (BACK ? 512 : 256) / T, L = most < 8 ? most : 8,
                         threads = T * L, blocks = BACK ? 1 : 2;
    static constexpr int shared = (int)sizeof(float2) * (cut::table + L * cut::room);
};

/* Makes the table of a factorization. */
template <int N>
__global__ void phase_twiddles(float2 *table)
{
    typedef phase_cut<N> C;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < C::table; i += gridDim.x * blockDim.x) {
        const int k = i - C::second, inner = C::R1 * C::R2;
        table[i] = i < C::second ? mb_fft_root(i / C::R1 * (i % C::R1), inner)
                                 : mb_fft_root(k / inner * (k % inner), C::N);
    }
}

/* Copies it to shared memory. All threads of the block must call it; the caller
 * synchronizes. */
template <class C>
__device__ static __forceinline__ void phase_copy_table(float2 *to, const float2 *from)
{
    for (int i = threadIdx.x; i < C::table / 2; i += blockDim.x)
        ((float4 *)to)[i] = __ldg((const float4 *)from + i);
}

/* A walk over the frequencies t + T j of a pair's spectrum. Tiles divide T, so each half of the
** spectrum is a sequence of equal steps; only the highest frequency is elsewhere. */
template <class C>
struct phase_walk {
    int64_t plus, minus, highest, step;
    int t;

    __device__ __forceinline__ phase_walk(const phase_job &job, int pair, int t_) : t(t_)
    {
        const int width = 1 << job.shift, back = -t & (width - 1);
        const int64_t tile = (int64_t)2 * job.pairs << job.shift;
        step = (C::T >> job.shift) * tile;
        plus = (t >> job.shift) * tile + ((int64_t)pair << job.shift) + (t & (width - 1));
        highest = ((int64_t)(job.pairs + pair) << job.shift);
        /* m = N - t - T j */
        minus = ((C::N - t) >> job.shift) * tile + highest + back;
    }
    __device__ __forceinline__ int64_t operator()(int j) const
    {
        return j < C::E / 2              ? plus + j * step
               : j == C::E / 2 && t == 0 ? highest
                                         : minus - j * step;
    }
};

/* Two rows, padded. `one`, `two`: whether they exist. */
template <class C>
__device__ static __forceinline__ void phase_fill(float2 (&v)[C::E], const phase_job &job,
                                                  const float *even, const float *odd, bool one,
                                                  bool two, int t)
{
#pragma unroll
    for (int j = 0; j < C::E; j++) {
        const int x = t + C::T * j;
        const int from = x < job.columns ? x : __ldg(job.column_sources + x);
        v[j].x = !one ? 0.0f : from < 0 ? job.constant : even[from] - 1.0f;
        v[j].y = !two ? 0.0f : from < 0 ? job.constant : odd[from] - 1.0f;
    }
}
template <class C>
__device__ static __forceinline__ void phase_fill_edge(float2 (&v)[C::E], const phase_job &job,
                                                       const float *even, const float *odd,
                                                       bool one, bool two, int t)
{
    const int last = job.columns - 1;
    const float2 left = make_float2(one ? even[0] - 1.0f : 0.0f, two ? odd[0] - 1.0f : 0.0f);
    const float2 right = make_float2(one ? even[last] - 1.0f : 0.0f, two ? odd[last] - 1.0f : 0.0f);
#pragma unroll
    for (int j = 0; j < C::E; j++) {
        const int x = t + C::T * j;
        v[j] = x < job.column_half ? right : left;
        if (one && x <= last)
            v[j].x = even[x] - 1.0f;
        if (two && x <= last)
            v[j].y = odd[x] - 1.0f;
    }
}

/* The pairs of rows of this block: L of them at a time, in neighboring threads, because a tile has
** them side by side. */
template <int N>
__global__ void __launch_bounds__(phase_rows<N, false>::threads, phase_rows<N, false>::blocks)
    phase_rows_forth(const __grid_constant__ phase_job job)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    typedef phase_rows<N, false> R;
    typedef typename R::cut C;
    extern __shared__ float2 phase_memory[];
    const int h = threadIdx.x % R::L, t = threadIdx.x / R::L;
    float2 *shared = phase_memory + C::table;
    const int groups = (job.pairs + R::L - 1) / R::L;
    phase_copy_table<C>(phase_memory, job.row_twiddles);
    __syncthreads();
    for (int item = blockIdx.x; item < job.frames * groups; item += gridDim.x) {
        const int frame = item / groups, pair = (item - frame * groups) * R::L + h;
        const bool one = pair < job.pairs, two = pair + job.apart < job.rows;
        const float *even = job.image + frame * job.image_frame + pair * job.image_row,
                    *odd = even + job.apart * job.image_row;
        float2 v[C::E];
        if (job.edge)
            phase_fill_edge<C>(v, job, even, odd, one, two, t);
        else
            phase_fill<C>(v, job, even, odd, one, two, t);
        mb_fft_run<C, false>(v, t, phase_memory, shared, R::L, h);
        float2 *to = job.spectra + frame * job.frame_points;
        const phase_walk<C> at(job, pair, t);
        if (one)
#pragma unroll
            for (int j = 0; j < C::E; j++)
                to[at(j)] = v[j];
    }
#endif
}

/* What is stored of a filtered value. */
__device__ static __forceinline__ float phase_value(const phase_job &job, float v)
{
    v += job.response.offset;
    if (job.min > 0)
        v = -logf(v < job.min ? job.min : v); /* NaN stays NaN */
    return v;
}

/* HALF: columns <= N / 2. */
template <int N, bool HALF>
__global__ void __launch_bounds__(phase_rows<N, true>::threads, phase_rows<N, true>::blocks)
    phase_rows_back(const __grid_constant__ phase_job job)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    typedef phase_rows<N, true> R;
    typedef typename R::cut C;
    extern __shared__ float2 phase_memory[];
    const int h = threadIdx.x % R::L, t = threadIdx.x / R::L;
    float2 *shared = phase_memory + C::table;
    const int groups = (job.pairs + R::L - 1) / R::L;
    phase_copy_table<C>(phase_memory, job.row_twiddles);
    __syncthreads();
    for (int item = blockIdx.x; item < job.frames * groups; item += gridDim.x) {
        const int frame = item / groups, pair = (item - frame * groups) * R::L + h;
        const bool one = pair < job.pairs, two = pair + job.apart < job.rows;
        const float2 *from = job.spectra + frame * job.frame_points;
        float *even = job.result + frame * job.result_frame + pair * job.result_row,
              *odd = even + job.apart * job.result_row;
        const phase_walk<C> at(job, pair, t);
        float2 v[C::E];
#pragma unroll
        for (int j = 0; j < C::E; j++)
            v[j] = one ? mb_fft_swap(__ldg(from + at(j))) : make_float2(0, 0);
        mb_fft_run<C, false>(v, t, phase_memory, shared, R::L, h);
#pragma unroll
        for (int j = 0; j < (HALF ? C::E / 2 : C::E); j++) {
            const int x = t + C::T * j;
            if (one && x < job.columns)
                even[x] = phase_value(job, v[j].y);
            if (two && x < job.columns)
                odd[x] = phase_value(job, v[j].x);
        }
    }
#endif
}

#endif
