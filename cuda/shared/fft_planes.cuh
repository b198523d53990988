/*
** Passes over the planes of a grid, in place: along x and y in one launch, forward (rows first) or
** back (columns first), and only along y (fft_stages.cuh has the passes' tiles). The work of both
** is a list of tiles in a fixed order: the tiles of the first pass over plane p, then the tiles of
** the second pass over plane p - lag, which is still in the second-level cache. Blocks take the
** tiles by ticket and wait only for tiles before their own. The first unfinished tile waits for no
** other, so there is no deadlock for any number of blocks. (A third pass over plane p - 2 lag was
** slower than a separate launch, because the plane is no longer in the cache.) The work on rows is
** a structure, the launch's second parameter: `back` says whether columns come first, and `tile`
** processes a tile of rows.
*/
#ifndef MB_CUDA_FFT_PLANES_CUH
#define MB_CUDA_FFT_PLANES_CUH

#include "shared/fft_depth.cuh"
#include "shared/fft_stages.cuh"
#include "ops/fft/op_apply_otf.h"

/* Blocks of a multiprocessor. The registers are those of 512 threads. */
#define MB_FFT_BLOCKS(threads) (512 / (threads))

/* Older devices have no blocks of 512 threads (mb_fused_fft_device): they get no such code. */
template <int THREADS>
__device__ static __forceinline__ constexpr bool mb_fft_threads_fit(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    return THREADS == 256;
#else
    return true;
#endif
}

struct mb_fft_planes_job {
    float2 *data;
    unsigned *ticket;                /* zero at the launch, like the next member */
    unsigned *done;                  /* per plane: tiles with a finished first pass */
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

__device__ static __forceinline__ float2 *mb_fft_plane(const mb_fft_planes_job &job, int plane)
{
    return job.data + plane * ((int64_t)job.rows * (job.points + 1));
}

/* Tiles of each size are functions that are not inlined, so that each gets its own registers. */
template <int N, int THREADS, class Rows>
__device__ static __noinline__ void mb_fft_row_tile(const mb_fft_planes_job &job, const Rows &rows,
                                                    int plane, int tile)
{
    typedef mb_fft_cut_of<N> cut;
    extern __shared__ float2 memory[];
    rows.template tile<mb_fft_rows<cut, THREADS / cut::T>>(job, plane, tile, memory,
                                                           memory + job.roots, memory + job.shared);
}

template <int N, int THREADS, bool INVERSE, mb_fft_keep KEEP>
__device__ static __noinline__ void mb_fft_column_tile(float2 *plane, int tile, int stride,
                                                       int table, int shared)
{
    typedef mb_fft_cut_of<N> cut;
    constexpr int W = THREADS / cut::T;
    extern __shared__ float2 memory[];
    mb_fft_columns<cut, W>::template transform<INVERSE, KEEP>(
        plane + tile * W, stride, tile == 0 ? plane + (int64_t)N * stride : NULL, memory + table,
        memory + shared);
}

#define MB_FFT_ROW_SIZES(X) X(64) X(128) X(256) X(512) X(1024) X(2048)
#define MB_FFT_COLUMN_SIZES(X) X(64) X(128) X(256) X(512) X(1024) X(2048)

/* BACK: of passes whose columns come first, or alone. */
template <int THREADS, bool BACK, bool INVERSE, mb_fft_keep KEEP>
__device__ static __forceinline__ void mb_fft_columns_of(const mb_fft_planes_job &job, int plane,
                                                         int tile)
{
    switch (job.rows) {
#define MB_FFT_CASE(N)                                                                             \
    case N:                                                                                        \
        if constexpr (THREADS == 256 ||                                                            \
                      (mb_fft_threads_fit<THREADS>() && N > MB_APPLY_OTF_HALVED(BACK)))            \
            mb_fft_column_tile<N, THREADS, INVERSE, KEEP>(                                         \
                mb_fft_plane(job, plane), tile, job.points, job.column_table, job.shared);         \
        break;
        MB_FFT_COLUMN_SIZES(MB_FFT_CASE)
#undef MB_FFT_CASE
    }
}

template <int THREADS, class Rows>
__device__ static __forceinline__ void mb_fft_rows_of(const mb_fft_planes_job &job,
                                                      const Rows &rows, int plane, int tile)
{
    switch (job.points) {
#define MB_FFT_CASE(N)                                                                             \
    case N:                                                                                        \
        if constexpr (mb_fft_threads_fit<THREADS>())                                               \
            mb_fft_row_tile<N, THREADS>(job, rows, plane, tile);                                   \
        break;
        MB_FFT_ROW_SIZES(MB_FFT_CASE)
#undef MB_FFT_CASE
    }
}

__device__ static __forceinline__ void mb_fft_fill_row_table(const mb_fft_planes_job &job,
                                                             float2 *memory)
{
    switch (job.points) {
#define MB_FFT_CASE(N)                                                                             \
    case N:                                                                                        \
        mb_fft_fill_table<mb_fft_cut_of<N>>(memory);                                               \
        mb_fft_rows<mb_fft_cut_of<N>, 1>::fill_roots(memory + job.roots);                          \
        break;
        MB_FFT_ROW_SIZES(MB_FFT_CASE)
#undef MB_FFT_CASE
    }
}

__device__ static __forceinline__ void mb_fft_fill_column_table(const mb_fft_planes_job &job,
                                                                float2 *memory)
{
    switch (job.rows) {
#define MB_FFT_CASE(N)                                                                             \
    case N: mb_fft_fill_table<mb_fft_cut_of<N>>(memory + job.column_table); break;
        MB_FFT_COLUMN_SIZES(MB_FFT_CASE)
#undef MB_FFT_CASE
    }
}

template <int THREADS, class Rows>
__global__ void __launch_bounds__(THREADS, MB_FFT_BLOCKS(THREADS))
    mb_fft_planes_kernel(const __grid_constant__ mb_fft_planes_job job,
                         const __grid_constant__ Rows rows)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    extern __shared__ float2 memory[];
    __shared__ unsigned queue;
    mb_fft_fill_row_table(job, memory);
    mb_fft_fill_column_table(job, memory);
    const unsigned first_tiles = Rows::back ? job.column_tiles : job.row_tiles,
                   step_tiles = job.row_tiles + job.column_tiles,
                   total = (job.planes + job.lag) * step_tiles;
    if (threadIdx.x == 0)
        queue = atomicAdd(job.ticket, 1u);
    __syncthreads();
    for (unsigned item = queue; item < total; item = queue) {
        unsigned next = 0;
        if (threadIdx.x == 0)
            next = atomicAdd(job.ticket, 1u);
        const unsigned step = item / step_tiles, place = item - step * step_tiles;
        const bool first = place < first_tiles;
        const int plane = first ? (int)step : (int)step - job.lag,
                  tile = (int)(first ? place : place - first_tiles);
        const bool real = plane >= 0 && plane < job.planes;
        if (real) {
            if (!first) {
                if (threadIdx.x == 0)
                    while (mb_fft_acquire(job.done + plane) < first_tiles)
                        __nanosleep(100);
                __syncthreads();
            }
            if (first != Rows::back)
                mb_fft_rows_of<THREADS>(job, rows, plane, tile);
            else
                mb_fft_columns_of<THREADS, Rows::back, Rows::back, Rows::keep>(job, plane, tile);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            if (real && first) {
                __threadfence();
                atomicAdd(job.done + plane, 1u);
            }
            queue = next;
        }
        __syncthreads();
    }
#endif
}

/* The pass along only y, over all planes. */
template <int THREADS, bool INVERSE>
__global__ void __launch_bounds__(THREADS, MB_FFT_BLOCKS(THREADS))
    mb_fft_columns_kernel(const __grid_constant__ mb_fft_planes_job job)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    extern __shared__ float2 memory[];
    mb_fft_fill_column_table(job, memory);
    __syncthreads();
    for (int item = blockIdx.x; item < job.planes * job.column_tiles; item += gridDim.x) {
        mb_fft_columns_of<THREADS, true, INVERSE, MB_FFT_KEEP_ANY>(job, item / job.column_tiles,
                                                                   item % job.column_tiles);
        __syncthreads();
    }
#endif
}

typedef void (*mb_fft_columns_launch)(const mb_fft_planes_job job);
template <class Rows>
using mb_fft_planes_launch = void (*)(const mb_fft_planes_job job, const Rows rows);

static inline mb_status mb_fft_planes_aligned(const mb_op_call *call, const void *data)
{
    if ((uintptr_t)data % 16)
        return mb_cuda_core->fail(MB_STATUS_ARGUMENT, call->op->args[0].name,
                                  "a view that begins at no multiple of 16 bytes: copy it first");
    return MB_STATUS_OK;
}

/* The job for blocks of so many threads, and the number of blocks. */
static inline mb_status mb_fft_planes_prepare(const mb_op_call *call, float *data,
                                              const int64_t n[3], int threads, const void *kernel,
                                              mb_fft_planes_job *job, unsigned *blocks)
{
    MB_TRY(mb_fft_planes_aligned(call, data));
    job->data = (float2 *)data;
    job->ticket = job->done = NULL;
    job->planes = (int)n[0];
    job->rows = (int)n[1];
    job->points = (int)(n[2] / 2);
    job->lag = 0;
    job->row_tiles = job->rows / mb_apply_otf_tile(threads, job->points);
    job->column_tiles = job->points / mb_apply_otf_tile(threads, job->rows);
    job->roots = (int)mb_apply_otf_roots(n);
    job->column_table = (int)mb_apply_otf_column_table(n);
    job->shared = (int)mb_apply_otf_exchange(n);
    return mb_fft_resident_blocks(call, kernel, threads,
                                  sizeof(float2) * mb_apply_otf_shared(threads, n), blocks);
}

/* The lag is large enough that the first pass over a plane has ended when the second begins, and
** small enough that the planes between fit into the second-level cache, which has other data too.
** Rows that move forward wait for each other, and need more. */
static inline int mb_fft_planes_lag(const mb_op_call *call, const mb_fft_planes_job *job,
                                    unsigned blocks, bool back)
{
    const int64_t step = job->row_tiles + job->column_tiles, busy = (blocks + step - 1) / step,
                  plane_bytes = 8 * (int64_t)job->rows * (job->points + 1),
                  held = (int64_t)call->device->facts.l2_bytes / (back ? 4 : 3) / plane_bytes;
    return (int)(2 * busy < held ? 2 * busy : held > busy ? held : busy);
}

/* Launches over the planes of `data`, n samples, whose rows have the layout between the passes, or
** the layout that `rows` handles. The counters are those of apply_otf, without the flags where
** `rows` needs none. All are set to 0. */
template <class Rows>
static inline mb_status mb_fft_planes(const mb_op_call *call, float *data, const int64_t n[3],
                                      unsigned *counters, uint64_t counter_bytes, const Rows &rows)
{
    const int threads = mb_apply_otf_threads(&call->device->facts, n, Rows::back);
    const mb_fft_planes_launch<Rows> kernel =
        threads == 256 ? mb_fft_planes_kernel<256, Rows> : mb_fft_planes_kernel<512, Rows>;
    unsigned blocks = 0;
    mb_fft_planes_job job;
    MB_TRY(mb_fft_planes_prepare(call, data, n, threads, (const void *)kernel, &job, &blocks));
    job.ticket = counters;
    job.done = counters + MB_APPLY_OTF_DONE;
    job.lag = mb_fft_planes_lag(call, &job, blocks, Rows::back);
    MB_CUDA(cudaMemsetAsync(counters, 0, counter_bytes, mb_stream(call)));
    kernel<<<blocks, threads, sizeof(float2) * mb_apply_otf_shared(threads, n), mb_stream(call)>>>(
        job, rows);
    MB_LAUNCHED("mb_fft_planes_kernel");
    return MB_STATUS_OK;
}

template <bool INVERSE>
static inline mb_status mb_fft_plane_columns(const mb_op_call *call, float *data,
                                             const int64_t n[3])
{
    const int threads = mb_apply_otf_threads(&call->device->facts, n, true);
    const mb_fft_columns_launch kernel =
        threads == 256 ? mb_fft_columns_kernel<256, INVERSE> : mb_fft_columns_kernel<512, INVERSE>;
    unsigned blocks = 0;
    mb_fft_planes_job job;
    MB_TRY(mb_fft_planes_prepare(call, data, n, threads, (const void *)kernel, &job, &blocks));
    kernel<<<blocks, threads, sizeof(float2) * mb_apply_otf_shared(threads, n), mb_stream(call)>>>(
        job);
    MB_LAUNCHED("mb_fft_columns_kernel");
    return MB_STATUS_OK;
}

#endif
