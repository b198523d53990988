/*
** stripes_wavelet on CUDA (ops/stripes/op_stripes_wavelet.h): tables, products of matrices, and in
** between a block for each profile, which goes down and up the levels in shared memory.
*/
#include "ops/stripes/op_stripes_wavelet.h"
#include "stripes/mode_products.cuh"

#define WAVELET_THREADS 256

/* A block makes a mode in P (blockIdx.y 0) or in Q (1). */
__global__ void __launch_bounds__(WAVELET_THREADS)
    wavelet_tables(mb_wavelet_plan w, modes_group g, float *p, float *q, double *buffers,
                   int64_t room)
{
    const int64_t mode = blockIdx.x;
    const bool transposed = blockIdx.y == 0;
    double *now = buffers + (mode * 2 + blockIdx.y) * 2 * room, *next = now + room;
    if (mode >= g.modes) { /* what P has beyond its modes */
        if (transposed)
            for (int64_t a = threadIdx.x; a < g.s.angles; a += WAVELET_THREADS)
                p[a * g.pad + mode] = 0.0f;
        return;
    }
    const int level = mb_wavelet_level(&w, mode);
    for (int64_t m = threadIdx.x; m < w.rows[level]; m += WAVELET_THREADS)
        now[m] = mb_wavelet_wave(&w, mode, m);
    __syncthreads();
    for (int k = level; k > 1; k--) {
        double *keep = now;
        for (int64_t i = threadIdx.x; i < w.rows[k - 1]; i += WAVELET_THREADS)
            next[i] = mb_wavelet_up(&w, now, w.rows[k], w.rows[k - 1], i, transposed);
        __syncthreads();
        now = next;
        next = keep;
    }
    __shared__ double mean;
    if (transposed) {
        double sum = 0;
        if (w.padding == MB_WAVELET_PAD_BOTH)
            for (int64_t i = threadIdx.x; i < w.rows[0]; i += WAVELET_THREADS)
                if (i < w.before || i >= w.before + w.angles)
                    sum += mb_wavelet_up(&w, now, w.rows[1], w.rows[0], i, true);
        sum = mb_block_fold(sum, mb_fold_sum());
        if (threadIdx.x == 0)
            mean = sum / (double)w.angles;
        __syncthreads();
    }
    const double factor = mb_wavelet_factor(&w, mode);
    for (int64_t a = threadIdx.x; a < w.angles; a += WAVELET_THREADS) {
        const double v = mb_wavelet_up(&w, now, w.rows[1], w.rows[0], w.before + a, transposed);
        if (transposed)
            p[a * g.pad + mode] = (float)(mean + v);
        else
            q[mode * w.angles + a] = (float)(factor * v);
    }
}

__device__ static __forceinline__ void analyze(const mb_wavelet_plan &w, const float *filter,
                                               const float *from, int n, float *to, int count)
{
    const int s = w.boundary == MB_WAVELET_PERIODIC ? w.length / 2 : 1, last = w.length - 1;
    for (int m = threadIdx.x; m < count; m += WAVELET_THREADS) {
        const int top = 2 * m + s;
        float sum = 0;
        if (top - last >= 0 && top < n)
            for (int t = 0; t <= last; t++)
                sum = fmaf(filter[t], from[top - t], sum);
        else
            for (int t = 0; t <= last; t++)
                sum = fmaf(filter[t], from[mb_wavelet_place(&w, top - t, n)], sum);
        to[m] = sum;
    }
    __syncthreads();
}

__device__ static __forceinline__ void synthesize(const mb_wavelet_plan &w, const float *filter,
                                                  const float *from, int count, float *to, int n)
{
    const bool periodic = w.boundary == MB_WAVELET_PERIODIC;
    const int s = periodic ? w.length / 2 : 1, period = 2 * count;
    const int low = periodic ? 1 - w.length / 2 : 0;
    const int high = periodic ? period - 2 + w.length / 2 : n - 1;
    for (int i = threadIdx.x; i < n; i += WAVELET_THREADS) {
        float sum = 0;
        for (int j = periodic ? i - (i - low) / period * period : i; j <= high; j += period) {
            const int first = j - s < 0 ? 0 : (j - s + 1) / 2;
            int end = j - s + w.length - 1;
            end = end < 0 ? 0 : end / 2 + 1;
            end = end < count ? end : count;
            for (int m = first; m < end; m++)
                sum = fmaf(filter[2 * m + s - j], from[m], sum);
            if (!periodic)
                break;
        }
        to[i] = sum;
    }
    __syncthreads();
}

/* Profile blockIdx.x of sinogram blockIdx.y: its parts are added up, and its details are left. */
__global__ void __launch_bounds__(WAVELET_THREADS)
    wavelet_profiles(mb_wavelet_plan w, modes_group g, float *rows, int64_t second, int64_t both)
{
    extern __shared__ float shared[];
    __shared__ float filters[2][MB_WAVELET_LENGTH];
    const int64_t profile = blockIdx.y * (int64_t)g.modes + blockIdx.x;
    float *buffer = rows ? rows + profile * both : shared;
    float *side[2] = {buffer, buffer + second};
    const float *t = g.t + profile * g.parts * g.s.columns;
    const int level = mb_wavelet_level(&w, blockIdx.x);
    for (int i = threadIdx.x; i < w.length; i += WAVELET_THREADS) {
        filters[0][i] = w.low_f[i];
        filters[1][i] = w.high_f[i];
    }
    for (int64_t x = threadIdx.x; x < w.width[0]; x += WAVELET_THREADS) {
        int64_t c = x - w.left;
        c = c < 0 ? 0 : c < w.columns ? c : w.columns - 1;
        double sum = 0;
        for (int k = 0; k < g.parts; k++)
            sum += t[k * w.columns + c];
        side[0][x] = (float)sum;
    }
    __syncthreads();
    for (int k = 1; k <= level; k++)
        analyze(w, filters[k == level], side[(k - 1) % 2], (int)w.width[k - 1], side[k % 2],
                (int)w.width[k]);
    for (int k = level; k >= 1; k--)
        synthesize(w, filters[k == level], side[k % 2], (int)w.width[k], side[(k - 1) % 2],
                   (int)w.width[k - 1]);
    for (int64_t c = threadIdx.x; c < w.columns; c += WAVELET_THREADS)
        g.filtered[profile * w.columns + c] = side[0][w.left + c];
}

static mb_status run_profiles(const mb_op_call *call, const mb_wavelet_plan &w,
                              const modes_group &g)
{
    const dim3 blocks((unsigned)g.modes, (unsigned)g.s.count);
    const int64_t second = mb_wavelet_cuda_buffer(&w, 0);
    const uint64_t bytes = mb_wavelet_cuda_row_bytes(&w);
    float *rows = (float *)call->slots[MB_STRIPES_WAVELET_ROWS];
    const size_t dynamic = rows ? 0 : (size_t)bytes;
    if (dynamic > 40 << 10)
        MB_CUDA(cudaFuncSetAttribute(wavelet_profiles, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     (int)dynamic));
    wavelet_profiles<<<blocks, WAVELET_THREADS, dynamic, mb_stream(call)>>>(
        w, g, rows, second, (int64_t)(bytes / sizeof(float)));
    return MB_LAUNCH_STATUS("wavelet_profiles");
}

extern "C" mb_status mb_cuda_stripes_wavelet(const mb_op_call *call)
{
    const mb_array *sino = call->arrays[MB_STRIPES_WAVELET_SINO];
    const int rank = sino->shape.rank;
    if (mb_count(sino) == 0)
        return MB_STATUS_OK;
    const mb_wavelet_plan w =
        mb_wavelet_plan_make((const mb_stripes_wavelet_params *)call->params,
                             sino->shape.dims[rank - 2], sino->shape.dims[rank - 1]);
    const modes_group all = modes_group_of(call, mb_wavelet_modes(&w));
    const dim3 modes((unsigned)all.pad, 2);
    wavelet_tables<<<modes, WAVELET_THREADS, 0, mb_stream(call)>>>(
        w, all, (float *)all.p, (float *)all.q, (double *)call->slots[MB_STRIPES_WAVELET_CASCADE],
        mb_wavelet_cascade(&w));
    MB_LAUNCHED("wavelet_tables");
    const int64_t group =
        mb_modes_group(call->device, all.s.count, all.s.angles, all.s.columns, all.modes);
    for (int64_t first = 0; first < all.s.count; first += group) {
        const int64_t left = all.s.count - first;
        const modes_group g = modes_group_at(all, first, left < group ? left : group);
        MB_TRY(modes_run_project_many(call, g));
        MB_TRY(run_profiles(call, w, g));
        MB_TRY(modes_run_subtract_many(call, g, g.filtered));
    }
    return MB_STATUS_OK;
}
