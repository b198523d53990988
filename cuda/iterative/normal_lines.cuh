/*
** normal_operator on CUDA: what its kernels share. Lines are rows of px points, or columns of py.
*/
#ifndef MB_CUDA_NORMAL_LINES_CUH
#define MB_CUDA_NORMAL_LINES_CUH

#include "ops/iterative/op_normal_operator.h"
#include "shared/fft_halves.cuh"
#include "shared/prefetch.cuh"
#include "shared/resident_launch.cuh"

/* The factorization of N points. */
template <int N>
struct normal_cut : mb_fft_cut_of<N> {
};
template <>
struct normal_cut<4096> : mb_fft_cut<4096, 32, 32, 32, 4> {
};
template <>
struct normal_cut<8192> : mb_fft_cut<8192, 32, 32, 16, 16> {
};
template <>
struct normal_cut<768> : mb_fft_cut<768, 48, 16, 8, 6> {
};
template <>
struct normal_cut<1536> : mb_fft_cut<1536, 48, 16, 8, 12> {
};
template <>
struct normal_cut<3072> : mb_fft_cut<3072, 48, 16, 16, 12> {
};
template <>
struct normal_cut<6144> : mb_fft_cut<6144, 48, 16, 16, 24> {
};

#define NORMAL_POWERS(X) X(512) X(1024) X(2048) X(4096) X(8192)
#define NORMAL_THIRDS(X) X(768) X(1536) X(3072) X(6144)
#define NORMAL_EXTENTS(X) NORMAL_POWERS(X) NORMAL_THIRDS(X)

/* That of rows, where it is another one. */
template <int N>
struct normal_row_cut : normal_cut<N> {
};
template <>
struct normal_row_cut<2048> : mb_fft_cut<2048, 16, 16, 16, 8> {
};
template <>
struct normal_row_cut<4096> : mb_fft_cut<4096, 16, 16, 16, 16> {
};

/* Lines of a block, of T threads each, in neighboring threads. */
template <int N, class Cut = normal_cut<N>>
struct normal_block {
    typedef Cut cut;
    static constexpr int T = cut::T, L = MB_NORMAL_LANES(N), threads = T * L,
                         blocks = N == 2048 ? 2 : 1; /* of a multiprocessor, at least */
    static_assert(threads % 32 == 0, "whole warps");
};
template <int N>
struct normal_columns_of : normal_block<N> {
    static_assert(normal_cut<N>::table == MB_NORMAL_TABLE(N) &&
                      normal_cut<N>::room == MB_NORMAL_ROOM(N) &&
                      normal_block<N>::threads == MB_NORMAL_THREADS(N),
                  "op_normal_operator.h has other numbers");
};
template <int N>
struct normal_rows_of : normal_block<N, normal_row_cut<N>> {
    static_assert(normal_row_cut<N>::table == MB_NORMAL_ROW_TABLE(N) &&
                      normal_row_cut<N>::room == MB_NORMAL_ROW_ROOM(N) &&
                      normal_block<N, normal_row_cut<N>>::threads == MB_NORMAL_ROW_THREADS(N),
                  "op_normal_operator.h has other numbers");
};

/* Rows that go forth as two transforms of half their length, of the even and of the odd
** frequencies: the half of a row that is zero is never held. Of 4096 points two blocks then share a
** multiprocessor, one waits for memory while the other one transforms; of 8192 a block has more
** rows side by side. Where the direction is made, it would have to be read again, which takes
** longer. Their spectra have the even frequencies first, then the odd ones. */
__host__ __device__ static constexpr bool normal_is_split(int px)
{
    return px == 4096 || px == 8192;
}

/* Where frequency kx is in a row of the spectra, and which one is there. */
__device__ static __forceinline__ int normal_place(int kx, int px)
{
    return normal_is_split(px) ? (kx >> 1) + (kx & 1) * (px >> 1) : kx;
}
__device__ static __forceinline__ int normal_frequency(int place, int px)
{
    return !normal_is_split(px) ? place : 2 * place < px ? 2 * place : 2 * place - px + 1;
}

/* A batch of pairs of slices, from slice `first` on. */
struct normal_job {
    mb_slice_view a, direction, result; /* direction: data NULL where there is none */
    mb_slice_factor factor;
    float2 *spectra;
    int64_t pair_points;
    const float *kernel; /* [px / 2 + 1][py] */
    int64_t kernel_row;
    const float2 *row_twiddles, *column_twiddles;
    mb_circle_run *runs; /* of the rows */
    float *factors;      /* of the slices' directions */
    double *partials;    /* [slice][partial_count], or NULL */
    int64_t partial_count;
    mb_circle circle;
    int64_t first;
    int slices, pairs; /* of the batch */
    int ny, nx, py, px;
    int shift; /* a tile has 1 << shift frequencies */
    float scale;
};

/* Copies a table of factors to shared memory. All threads of the block must call it; the caller
** synchronizes. */
template <class C>
__device__ static __forceinline__ void normal_copy_table(float2 *to, const float2 *from)
{
    for (int i = threadIdx.x; i < C::table / 2; i += blockDim.x)
        ((float4 *)to)[i] = __ldg((const float4 *)from + i);
}

/* Queue a launch for a batch, forth with the direction that is made (grow) or without. */
mb_status normal_tables(const mb_op_call *call, const normal_job &job, int64_t slices);
mb_status normal_rows_forth(const mb_op_call *call, const normal_job &job);
mb_status normal_rows_grow(const mb_op_call *call, const normal_job &job);
mb_status normal_rows_back(const mb_op_call *call, const normal_job &job);
mb_status normal_columns(const mb_op_call *call, const normal_job &job);
mb_status normal_columns_thirds(const mb_op_call *call, const normal_job &job);

#endif
