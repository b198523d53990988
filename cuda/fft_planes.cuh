/*
** Transforms along x and y of all planes of a grid in one launch, forth or back, in place (fft_stages.cuh).
** The work is a list of tiles in a fixed order: those of the first pass over plane p, then those of the second pass over
** plane p - lag, which finds that plane in the second-level cache. Blocks draw the tiles by ticket and wait only for
** tiles before their own: the first of those unfinished waits for none, so there is no deadlock however few blocks run.
*/
#ifndef MB_CUDA_FFT_PLANES_CUH
#define MB_CUDA_FFT_PLANES_CUH

#include "fft_stages.cuh"

/* mb_fused_fft_device (ops/fused_fft.h) for the architecture compiled for. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define MB_FFT_THREADS 256
#define MB_FFT_BLOCKS 2
#else
#define MB_FFT_THREADS 512
#define MB_FFT_BLOCKS 1
#endif

struct mb_fft_planes_job {
    float2 *data;
    unsigned *ticket;                /* zero, as are the others, at the launch */
    unsigned *done;                  /* per plane: tiles that have finished the first pass */
    unsigned *read;                  /* per tile of rows: its rows have been read */
    int planes, rows, points, lag;   /* points: complex numbers of a row */
    int row_tiles, column_tiles;     /* of a plane */
    int roots, column_table, shared; /* places in shared memory; the row table is at its begin */
};

__device__ static __forceinline__ unsigned mb_fft_acquire(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
__device__ static __forceinline__ void mb_fft_release(unsigned *p, unsigned v)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

/* All threads of a block, with their reads behind them: says so, and waits until the neighbour has said it. */
struct mb_fft_row_order {
    unsigned *mine;
    const unsigned *neighbour; /* NULL: none is in the way */
    __device__ __forceinline__ void operator()() const
    {
        __syncthreads();
        if (threadIdx.x == 0) {
            mb_fft_release(mine, 1);
            while (neighbour && !mb_fft_acquire(neighbour))
                __nanosleep(40);
        }
        __syncthreads();
    }
};

/* Tiles of each size are functions, not inlined: registers are then allotted to each alone. */
template <int N, bool INVERSE>
__device__ static __noinline__ void mb_fft_row_tile(float2 *plane, int tile, int roots, int shared,
                                                    unsigned *mine, const unsigned *neighbour)
{
    typedef mb_fft_cut_of<N> cut;
    constexpr int H = MB_FFT_THREADS / cut::T;
    extern __shared__ float2 memory[];
    mb_fft_rows<cut, H>::template transform<INVERSE>(plane, tile * H, memory, memory + roots,
                                                     memory + shared,
                                                     mb_fft_row_order{mine, neighbour});
}

template <int N, bool INVERSE>
__device__ static __noinline__ void mb_fft_column_tile(float2 *plane, int tile, int stride,
                                                       int table, int shared)
{
    typedef mb_fft_cut_of<N> cut;
    constexpr int W = MB_FFT_THREADS / cut::T;
    extern __shared__ float2 memory[];
    mb_fft_columns<cut, W>::template transform<INVERSE>(
        plane + tile * W, stride, tile == 0 ? plane + (int64_t)N * stride : NULL, memory + table,
        memory + shared);
}

#define MB_FFT_ROW_SIZES(X) X(64) X(128) X(256) X(512) X(1024) X(2048)
#define MB_FFT_COLUMN_SIZES(X) X(64) X(128) X(256) X(512) X(1024) X(2048)

template <bool INVERSE>
__global__ void __launch_bounds__(MB_FFT_THREADS, MB_FFT_BLOCKS)
    mb_fft_planes_kernel(mb_fft_planes_job job)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    extern __shared__ float2 memory[];
    __shared__ unsigned queue;
    switch (job.points) {
#define MB_FFT_CASE(N)                                                                             \
    case N:                                                                                        \
        mb_fft_fill_table<mb_fft_cut_of<N>>(memory);                                               \
        mb_fft_rows<mb_fft_cut_of<N>, 1>::fill_roots(memory + job.roots);                          \
        break;
        MB_FFT_ROW_SIZES(MB_FFT_CASE)
#undef MB_FFT_CASE
    }
    switch (job.rows) {
#define MB_FFT_CASE(N)                                                                             \
    case N: mb_fft_fill_table<mb_fft_cut_of<N>>(memory + job.column_table); break;
        MB_FFT_COLUMN_SIZES(MB_FFT_CASE)
#undef MB_FFT_CASE
    }
    const unsigned first_tiles = INVERSE ? job.column_tiles : job.row_tiles,
                   step_tiles = job.row_tiles + job.column_tiles,
                   total = (job.planes + job.lag) * step_tiles;
    if (threadIdx.x == 0)
        queue = atomicAdd(job.ticket, 1u);
    __syncthreads();
    for (unsigned item = queue; item < total; item = queue) {
        unsigned next = 0;
        if (threadIdx.x == 0)
            next = atomicAdd(job.ticket, 1u);
        unsigned step = item / step_tiles, tile = item - step * step_tiles;
        bool first = tile < first_tiles, rows = first != INVERSE;
        int plane = first ? (int)step : (int)step - job.lag;
        if (!first)
            tile -= first_tiles;
        if (plane >= 0 && plane < job.planes) {
            if (!first) {
                if (threadIdx.x == 0)
                    while (mb_fft_acquire(job.done + plane) < first_tiles)
                        __nanosleep(100);
                __syncthreads();
            }
            float2 *p = job.data + plane * ((int64_t)job.rows * (job.points + 1));
            if (rows) {
                /* Rows move down, so from the first on, or up, so from the last on. */
                const int i = INVERSE ? job.row_tiles - 1 - (int)tile : (int)tile;
                unsigned *mine = job.read + (int64_t)plane * job.row_tiles + i;
                const unsigned *neighbour = tile == 0 ? NULL : INVERSE ? mine + 1 : mine - 1;
                switch (job.points) {
#define MB_FFT_CASE(N)                                                                             \
    case N: mb_fft_row_tile<N, INVERSE>(p, i, job.roots, job.shared, mine, neighbour); break;
                    MB_FFT_ROW_SIZES(MB_FFT_CASE)
#undef MB_FFT_CASE
                }
            } else {
                switch (job.rows) {
#define MB_FFT_CASE(N)                                                                             \
    case N:                                                                                        \
        mb_fft_column_tile<N, INVERSE>(p, tile, job.points, job.column_table, job.shared);         \
        break;
                    MB_FFT_COLUMN_SIZES(MB_FFT_CASE)
#undef MB_FFT_CASE
                }
            }
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            if (first && plane < job.planes) {
                __threadfence();
                atomicAdd(job.done + plane, 1u);
            }
            queue = next;
        }
        __syncthreads();
    }
#endif
}

#endif
