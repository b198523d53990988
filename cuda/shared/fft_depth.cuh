/*
** Helpers of the passes along the first axis: the width of their tiles, and their launch. The
** columns along z are adjacent in memory over a whole plane, so a tile is a run of whole lines.
*/
#ifndef MB_CUDA_FFT_DEPTH_CUH
#define MB_CUDA_FFT_DEPTH_CUH

#include "shared/cuda_launch.cuh"
#include "shared/fft_stages.cuh"

#define MB_FFT_DEPTHS(X) X(16) X(32) X(64) X(128) X(256) X(512) X(1024) X(2048)

/* At least a line of 16 columns if a block may be that large. Two blocks of 256 threads run on a
** multiprocessor, or three where a thread has few points. */
template <int N>
struct mb_fft_depth_tile {
    static constexpr int per_line = mb_fft_cut_of<N>::T * 16;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    static constexpr int threads = 256;
#else
    static constexpr int threads = per_line <= 256 ? 256 : 512;
#endif
    static constexpr int blocks = threads > 256 ? 1 : mb_fft_cut_of<N>::E > 16 ? 2 : 3;
    static constexpr int width = threads / mb_fft_cut_of<N>::T;
};

struct mb_fft_depth_launch {
    unsigned blocks;
    int threads;
    size_t shared;
};

/* The number of blocks that run at once, after allowing this much shared memory. */
static inline mb_status mb_fft_resident_blocks(const mb_op_call *call, const void *kernel,
                                               int threads, size_t shared, unsigned *blocks)
{
    int per = 0;
    *blocks = 0;
    MB_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    MB_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per, kernel, threads, shared));
    *blocks = (unsigned)((per > 0 ? per : 1) * call->device->facts.threads);
    return MB_STATUS_OK;
}

/* Where the exchange of so many columns ends in shared memory, in complex numbers. */
template <int N>
__host__ __device__ static constexpr size_t mb_fft_depth_end(int64_t width)
{
    typedef mb_fft_cut_of<N> cut;
    return cut::passes > 1 ? cut::table + (size_t)cut::room * width : 1;
}

/* Launch settings of a kernel over this many columns, one tile per block at a time, and `more`
** complex numbers of each column in shared memory. */
template <int N>
static inline mb_status mb_fft_depth_prepare(const mb_op_call *call, const void *kernel,
                                             int64_t columns, int more, mb_fft_depth_launch *launch)
{
    typedef mb_fft_cut_of<N> cut;
    cudaFuncAttributes compiled; /* with that tile, whatever the device is taken for */
    MB_CUDA(cudaFuncGetAttributes(&compiled, kernel));
    launch->threads = compiled.maxThreadsPerBlock;
    const int64_t width = launch->threads / cut::T, tiles = (columns + width - 1) / width;
    launch->shared = sizeof(float2) * (mb_fft_depth_end<N>(width) + (size_t)(more * width));
    MB_TRY(mb_fft_resident_blocks(call, kernel, launch->threads, launch->shared, &launch->blocks));
    if (tiles < launch->blocks)
        launch->blocks = (unsigned)tiles;
    return MB_STATUS_OK;
}

#endif
