/*
** apply_otf on CUDA: transform, product, transform back, in place. Fused, it has three launches: x
** and y of all planes; z, the product, and z back, or a convolution along z (otf_taps.cuh); then y
** and x. So the grid is read and written three times. Other sizes use cuFFT.
*/
#include "shared/fft_filter.h"
#include "shared/fft_planes.cuh"
#include "shared/otf_planes.cuh"
#include "fft/fft_split.cuh"
#include "fft/multiply_spectrum.cuh"
#include "fft/otf_taps.cuh"
#include "ops/fft/op_apply_otf.h"

struct filter_job {
    float2 *data;
    const float2 *otf; /* rows of points + 1 */
    int planes;        /* of otf, if it is in planes */
    int rows, points;  /* of a plane; points exclude the highest frequency */
    float scale, turn; /* of the real and the imaginary part of otf */
    unsigned *ticket;  /* zero at the launch and afterwards */

    /* The next tile, or one that does not exist. Blocks take tiles in order, so that the tiles that
    ** are processed at one time are neighbors in memory. A block asks once more than it has
    ** tiles. */
    __device__ __forceinline__ int next_tile(int tiles) const
    {
        const unsigned tile = atomicAdd(ticket, 1u);
        if (tile == tiles + gridDim.x - 1)
            *ticket = 0;
        return (int)tile;
    }
};

/* The product of a tile of columns with a whole transfer function, whose factors are loaded. */
template <class C, int W>
struct whole_product {
    const filter_job &job;
    const float2 *factor; /* of the thread's column, at plane 0 */
    int64_t stride;
    bool real;

    __device__ __forceinline__ void expect() const {}
    __device__ __forceinline__ void operator()(float2 (&v)[C::E]) const
    {
        if (real)
            mb_fft_columns<C, W>::multiply(v, factor + threadIdx.x / W * stride,
                                           mb_fft_step(C::T * stride), job.scale, job.turn);
    }
};

/* The product with a transfer function in planes. The planes are in shared memory, and the factors
** are made of them. */
template <class C, int W>
struct planes_product {
    const filter_job &job;
    const float2 *factor;
    int64_t stride;
    bool real;
    const float2 *table;
    float2 *planes;

    __device__ __forceinline__ void expect() const
    {
        mb_otf_load_planes<W>(planes, factor, stride, job.planes, real);
    }
    __device__ __forceinline__ void operator()(float2 (&v)[C::E]) const
    {
        const int reach = job.planes / 2;
        mb_otf_multiply<C>(v, planes + reach * W + threadIdx.x % W, W, reach, table,
                           threadIdx.x / W, job.scale, job.turn);
    }
};

template <int N, bool PLANES>
__global__ void __launch_bounds__(mb_fft_depth_tile<N>::threads, mb_fft_depth_tile<N>::blocks)
    filter_kernel(filter_job job)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    typedef mb_fft_cut_of<N> cut;
    constexpr int W = mb_fft_depth_tile<N>::threads / cut::T;
    extern __shared__ float2 memory[];
    __shared__ int queue;
    float2 *shared = memory + cut::table;
    const int64_t body = (int64_t)job.rows * job.points, stride = body + job.rows;
    const int tiles = (int)((stride + W - 1) / W);
    mb_fft_fill_table<cut>(memory);
    if (threadIdx.x == 0)
        queue = job.next_tile(tiles);
    __syncthreads();
    for (int tile = queue; tile < tiles; tile = queue) {
        const int next = threadIdx.x == 0 ? job.next_tile(tiles) : 0;
        const int64_t first = (int64_t)tile * W, c = first + threadIdx.x % W;
        /* The grid stores the highest frequencies after the others, otf at the end of each row. */
        const int64_t at =
            c < body ? c + (unsigned)c / job.points : (c - body) * (job.points + 1) + job.points;
        if constexpr (PLANES) {
            const planes_product<cut, W> product = {
                job, job.otf + at, stride, c < stride, memory, memory + mb_fft_depth_end<N>(W)};
            mb_fft_columns<cut, W>::filter(job.data + first, stride, c < stride, product, memory,
                                           shared);
        } else {
            const whole_product<cut, W> product = {job, job.otf + at, stride, c < stride};
            mb_fft_columns<cut, W>::filter(job.data + first, stride, c < stride, product, memory,
                                           shared);
        }
        __syncthreads();
        if (threadIdx.x == 0)
            queue = next;
        __syncthreads();
    }
#endif
}

template <int N>
static mb_status filter(const mb_op_call *call, const filter_job &job)
{
    void (*const kernel)(filter_job) =
        job.planes > 0 ? filter_kernel<N, true> : filter_kernel<N, false>;
    mb_fft_depth_launch launch;
    MB_TRY(mb_fft_depth_prepare<N>(call, (const void *)kernel, (int64_t)job.rows * (job.points + 1),
                                   job.planes, &launch));
    kernel<<<launch.blocks, launch.threads, launch.shared, mb_stream(call)>>>(job);
    MB_LAUNCHED("filter_kernel");
    return MB_STATUS_OK;
}

extern "C" mb_status mb_cuda_fft_filter(const mb_op_call *call, float *data, const mb_array *otf,
                                        const int64_t n[3], float scale, bool conj)
{
    const filter_job job = {(float2 *)data,
                            (const float2 *)otf->data,
                            mb_apply_otf_planes(&otf->shape, n),
                            (int)n[1],
                            (int)(n[2] / 2),
                            scale,
                            conj ? -scale : scale,
                            (unsigned *)call->slots[MB_APPLY_OTF_COUNTERS] + MB_APPLY_OTF_TICKET};
    const taps_job direct = {job.data, job.otf,    job.planes / 2,      (int)n[0],
                             job.rows, job.points, scale * (float)n[0], conj};
    if (job.planes > 0 && taps_pay(&call->device->facts, direct))
        return taps(call, direct);
    switch (n[0]) {
#define CASE(N)                                                                                    \
    case N: return filter<N>(call, job);
        MB_FFT_DEPTHS(CASE)
#undef CASE
    }
    return MB_STATUS_OK;
}

/* Called by all threads of a block after their reads: signals that, and waits for the same signal
** of the neighbor. */
struct row_order {
    unsigned *mine;
    const unsigned *neighbor; /* NULL: no neighbor to wait for */
    __device__ __forceinline__ void operator()() const
    {
        __syncthreads();
        if (threadIdx.x == 0) {
            mb_fft_release(mine, 1);
            while (neighbor && !mb_fft_acquire(neighbor))
                __nanosleep(40);
        }
        __syncthreads();
    }
};

/* Rows of the grid to rows of the spectrum, or back. Rows that move down are processed from the
** first, rows that move up from the last. */
template <bool INVERSE>
struct moved_rows {
    static constexpr bool back = INVERSE;
    static constexpr mb_fft_keep keep = MB_FFT_KEEP_LONG;
    unsigned *read; /* per tile of rows: its rows have been read; zero at the launch */

    template <class R>
    __device__ __forceinline__ void tile(const mb_fft_planes_job &job, int plane, int tile,
                                         const float2 *table, const float2 *root,
                                         float2 *shared) const
    {
        const int i = INVERSE ? job.row_tiles - 1 - tile : tile;
        unsigned *mine = read + (int64_t)plane * job.row_tiles + i;
        const unsigned *neighbor = tile == 0 ? NULL : INVERSE ? mine + 1 : mine - 1;
        R::template transform<INVERSE>(mb_fft_plane(job, plane), i * R::height, table, root, shared,
                                       row_order{mine, neighbor});
    }
};

template <bool INVERSE>
static mb_status planes(const mb_op_call *call, const int64_t n[3])
{
    unsigned *counters = (unsigned *)call->slots[MB_APPLY_OTF_COUNTERS];
    return mb_fft_planes(call, (float *)call->arrays[MB_APPLY_OTF_GRID]->data, n, counters,
                         call->slot_bytes[MB_APPLY_OTF_COUNTERS],
                         moved_rows<INVERSE>{counters + MB_APPLY_OTF_DONE + n[0]});
}

static mb_status fused(const mb_op_call *call, const int64_t n[3], double scale, bool conj)
{
    MB_TRY(planes<false>(call, n));
    MB_TRY(mb_cuda_fft_filter(call, (float *)call->arrays[MB_APPLY_OTF_GRID]->data,
                              call->arrays[MB_APPLY_OTF_OTF], n, (float)scale, conj));
    return planes<true>(call, n);
}

static mb_status split(const mb_op_call *call, const int64_t n[3], double scale, bool conj)
{
    const mb_array *otf = call->arrays[MB_APPLY_OTF_OTF];
    split_job job = {};
    job.data = (float2 *)call->arrays[MB_APPLY_OTF_GRID]->data;
    job.otf = (const float2 *)otf->data;
    job.planes = mb_apply_otf_planes(&otf->shape, n);
    job.scale = (float)scale;
    job.turn = (float)(conj ? -scale : scale);
    MB_TRY(mb_fft_planes_aligned(call, job.data));
    switch (mb_apply_otf_split(&call->device->facts, n)) {
    case 4: return split_launch<4>(call, job);
    case 8: return split_launch<8>(call, job);
    default: return split_launch<16>(call, job);
    }
}

/* Sets the padding after the samples of a row, which the library's inverse changes, to 0. */
__global__ static void __launch_bounds__(MB_THREADS)
    clear_kernel(float *data, int64_t rows, int64_t n, int64_t pitch)
{
    MB_GRID_LOOP(row, rows)
    for (int64_t x = n; x < pitch; x++)
        data[row * pitch + x] = 0;
}

/* By the FFT library, with the product as a pass of its own. */
static mb_status by_library(const mb_op_call *call, const int64_t n[3], int64_t pitch)
{
    const mb_apply_otf_params *p = (const mb_apply_otf_params *)call->params;
    const mb_array *grid = call->arrays[MB_APPLY_OTF_GRID], *otf = call->arrays[MB_APPLY_OTF_OTF];
    const int64_t rows = n[0] * n[1], plane = n[1] * pitch / 2, count = n[0] * plane;
    const int planes = mb_apply_otf_planes(&otf->shape, n);
    float2 *data = (float2 *)grid->data;
    const float2 *factor = (const float2 *)otf->data;
    MB_TRY(mb_cuda_transform(call, MB_APPLY_OTF_FORWARD, grid->data, grid->data,
                             MB_APPLY_OTF_FORWARD_WORK));
    for (int i = 0; i < (p->both ? 2 : 1); i++) {
        const double scale = i == 0 ? p->scale : 1;
        const bool conj = p->conj != (i > 0);
        if (planes > 0)
            MB_TRY(
                mb_cuda_otf_planes_multiply(call, data, factor, planes, n[0], plane, scale, conj));
        else
            MB_TRY(mb_cuda_multiply_spectrum(call, data, factor, count, count, scale, conj));
    }
    MB_TRY(mb_cuda_transform(call, MB_APPLY_OTF_INVERSE, grid->data, grid->data,
                             MB_APPLY_OTF_INVERSE_WORK));
    clear_kernel<<<mb_blocks(call, rows, MB_THREADS), MB_THREADS, 0, mb_stream(call)>>>(
        (float *)grid->data, rows, n[2], pitch);
    return MB_LAUNCH_STATUS("clear_kernel");
}

/* The fused passes multiply once. Both factors take two rounds of them, the second of which must
** undo what an inverse transform multiplies by. */
extern "C" mb_status mb_cuda_apply_otf(const mb_op_call *call)
{
    const mb_apply_otf_params *p = (const mb_apply_otf_params *)call->params;
    int64_t n[3];
    mb_grid_dims(&call->arrays[MB_APPLY_OTF_GRID]->shape, n);
    const int64_t pitch = n[2];
    n[2] = mb_apply_otf_samples(p, pitch);
    const bool in_parts = mb_apply_otf_split(&call->device->facts, n) > 0;
    if (!in_parts && !mb_apply_otf_fused(&call->device->facts, n))
        return by_library(call, n, pitch);
    for (int i = 0; i < (p->both ? 2 : 1); i++) {
        const double scale = i == 0 ? p->scale : 1.0 / ((double)n[0] * (double)(n[1] * n[2]));
        const bool conj = p->conj != (i > 0);
        MB_TRY(in_parts ? split(call, n, scale, conj) : fused(call, n, scale, conj));
    }
    return MB_STATUS_OK;
}
