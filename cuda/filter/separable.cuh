/*
** Separable filters on CUDA: one pass along an axis, from one array to another. Neighboring
** threads take neighboring elements for any axis. Weighted sums: a thread makes eight elements
** along the axis, so that each loaded value is used for all of them; along the last axis it loads
** from a copy of the row's part in shared memory. Means: a thread computes running sums over a
** segment of a line; along the last axis, a warp scans the segment 32 elements at a time.
** mb_separable_lines finds the lines of the input (`source`), and `store` finds those of the
** output: store.line(o, c) is a functor (index in the line, value).
*/
#ifndef MB_CUDA_SEPARABLE_CUH
#define MB_CUDA_SEPARABLE_CUH

#include "shared/cuda_launch.cuh"
#include "ops/filter/separable.h"

__device__ static inline int64_t mb_separable_first(const mb_separable_lines &lines, int64_t o,
                                                    int64_t c)
{
    return mb_separable_offset(&lines.outer, o) + mb_separable_offset(&lines.inner, c);
}

/* Results of a pass. */
struct mb_separable_store {
    float *to;
    mb_separable_lines lines;
    struct place {
        float *at;
        int64_t step;
        __device__ void operator()(int64_t i, float v) const { at[i * step] = v; }
    };
    __device__ place line(int64_t o, int64_t c) const
    {
        return {to + mb_separable_first(lines, o, c), lines.step};
    }
};

/* The input of a pass. */
template <class T>
struct mb_separable_source {
    const T *from;
    mb_separable_lines lines;
    mb_separable_pass p;
    int mode;
    float value;
    __device__ const T *line(int64_t o, int64_t c) const
    {
        return from + mb_separable_first(lines, o, c);
    }
    /* Element i of a line of n elements; i may be beyond the ends. `at` is the first element. */
    __device__ float element(const T *at, int64_t i) const
    {
        if (i < 0 || i >= p.n) {
            i = mb_pad_source(mode, i, p.n);
            if (i < 0)
                return value;
        }
        return (float)at[i * lines.step];
    }
};

/* Weighted sums of R neighbors: load(k) is the value `radius - k` before the first of them. A value
** that a sum does not need (it may be NaN, or not exist) does not enter that sum. The weights move
** by one from value to value, which costs nothing in an unrolled loop. */
template <int R, class Load>
__device__ static inline void mb_separable_sums(float (&sum)[R], const float *__restrict__ weights,
                                                int radius, Load load)
{
    const int taps = 2 * radius + 1;
    float w[R];
#pragma unroll
    for (int j = 0; j < R; j++)
        sum[j] = w[j] = 0;
    auto take = [&](int k, bool all) {
        const float v = load(k);
#pragma unroll
        for (int j = R - 1; j > 0; j--)
            w[j] = w[j - 1];
        w[0] = weights[k - radius];
#pragma unroll
        for (int j = 0; j < R; j++)
            if (all || (k >= j && k - j < taps))
                sum[j] += w[j] * v;
    };
#pragma unroll
    for (int k = 0; k < R - 1; k++)
        take(k, false);
#pragma unroll R
    for (int k = R - 1; k < taps; k++)
        take(k, true);
    for (int k = taps > R - 1 ? taps : R - 1; k < taps + R - 1; k++)
        take(k, false);
}

/* R elements along the axis per thread: axes other than the last, or R = 1. */
template <int R, class T, class Store>
__global__ void __launch_bounds__(MB_THREADS)
    mb_separable_weigh(const mb_separable_source<T> source, const float *__restrict__ weights,
                       Store store)
{
    const mb_separable_pass &p = source.p;
    const int64_t parts = (p.n + R - 1) / R, count = p.outer * parts * p.inner;
    const int64_t step = source.lines.step;
    const int radius = (int)p.before;
    MB_GRID_LOOP(t, count)
    {
        const int64_t c = t % p.inner, rest = t / p.inner, o = rest / parts, i = rest % parts * R;
        const T *line = source.line(o, c);
        const auto to = store.line(o, c);
        float sum[R];
        if (i >= radius && i + R + radius <= p.n) {
            const T *__restrict__ at = line + (i - radius) * step;
            mb_separable_sums<R>(sum, weights, radius, [&](int k) { return (float)at[k * step]; });
        } else {
            mb_separable_sums<R>(sum, weights, radius,
                                 [&](int k) { return source.element(line, i - radius + k); });
        }
#pragma unroll
        for (int j = 0; j < R; j++)
            if (i + j < p.n)
                to(i + j, sum[j]);
    }
}

/* The last axis: a warp makes MB_SEPARABLE_TILE elements of a row from a copy of them and their
** neighbors in shared memory. Every eight elements are followed by a gap, so that lanes eight
** elements apart use different banks. */
#define MB_SEPARABLE_TILE (32 * MB_SEPARABLE_EDGE)
#define MB_SEPARABLE_SHARED (48 << 10)

__host__ __device__ static inline int mb_separable_place(int i)
{
    return i + i / MB_SEPARABLE_EDGE;
}

/* Bytes of a block's shared memory. */
static inline int64_t mb_separable_tile_bytes(int64_t radius)
{
    const int64_t elements = MB_SEPARABLE_TILE + 2 * radius + MB_SEPARABLE_EDGE;
    return (elements + elements / MB_SEPARABLE_EDGE + 1) * (MB_THREADS / 32) *
           (int64_t)sizeof(float);
}

template <class T, class Store>
__global__ void __launch_bounds__(MB_THREADS)
    mb_separable_weigh_rows(const mb_separable_source<T> source, const float *__restrict__ weights,
                            int floats, Store store)
{
    extern __shared__ float shared[];
    constexpr int R = MB_SEPARABLE_EDGE;
    const mb_separable_pass &p = source.p;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, radius = (int)p.before;
    const int64_t parts = (p.n + MB_SEPARABLE_TILE - 1) / MB_SEPARABLE_TILE,
                  count = p.outer * parts;
    float *tile = shared + warp * floats;
    for (int64_t t = blockIdx.x * (int64_t)(MB_THREADS / 32) + warp; t < count;
         t += (int64_t)gridDim.x * (MB_THREADS / 32)) {
        const int64_t first = t % parts * MB_SEPARABLE_TILE;
        const int made = p.n - first < MB_SEPARABLE_TILE ? (int)(p.n - first) : MB_SEPARABLE_TILE;
        const T *line = source.line(t / parts, 0);
        const auto to = store.line(t / parts, 0);
        const bool inside = first >= radius && first + made + radius <= p.n;
        __syncwarp(); /* the previous tile has been stored */
        for (int k = lane; k < made + 2 * radius; k += 32)
            tile[mb_separable_place(k)] =
                inside ? (float)line[(first - radius + k) * source.lines.step]
                       : source.element(line, first - radius + k);
        __syncwarp();
        float sum[R];
        if (R * lane < made)
            mb_separable_sums<R>(sum, weights, radius,
                                 [&](int k) { return tile[mb_separable_place(R * lane + k)]; });
        __syncwarp();
#pragma unroll
        for (int j = 0; j < R; j++)
            if (R * lane + j < made)
                tile[mb_separable_place(R * lane + j)] = sum[j];
        __syncwarp();
        for (int k = lane; k < made; k += 32)
            to(first + k, tile[mb_separable_place(k)]);
    }
}

/* A segment of a line per thread: axes other than the last. */
template <class T, class Store>
__global__ void __launch_bounds__(MB_THREADS)
    mb_separable_slide(const mb_separable_source<T> source, int64_t segment, Store store)
{
    const mb_separable_pass &p = source.p;
    const int64_t parts = (p.n + segment - 1) / segment, count = p.outer * parts * p.inner;
    const double inverse = 1 / (double)(p.before + 1 + p.after);
    MB_GRID_LOOP(t, count)
    {
        const int64_t c = t % p.inner, rest = t / p.inner, o = rest / parts;
        const int64_t first = rest % parts * segment;
        const int64_t last = first + segment < p.n ? first + segment : p.n;
        const T *line = source.line(o, c);
        const auto to = store.line(o, c);
        double sum = 0;
        for (int64_t k = first - p.before; k < first + p.after; k++)
            sum += source.element(line, k);
        for (int64_t i = first; i < last; i++) {
            sum += source.element(line, i + p.after);
            to(i, (float)(sum * inverse));
            sum -= source.element(line, i - p.before);
        }
    }
}

/* A segment of a row per warp: the last axis. */
template <class T, class Store>
__global__ void __launch_bounds__(MB_THREADS)
    mb_separable_scan(const mb_separable_source<T> source, int64_t segment, Store store)
{
    const mb_separable_pass &p = source.p;
    const int64_t parts = (p.n + segment - 1) / segment, count = p.outer * parts;
    const double inverse = 1 / (double)(p.before + 1 + p.after);
    const int lane = threadIdx.x & 31;
    for (int64_t t = blockIdx.x * (int64_t)(MB_THREADS / 32) + (threadIdx.x >> 5); t < count;
         t += (int64_t)gridDim.x * (MB_THREADS / 32)) {
        const int64_t first = t % parts * segment;
        const int64_t last = first + segment < p.n ? first + segment : p.n;
        const T *line = source.line(t / parts, 0);
        const auto to = store.line(t / parts, 0);
        double sum = 0; /* of the window of element `first` - 1 */
        for (int64_t k = first - p.before - 1 + lane; k < first + p.after; k += 32)
            sum += source.element(line, k);
#pragma unroll
        for (int step = 16; step > 0; step >>= 1)
            sum += __shfl_xor_sync(0xffffffffu, sum, step);
        for (int64_t i = first + lane; i - lane < last; i += 32) {
            double change = i < last ? (double)source.element(line, i + p.after) -
                                           source.element(line, i - p.before - 1)
                                     : 0;
#pragma unroll
            for (int step = 1; step < 32; step <<= 1) {
                const double other = __shfl_up_sync(0xffffffffu, change, step);
                change += lane >= step ? other : 0;
            }
            if (i < last)
                to(i, (float)((sum + change) * inverse));
            sum += __shfl_sync(0xffffffffu, change, 31);
        }
    }
}

template <class T, class Store>
static mb_status mb_separable_launch(const mb_op_call *call, const mb_separable_source<T> &source,
                                     const float *weights, Store store)
{
    const mb_separable_pass &p = source.p;
    const cudaStream_t stream = mb_stream(call);
    const int64_t lines = p.outer * p.inner, count = lines * p.n;
    const int64_t bytes = mb_separable_tile_bytes(p.before);
    if (p.sigma > 0 && p.inner == 1 && bytes <= MB_SEPARABLE_SHARED) {
        const int64_t tiles = (p.n + MB_SEPARABLE_TILE - 1) / MB_SEPARABLE_TILE;
        mb_separable_weigh_rows<<<mb_blocks(call, 32 * lines * tiles, MB_THREADS), MB_THREADS,
                                  (size_t)bytes, stream>>>(
            source, weights + p.table, (int)(bytes / (MB_THREADS / 32) / (int64_t)sizeof(float)),
            store);
        MB_LAUNCHED("mb_separable_weigh_rows");
    } else if (p.sigma > 0 && p.inner == 1) {
        mb_separable_weigh<1><<<mb_blocks(call, count, MB_THREADS), MB_THREADS, 0, stream>>>(
            source, weights + p.table, store);
        MB_LAUNCHED("mb_separable_weigh");
    } else if (p.sigma > 0) {
        const int64_t parts = (p.n + MB_SEPARABLE_EDGE - 1) / MB_SEPARABLE_EDGE;
        mb_separable_weigh<MB_SEPARABLE_EDGE>
            <<<mb_blocks(call, lines * parts, MB_THREADS), MB_THREADS, 0, stream>>>(
                source, weights + p.table, store);
        MB_LAUNCHED("mb_separable_weigh");
    } else {
        const int64_t segment = mb_separable_segment(p.before + 1 + p.after, p.last);
        const int64_t parts = (p.n + segment - 1) / segment;
        if (p.last) {
            mb_separable_scan<<<mb_blocks(call, 32 * lines * parts, MB_THREADS), MB_THREADS, 0,
                                stream>>>(source, segment, store);
            MB_LAUNCHED("mb_separable_scan");
        } else {
            mb_separable_slide<<<mb_blocks(call, lines * parts, MB_THREADS), MB_THREADS, 0,
                                 stream>>>(source, segment, store);
            MB_LAUNCHED("mb_separable_slide");
        }
    }
    return MB_STATUS_OK;
}

/* The passes of a call: their first input, and where the next one reads. */
struct mb_separable_passes {
    const mb_op_call *call;
    const mb_separable *s;
    const mb_array *a;
    const float *weights;
    const float *from;      /* dense scratch, or NULL: the next pass reads `a` */
    const int64_t *strides; /* of `from`; NULL: dense */
};

template <class T>
static mb_separable_source<T> mb_separable_reads(const mb_separable_passes *passes, int number,
                                                 const void *from, const int64_t *strides)
{
    const mb_separable_pass &p = passes->s->pass[number];
    return {(const T *)from, mb_separable_lines_of(&p, &passes->a->shape, strides), p,
            passes->s->mode, passes->s->value};
}

/* Pass `number`, from `a` with any of the three element types, or from the result of the previous
** pass. */
template <class Store>
static mb_status mb_separable_pass_to(const mb_separable_passes *passes, int number, Store store)
{
    const mb_array *a = passes->a;
    const mb_op_call *call = passes->call;
    if (passes->from)
        return mb_separable_launch(
            call, mb_separable_reads<float>(passes, number, passes->from, passes->strides),
            passes->weights, store);
    switch (a->dtype) {
    case MB_U8:
        return mb_separable_launch(call,
                                   mb_separable_reads<uint8_t>(passes, number, a->data, a->strides),
                                   passes->weights, store);
    case MB_U16:
        return mb_separable_launch(
            call, mb_separable_reads<uint16_t>(passes, number, a->data, a->strides),
            passes->weights, store);
    default:
        return mb_separable_launch(call,
                                   mb_separable_reads<float>(passes, number, a->data, a->strides),
                                   passes->weights, store);
    }
}

/* The store of a pass into an array with these strides (NULL: dense). */
static inline mb_separable_store mb_separable_into(const mb_separable_passes *passes, int number,
                                                   float *to, const int64_t *strides)
{
    return {to, mb_separable_lines_of(&passes->s->pass[number], &passes->a->shape, strides)};
}

/* Uploads the table of weights into its slot. */
static inline mb_status mb_separable_upload(const mb_op_call *call, const mb_separable *s,
                                            float *table)
{
    float piece[1024];
    for (int number = 0; number < s->count; number++) {
        const mb_separable_pass &p = s->pass[number];
        if (p.sigma <= 0)
            continue;
        const double sum = mb_separable_sum(&p);
        const int64_t edge = p.before + MB_SEPARABLE_EDGE;
        for (int64_t first = -edge; first <= edge; first += 1024) {
            const int64_t n = edge - first + 1 < 1024 ? edge - first + 1 : 1024;
            for (int64_t k = 0; k < n; k++)
                piece[k] = mb_separable_weight(&p, sum, first + k);
            MB_TRY(mb_upload(call, table + p.table + first, piece, (uint64_t)n * sizeof *piece));
        }
    }
    return MB_STATUS_OK;
}

/* All passes except the last alternate between `a`, dense scratch, and `b` with these strides
** (NULL: dense), so that the last pass, which the caller makes, does not read from `b`. */
static inline mb_status mb_separable_but_last(mb_separable_passes *passes, float *a, float *b,
                                              const int64_t *strides)
{
    const int count = passes->s->count;
    for (int number = 0; number + 1 < count; number++) {
        const bool second = (count - number) % 2 != 0;
        float *to = second ? b : a;
        const int64_t *layout = second ? strides : NULL;
        MB_TRY(mb_separable_pass_to(passes, number, mb_separable_into(passes, number, to, layout)));
        passes->from = to;
        passes->strides = layout;
    }
    return MB_STATUS_OK;
}

/* All passes from `a` to the result. */
static inline mb_status mb_separable_all(mb_separable_passes *passes, float *scratch,
                                         const mb_array *result)
{
    const int last = passes->s->count - 1;
    float *to = (float *)result->data;
    MB_TRY(mb_separable_but_last(passes, scratch, to, result->strides));
    return mb_separable_pass_to(passes, last, mb_separable_into(passes, last, to, result->strides));
}

#endif
