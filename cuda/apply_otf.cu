/*
** apply_otf on CUDA: transform, product, transform back, in place. Fused: x and y of all planes in one launch, then z, the
** product and z back in one, then y and x in one; a grid is read and written three times. Other sizes through cuFFT.
*/
#include "fft_depth.cuh"
#include "fft_planes.cuh"
#include "multiply_spectrum.cuh"
#include "ops/op_apply_otf.h"

struct filter_job {
    float2 *data;
    const float2 *otf; /* rows of points + 1 */
    int rows, points;  /* of a plane, points without the highest frequency */
    float scale, turn; /* of the real and the imaginary part of otf */
};

template <int N>
__global__ void __launch_bounds__(mb_fft_depth_tile<N>::threads, mb_fft_depth_tile<N>::blocks)
    filter_kernel(filter_job job)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    typedef mb_fft_cut_of<N> cut;
    constexpr int W = mb_fft_depth_tile<N>::threads / cut::T;
    extern __shared__ float2 memory[];
    float2 *shared = memory + cut::table;
    mb_fft_fill_table<cut>(memory);
    __syncthreads();
    const int64_t body = (int64_t)job.rows * job.points, stride = body + job.rows;
    const int tiles = (int)((stride + W - 1) / W);
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int64_t first = (int64_t)tile * W, c = first + threadIdx.x % W;
        /* The grid has its highest frequencies behind the others, otf each at the end of its row. */
        const int64_t at =
            c < body ? c + (unsigned)c / job.points : (c - body) * (job.points + 1) + job.points;
        mb_fft_columns<cut, W>::filter(job.data + first, job.otf + at, stride, c < stride,
                                       job.scale, job.turn, memory, shared);
    }
#endif
}

template <int N>
static mb_status filter(const mb_op_call *call, const filter_job &job)
{
    mb_fft_depth_launch launch;
    MB_TRY(mb_fft_depth_prepare<N>(call, (const void *)filter_kernel<N>,
                                   (int64_t)job.rows * (job.points + 1), &launch));
    filter_kernel<N><<<launch.blocks, launch.threads, launch.shared, mb_stream(call)>>>(job);
    MB_LAUNCHED("filter_kernel");
    return MB_STATUS_OK;
}

static mb_status planes(const mb_op_call *call, const int64_t n[3], bool inverse)
{
    const mb_device_facts *facts = &call->device->facts;
    const int threads = mb_fused_fft_device(facts).threads;
    const size_t shared = sizeof(float2) * mb_apply_otf_shared(facts, n);
    unsigned *counters = (unsigned *)call->slots[MB_APPLY_OTF_COUNTERS], blocks;
    mb_fft_planes_job job;
    job.data = (float2 *)call->arrays[MB_APPLY_OTF_GRID]->data;
    job.planes = (int)n[0];
    job.rows = (int)n[1];
    job.points = (int)(n[2] / 2);
    job.ticket = counters;
    job.done = counters + 1;
    job.read = counters + 1 + n[0];
    job.row_tiles = job.rows / mb_apply_otf_tile(facts, job.points);
    job.column_tiles = job.points / mb_apply_otf_tile(facts, job.rows);
    job.roots = (int)mb_apply_otf_roots(n);
    job.column_table = (int)mb_apply_otf_column_table(n);
    job.shared = (int)mb_apply_otf_exchange(n);
    void (*kernel)(mb_fft_planes_job) =
        inverse ? mb_fft_planes_kernel<true> : mb_fft_planes_kernel<false>;
    MB_TRY(mb_fft_resident_blocks(call, (const void *)kernel, threads, shared, &blocks));
    /* So far behind that the first pass over a plane has ended when the second begins, and no farther than the
    ** second-level cache reaches. */
    const int64_t step = job.row_tiles + job.column_tiles, plane_bytes = 8 * n[1] * (n[2] / 2 + 1),
                  busy = (blocks + step - 1) / step,
                  held = (int64_t)facts->l2_bytes / 3 / plane_bytes;
    job.lag = (int)(2 * busy < held ? 2 * busy : held > busy ? held : busy);
    MB_CUDA(cudaMemsetAsync(counters, 0, call->slot_bytes[MB_APPLY_OTF_COUNTERS], mb_stream(call)));
    kernel<<<blocks, threads, shared, mb_stream(call)>>>(job);
    MB_LAUNCHED("mb_fft_planes_kernel");
    return MB_STATUS_OK;
}

static mb_status fused(const mb_op_call *call, const int64_t n[3], float scale, float sign)
{
    const filter_job job = {(float2 *)call->arrays[MB_APPLY_OTF_GRID]->data,
                            (const float2 *)call->arrays[MB_APPLY_OTF_OTF]->data,
                            (int)n[1],
                            (int)(n[2] / 2),
                            scale,
                            scale * sign};
    MB_TRY(planes(call, n, false));
    switch (n[0]) {
#define CASE(N)                                                                                    \
    case N: MB_TRY(filter<N>(call, job)); break;
        MB_FFT_DEPTHS(CASE)
#undef CASE
    }
    return planes(call, n, true);
}

/* What the library's transform back leaves behind the samples of a row becomes 0. */
__global__ static void __launch_bounds__(MB_THREADS)
    clear_kernel(float *data, int64_t rows, int64_t n, int64_t pitch)
{
    MB_GRID_LOOP(row, rows)
    for (int64_t x = n; x < pitch; x++)
        data[row * pitch + x] = 0;
}

extern "C" mb_status mb_cuda_apply_otf(const mb_op_call *call)
{
    const mb_apply_otf_params *p = (const mb_apply_otf_params *)call->params;
    const mb_array *grid = call->arrays[MB_APPLY_OTF_GRID], *otf = call->arrays[MB_APPLY_OTF_OTF];
    int64_t n[3];
    mb_grid_dims(&grid->shape, n);
    const int64_t pitch = n[2], rows = n[0] * n[1], count = rows * pitch / 2;
    n[2] = mb_apply_otf_samples(p, pitch);
    if (mb_apply_otf_fused(&call->device->facts, n))
        return fused(call, n, (float)p->scale, p->conj ? -1.0f : 1.0f);
    MB_TRY(mb_cuda_core->fft_exec(call->device, call->ffts[MB_APPLY_OTF_FORWARD], grid->data,
                                  grid->data, call->slots[MB_APPLY_OTF_FORWARD_WORK]));
    MB_TRY(mb_cuda_multiply_spectrum(call, (float2 *)grid->data, (const float2 *)otf->data, count,
                                     count, p->scale, p->conj));
    MB_TRY(mb_cuda_core->fft_exec(call->device, call->ffts[MB_APPLY_OTF_INVERSE], grid->data,
                                  grid->data, call->slots[MB_APPLY_OTF_INVERSE_WORK]));
    clear_kernel<<<mb_blocks(call, rows, MB_THREADS), MB_THREADS, 0, mb_stream(call)>>>(
        (float *)grid->data, rows, n[2], pitch);
    MB_LAUNCHED("clear_kernel");
    return MB_STATUS_OK;
}
