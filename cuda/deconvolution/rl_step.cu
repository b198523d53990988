/*
** rl_step on CUDA. Fused, it has six launches over the grid: the rows of the estimate forward, to
** the working grid; along z and back, with the product, or the same by convolution along z; rows
** back, the ratio, rows forward; columns forward; along z and back; rows back and the update. Rows
** are changed between the transforms of their tile: in registers, or in shared memory where sums or
** a normalizer are wanted. Sums have a cell per tile of rows and are folded in a fixed order, so
** that it does not matter which block took which tile. Other sizes use the four operators.
*/
#include "shared/fft_filter.h"
#include "shared/fft_planes.cuh"
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_rl_step.h"

extern "C" mb_status mb_cuda_apply_otf(const mb_op_call *call);
extern "C" mb_status mb_cuda_rl_ratio(const mb_op_call *call);
extern "C" mb_status mb_cuda_rl_update(const mb_op_call *call);

/* Samples of a row are taken in groups of four, with all loads of FOURS groups before the first
** store, as in MB_BATCH_LOOP. */
#define FOURS 4
/* Samples that stay in registers are taken in pairs, with all loads of PAIRS pairs before the first
** store. */
#define PAIRS 4

/* The thread's row in a tile, and its place in shared memory. */
template <class R>
struct row_place {
    int t, plane, y;
    int64_t row;
    float2 *spectrum, *shared;
    __device__ __forceinline__ row_place(const mb_fft_planes_job &job, int plane_, int tile,
                                         float2 *memory)
    {
        const int h = threadIdx.x / R::cut::T;
        t = threadIdx.x % R::cut::T;
        plane = plane_;
        y = tile * R::height + h;
        row = (int64_t)plane * job.rows + y;
        spectrum = mb_fft_plane(job, plane) + (int64_t)y * R::cut::N;
        shared = memory + h * R::cut::room;
    }
};

/* Asks the second-level cache for a row that the tile needs after its transform, and then no
** more. */
template <class R>
__device__ static __forceinline__ void expect_row(const void *row, int64_t bytes, int t)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    const uintptr_t first = ((uintptr_t)row + 15) / 16 * 16,
                    end = ((uintptr_t)row + (uintptr_t)bytes) / 16 * 16;
    if (t == 0 && first < end)
        asm volatile("cp.async.bulk.prefetch.L2.global.L2::cache_hint [%0], %1, %2;" ::"l"(first),
                     "r"((unsigned)(end - first)), "l"(mb_fft_policy<MB_FFT_KEEP_SHORT>::value));
#else
    for (int64_t at = 128 * t; at < bytes; at += 128 * R::cut::T)
        asm volatile("prefetch.global.L2 [%0];" ::"l"((const char *)row + at));
#endif
}

struct estimate_rows {
    static constexpr bool back = false;
    static constexpr mb_fft_keep keep = MB_FFT_KEEP_LONG;
    const float2 *estimate;

    template <class R>
    __device__ __forceinline__ void tile(const mb_fft_planes_job &job, int plane, int tile,
                                         const float2 *table, const float2 *root,
                                         float2 *memory) const
    {
        const row_place<R> at(job, plane, tile, memory);
        const float2 *from = estimate + at.row * R::cut::N + at.t;
        float2 v[R::cut::E];
#pragma unroll
        for (int j = 0; j < R::cut::E; j++)
            v[j] = mb_fft_load<MB_FFT_KEEP_SHORT>(from + R::cut::T * j);
        R::template forth<MB_FFT_KEEP_LONG>(v, at.spectrum, at.t, table, root, at.shared);
    }
};

/* Four samples from x on in a row of nx, 0 beyond the row. `whole`: rows consist of whole groups of
** four. */
template <class T, class V>
__device__ static __forceinline__ float4 load_four(const T *row, int64_t x, int64_t nx, bool whole)
{
    if (whole && x < nx) {
        const V v = __ldcs((const V *)(row + x));
        return make_float4((float)v.x, (float)v.y, (float)v.z, (float)v.w);
    }
    return make_float4(x < nx ? (float)row[x] : 0, x + 1 < nx ? (float)row[x + 1] : 0,
                       x + 2 < nx ? (float)row[x + 2] : 0, x + 3 < nx ? (float)row[x + 3] : 0);
}

struct ratio_rows {
    static constexpr bool back = true; /* then forward along y: mb_fft_plane_columns */
    static constexpr mb_fft_keep keep = MB_FFT_KEEP_LONG;
    mb_grid3 extents; /* of the image */
    const void *image;
    const float *weights;
    int dtype;
    bool whole;
    float eps, under;
    double *cells; /* NULL without metrics */

    __device__ __forceinline__ float4 sample(int64_t row, int64_t x) const
    {
        const int64_t nx = extents.v[2];
        if (dtype == MB_U8)
            return load_four<uint8_t, uchar4>((const uint8_t *)image + row * nx, x, nx, whole);
        if (dtype == MB_U16)
            return load_four<uint16_t, ushort4>((const uint16_t *)image + row * nx, x, nx, whole);
        return load_four<float, float4>((const float *)image + row * nx, x, nx, whole);
    }
    __device__ __forceinline__ float quotient(float blurred, float value, float weight,
                                              bool inside) const
    {
        blurred += under;
        return inside ? mb_grid_counts(value) / (blurred > eps ? blurred : eps) * weight : 0;
    }
    __device__ __forceinline__ float one(float blurred, float value, float weight, bool inside,
                                         double *divergence, double *sum) const
    {
        if (cells && inside) {
            const float b = blurred + under;
            *divergence += weight * mb_grid_divergence(mb_grid_counts(value), b > eps ? b : eps);
            *sum += b;
        }
        return quotient(blurred, value, weight, inside);
    }
    /* Samples x and x + 1 of an image row of nx, 0 beyond it. */
    __device__ __forceinline__ float2 pair(int64_t row, int64_t x, int64_t nx) const
    {
        const int64_t i = row * nx + x;
        if (x >= nx)
            return make_float2(0, 0);
        if (dtype == MB_U8) {
            const uchar2 v = __ldcs((const uchar2 *)((const uint8_t *)image + i));
            return make_float2(v.x, v.y);
        }
        if (dtype == MB_U16) {
            const ushort2 v = __ldcs((const ushort2 *)((const uint16_t *)image + i));
            return make_float2(v.x, v.y);
        }
        return __ldcs((const float2 *)((const float *)image + i));
    }
    /* Without sums, and with rows of whole groups, where the samples are: in registers. */
    template <class R>
    __device__ __forceinline__ void divide(float2 (&v)[R::cut::E], int t, int64_t row,
                                           int64_t nx) const
    {
        constexpr int K = R::cut::E < PAIRS ? R::cut::E : PAIRS;
#pragma unroll
        for (int j = 0; j < R::cut::E; j += K) {
            float2 value[K], weight[K];
#pragma unroll
            for (int k = 0; k < K; k++) {
                const int64_t x = 2 * (t + R::cut::T * (j + k));
                value[k] = pair(row, x, nx);
                weight[k] = weights && x < nx ? __ldcs((const float2 *)(weights + row * nx + x))
                                              : make_float2(1, 1);
            }
#pragma unroll
            for (int k = 0; k < K; k++) {
                const bool inside = 2 * (t + R::cut::T * (j + k)) < nx;
                float2 &b = v[j + k];
                b.x = quotient(b.x, value[k].x, weight[k].x, inside);
                b.y = quotient(b.y, value[k].y, weight[k].y, inside);
            }
        }
    }
    template <class R>
    __device__ __forceinline__ void tile(const mb_fft_planes_job &job, int plane, int tile,
                                         const float2 *table, const float2 *root,
                                         float2 *memory) const
    {
        const row_place<R> at(job, plane, tile, memory);
        const bool outside = plane >= extents.v[0] || at.y >= extents.v[1];
        const int64_t row = plane * extents.v[1] + at.y, nx = outside ? 0 : extents.v[2];
        const int bytes = dtype == MB_U8 ? 1 : dtype == MB_U16 ? 2 : 4;
        float2 v[R::cut::E];
        expect_row<R>((const char *)image + row * extents.v[2] * bytes, nx * bytes, at.t);
        R::back(v, at.spectrum, at.t, table, root, at.shared);
        if (!cells && whole) {
            divide<R>(v, at.t, row, nx);
            R::template forth<MB_FFT_KEEP_SHORT>(v, at.spectrum, at.t, table, root, at.shared);
            return;
        }
        R::put(v, at.t, at.shared);
        double divergence = 0, sum = 0;
#pragma unroll 1
        for (int q = at.t; q < R::cut::N / 2; q += FOURS * R::cut::T) {
            float4 value[FOURS], weight[FOURS];
#pragma unroll
            for (int k = 0; k < FOURS; k++) {
                const int64_t x = 4 * (q + k * R::cut::T);
                value[k] = outside ? make_float4(0, 0, 0, 0) : sample(row, x);
                weight[k] = outside || !weights
                                ? make_float4(1, 1, 1, 1)
                                : load_four<float, float4>(weights + row * nx, x, nx, whole);
            }
#pragma unroll
            for (int k = 0; k < FOURS; k++) {
                const int64_t x = 4 * (q + k * R::cut::T);
                float4 *to = (float4 *)at.shared + q + k * R::cut::T, b = *to;
                b.x = one(b.x, value[k].x, weight[k].x, x < nx, &divergence, &sum);
                b.y = one(b.y, value[k].y, weight[k].y, x + 1 < nx, &divergence, &sum);
                b.z = one(b.z, value[k].z, weight[k].z, x + 2 < nx, &divergence, &sum);
                b.w = one(b.w, value[k].w, weight[k].w, x + 3 < nx, &divergence, &sum);
                *to = b;
            }
        }
        R::get(v, at.t, at.shared);
        R::template forth<MB_FFT_KEEP_SHORT>(v, at.spectrum, at.t, table, root, at.shared);
        if (!cells)
            return;
        divergence = mb_block_fold(divergence, mb_fold_sum());
        sum = mb_block_fold(sum, mb_fold_sum());
        if (threadIdx.x == 0) {
            double *cell = cells + 2 * ((int64_t)plane * job.row_tiles + tile);
            cell[0] = divergence;
            cell[1] = sum;
        }
    }
};

/* Not inlined, because its eight look-ups would be repeated for every sample of a batch. */
__device__ static __noinline__ double weight_at(const mb_rl_normalizer &n,
                                                const mb_rl_normalizer_row &rule, int64_t x)
{
    return mb_rl_normalizer_at(&n, &rule, x);
}

struct update_rows {
    static constexpr bool back = true;
    static constexpr mb_fft_keep keep = MB_FFT_KEEP_ANY; /* beside the estimate's lines */
    mb_rl_normalizer normalizer;
    float *estimate, *gradient; /* gradient: NULL if absent */
    float least;
    double *cells; /* NULL without metrics */

    __device__ __forceinline__ float one(float old, float correction,
                                         const mb_rl_normalizer_row &rule, int64_t x) const
    {
        float value = old * correction;
        if (normalizer.table || normalizer.values) {
            const double weight = weight_at(normalizer, rule, x);
            value = weight > normalizer.floor ? (float)((double)value / weight) : least;
        }
        return value > least ? value : least;
    }
    /* The spectrum has been read for the last time: the cache need not write it to memory. */
    template <class R>
    __device__ __forceinline__ void forget(const row_place<R> &at, const float2 *data) const
    {
        mb_fft_sync<R::WARP>();
        if ((uintptr_t)data % 128 == 0)
            for (int i = 16 * at.t; i < R::cut::N; i += 16 * R::cut::T)
                asm volatile("discard.global.L2 [%0], 128;" ::"l"(at.spectrum + i) : "memory");
    }
    /* The estimate times the correction, where neither sums nor a normalizer are wanted. */
    template <class R>
    __device__ __forceinline__ void multiply(const float2 (&v)[R::cut::E], float2 *line,
                                             int t) const
    {
        constexpr int K = R::cut::E < PAIRS ? R::cut::E : PAIRS;
        float2 *to = line + t;
#pragma unroll
        for (int j = 0; j < R::cut::E; j += K) {
            float2 old[K];
#pragma unroll
            for (int k = 0; k < K; k++)
                old[k] = __ldcs(to + R::cut::T * (j + k));
#pragma unroll
            for (int k = 0; k < K; k++) {
                const float x = old[k].x * v[j + k].x, y = old[k].y * v[j + k].y;
                __stcs(to + R::cut::T * (j + k),
                       make_float2(x > least ? x : least, y > least ? y : least));
            }
        }
    }
    __device__ __forceinline__ void add(double (&sums)[MB_RL_UPDATE_SUMS], float value,
                                        float change, float before) const
    {
        sums[0] += value;
        sums[1] += (double)change * change;
        sums[2] += (double)value * value;
        sums[3] += (double)change * before;
        sums[4] += (double)before * before;
    }
    template <class R>
    __device__ __forceinline__ void tile(const mb_fft_planes_job &job, int plane, int tile,
                                         const float2 *table, const float2 *root,
                                         float2 *memory) const
    {
        const row_place<R> at(job, plane, tile, memory);
        float4 *line = (float4 *)estimate + at.row * (R::cut::N / 2),
               *steps = (float4 *)gradient + at.row * (R::cut::N / 2);
        {
            float2 v[R::cut::E];
            expect_row<R>(line, R::cut::N * sizeof(float2), at.t);
            R::back(v, at.spectrum, at.t, table, root, at.shared);
            forget<R>(at, job.data);
            if (!cells && !gradient && !normalizer.table && !normalizer.values) {
                multiply<R>(v, (float2 *)line, at.t);
                return;
            }
            R::put(v, at.t, at.shared);
        }
        const mb_rl_normalizer_row rule = mb_rl_normalizer_row_of(&normalizer, at.row);
        double sums[MB_RL_UPDATE_SUMS] = {0, 0, 0, 0, 0};
#pragma unroll 1
        for (int q = at.t; q < R::cut::N / 2; q += FOURS * R::cut::T) {
            float4 old[FOURS], before[FOURS];
#pragma unroll
            for (int k = 0; k < FOURS; k++) {
                old[k] = __ldcs(line + q + k * R::cut::T);
                before[k] = gradient ? __ldcs(steps + q + k * R::cut::T) : make_float4(0, 0, 0, 0);
            }
#pragma unroll
            for (int k = 0; k < FOURS; k++) {
                const int i = q + k * R::cut::T;
                const float4 c = ((const float4 *)at.shared)[i], o = old[k], b = before[k];
                const float4 v =
                    make_float4(one(o.x, c.x, rule, 4 * i), one(o.y, c.y, rule, 4 * i + 1),
                                one(o.z, c.z, rule, 4 * i + 2), one(o.w, c.w, rule, 4 * i + 3));
                const float4 d = make_float4(v.x - o.x, v.y - o.y, v.z - o.z, v.w - o.w);
                __stcs(line + i, v);
                if (gradient)
                    __stcs(steps + i, d);
                if (cells) {
                    add(sums, v.x, d.x, b.x);
                    add(sums, v.y, d.y, b.y);
                    add(sums, v.z, d.z, b.z);
                    add(sums, v.w, d.w, b.w);
                }
            }
        }
        if (!cells)
            return;
        double *cell = cells + MB_RL_UPDATE_SUMS * ((int64_t)plane * job.row_tiles + tile);
#pragma unroll
        for (int i = 0; i < MB_RL_UPDATE_SUMS; i++) {
            const double sum = mb_block_fold(sums[i], mb_fold_sum());
            if (threadIdx.x == 0)
                cell[i] = sum;
        }
    }
};

static bool in_fours(const void *data, int bytes)
{
    return (uintptr_t)data % (uintptr_t)(4 * bytes) == 0;
}

static mb_status fold(const mb_op_call *call, const double *cells, int64_t count, int width,
                      int columns, double *out)
{
    mb_fold_cells<<<(unsigned)columns, MB_THREADS, 0, mb_stream(call)>>>(cells, (int)count, width,
                                                                         out);
    MB_LAUNCHED("mb_fold_cells");
    return MB_STATUS_OK;
}

static mb_status fused(const mb_op_call *call, const int64_t n[3])
{
    const mb_rl_step_params *p = (const mb_rl_step_params *)call->params;
    const mb_device_facts *facts = &call->device->facts;
    const mb_array *estimate = call->arrays[MB_RL_STEP_ESTIMATE],
                   *image = call->arrays[MB_RL_STEP_IMAGE], *otf = call->arrays[MB_RL_STEP_OTF],
                   *weights = call->arrays[MB_RL_STEP_WEIGHTS],
                   *gradient = call->arrays[MB_RL_STEP_GRADIENT],
                   *metric = call->arrays[MB_RL_STEP_METRIC];
    float *work = (float *)call->arrays[MB_RL_STEP_WORK]->data;
    unsigned *counters = (unsigned *)call->slots[MB_APPLY_OTF_COUNTERS];
    const uint64_t bytes = 4 * (uint64_t)(MB_APPLY_OTF_DONE + n[0]);
    const int64_t cells = mb_apply_otf_row_tiles(facts, n, true);
    if (!in_fours(estimate->data, 4) || (gradient && !in_fours(gradient->data, 4)))
        return mb_cuda_core->fail(
            MB_STATUS_ARGUMENT, "estimate",
            "estimate is a view that does not begin at a multiple of 16 bytes; copy it first");

    ratio_rows ratio = {};
    mb_grid_dims(&image->shape, ratio.extents.v);
    ratio.image = image->data;
    ratio.weights = weights ? (const float *)weights->data : NULL;
    ratio.dtype = image->dtype;
    ratio.whole = ratio.extents.v[2] % 4 == 0 &&
                  in_fours(image->data, (int)mb_cuda_dtype_bytes(image->dtype)) &&
                  (!weights || in_fours(weights->data, 4));
    ratio.eps = (float)p->eps;
    ratio.under = (float)p->background;
    ratio.cells = (double *)call->slots[MB_RL_STEP_RATIO_PARTIALS];
    update_rows update = {};
    update.normalizer =
        mb_rl_normalizer_make(&p->normalizer, &estimate->shape, call->arrays[MB_RL_STEP_TABLE],
                              call->arrays[MB_RL_STEP_NORMALIZER]);
    update.estimate = (float *)estimate->data;
    update.gradient = gradient ? (float *)gradient->data : NULL;
    update.least = (float)p->min;
    update.cells = (double *)call->slots[MB_RL_STEP_UPDATE_PARTIALS];

    const estimate_rows rows = {(const float2 *)estimate->data};
    MB_TRY(mb_fft_planes(call, work, n, counters, bytes, rows));
    MB_TRY(mb_cuda_fft_filter(call, work, otf, n, 1, false));
    MB_TRY(mb_fft_planes(call, work, n, counters, bytes, ratio));
    MB_TRY(mb_fft_plane_columns<false>(call, work, n));
    if (ratio.cells)
        MB_TRY(fold(call, ratio.cells, cells, MB_RL_STEP_MISFIT, MB_RL_STEP_MISFIT,
                    (double *)metric->data));
    MB_TRY(mb_cuda_fft_filter(call, work, otf, n, 1, true));
    MB_TRY(mb_fft_planes(call, work, n, counters, bytes, update));
    if (update.cells)
        MB_TRY(fold(call, update.cells, cells, MB_RL_UPDATE_SUMS,
                    (int)metric->shape.dims[0] - MB_RL_STEP_MISFIT,
                    (double *)metric->data + MB_RL_STEP_MISFIT));
    return MB_STATUS_OK;
}

extern "C" mb_status mb_cuda_rl_step(const mb_op_call *call)
{
    const mb_rl_step_params *p = (const mb_rl_step_params *)call->params;
    const mb_array *metric = call->arrays[MB_RL_STEP_METRIC];
    int64_t n[3];
    mb_grid_dims(&call->arrays[MB_RL_STEP_ESTIMATE]->shape, n);
    if (metric && !p->metrics)
        MB_CUDA(
            cudaMemsetAsync(metric->data, 0, MB_RL_STEP_MISFIT * sizeof(double), mb_stream(call)));
    if (mb_apply_otf_fused(&call->device->facts, n))
        return fused(call, n);
    mb_rl_step_parts parts;
    mb_array metrics[2];
    mb_op_call calls[4];
    mb_rl_step_split(call, &parts, metrics, calls);
    MB_TRY(mb_cuda_apply_otf(&calls[0]));
    MB_TRY(mb_cuda_rl_ratio(&calls[1]));
    MB_TRY(mb_cuda_apply_otf(&calls[2]));
    return mb_cuda_rl_update(&calls[3]);
}
