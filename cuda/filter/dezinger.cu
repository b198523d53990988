/*
** dezinger on CUDA. A value stays if more than half of its window lies within reach of it, for then
** the median does, too: one subtraction, comparison and addition for each neighbor. Only the rest
** get their exact median, and the rule decides. Planes stream through shared memory, the next one
** while one is worked on; a thread has four neighboring columns. Windows of other extents than 3, 5
** and 7 look at the array directly.
*/
#include "filter/median_window.cuh"
#include "ops/filter/op_dezinger.h"

struct dezinger_rule {
    float threshold;
    float above;  /* the next number above it */
    float narrow; /* relative: a part of the value so that the limit of the median is not less */
    int relative, which;
    mb_median_part part;
    unsigned long long *tally;
};

static dezinger_rule rule_of(const mb_op_call *call)
{
    const mb_dezinger_params *p = (const mb_dezinger_params *)call->params;
    dezinger_rule rule = {};
    rule.threshold = (float)p->threshold;
    rule.above = nextafterf(rule.threshold, INFINITY);
    /* |v - m| <= d and d = t |v| / (1 + t) give |v - m| <= t |m|; a little less for rounding. */
    rule.narrow = (float)(p->threshold / (1 + p->threshold) * (1 - 1e-6));
    rule.relative = p->relative;
    rule.which = p->which;
    rule.part = mb_median_part_of(&p->counted, &call->arrays[MB_DEZINGER_A]->shape);
    rule.tally = (unsigned long long *)call->slots[MB_DEZINGER_TALLY];
    return rule;
}

/* Neighbors that are nearer than this are not too far. Never 0, so that equal values are near. */
__device__ static inline float reach_of(const dezinger_rule &r, float value)
{
    return r.relative ? fmaxf(r.narrow * fabsf(value), 1.4e-45f) : r.above;
}

__device__ static inline bool counted(const dezinger_rule &r, int64_t z, int64_t y, int64_t x)
{
    return z >= r.part.first[0] && z < r.part.end[0] && y >= r.part.first[1] && y < r.part.end[1] &&
           x >= r.part.first[2] && x < r.part.end[2];
}

__device__ static inline bool replaces(const dezinger_rule &r, float value, float median)
{
    return mb_dezinger_replaces(value, median, mb_dezinger_limit(median, r.threshold, r.relative),
                                r.which);
}

/* Adds the threads' numbers of replaced values. All threads must call it. */
__device__ static inline void add_replaced(unsigned replaced, unsigned long long *tally)
{
    const unsigned sum = mb_block_fold(replaced, mb_fold_sum());
    if (threadIdx.x == 0 && sum)
        atomicAdd(tally, (unsigned long long)sum);
}

/* ---- cubes and squares of 3, 5 and 7 ---- */

#define TILE_X 128

template <int KZ, int K>
struct tile {
    static constexpr int h = K / 2, count = KZ * K * K, rows = KZ == 7 ? 4 : 8;
    static constexpr int threads = TILE_X / 4 * rows,
                         blocks = KZ == 7 ? 5 : 4;           /* of a multiprocessor */
    static constexpr int px = TILE_X + 8, py = rows + 2 * h; /* four columns beside it: aligned */
    /* Rows of a window that settle most values: a few more values than half of it. */
    static constexpr int enough = (count / 2 + 1 + K - 1) / K;
    typedef float plane[py][px];
    static constexpr bool alone = count <= 27; /* a thread finds the median by itself */
};

struct dezinger_arrays {
    const void *in;
    void *out;
    int type;
    bool fours;     /* rows allow loads and stores of four elements */
    int64_t planes; /* that a block makes */
};

template <class T>
struct four_of;
template <>
struct four_of<float> {
    typedef float4 type;
};
template <>
struct four_of<uint16_t> {
    typedef ushort4 type;
};
template <>
struct four_of<uint8_t> {
    typedef uchar4 type;
};

template <class T>
__device__ static __forceinline__ float4 load_four(const void *in, int64_t at)
{
    const typename four_of<T>::type q = *(const typename four_of<T>::type *)((const T *)in + at);
    return make_float4(q.x, q.y, q.z, q.w);
}

__device__ static inline float value_at(const void *in, int type, int64_t at)
{
    return type == MB_F32   ? ((const float *)in)[at]
           : type == MB_U16 ? (float)((const uint16_t *)in)[at]
                            : (float)((const uint8_t *)in)[at];
}

/* Four elements at a place that the edges make, or that is not aligned. */
__device__ __noinline__ static float4 load_slowly(const void *in, int type, const median_array &a,
                                                  int64_t row, int64_t x)
{
    return make_float4(value_at(in, type, row + median_source(a, 2, x)),
                       value_at(in, type, row + median_source(a, 2, x + 1)),
                       value_at(in, type, row + median_source(a, 2, x + 2)),
                       value_at(in, type, row + median_source(a, 2, x + 3)));
}

/* What a thread loads of each plane of a tile: fours of columns. */
template <class G>
struct tile_loads {
    static constexpr int fours = G::px / 4, items = (G::py * fours + G::threads - 1) / G::threads;
    int64_t rows[items]; /* offset of the row in a plane */
    int64_t x0;
    unsigned quick; /* a bit for each: four elements of the array, aligned */
    float4 held[items];

    __device__ __forceinline__ tile_loads(const dezinger_arrays &arrays, const median_array &a,
                                          int64_t y0, int64_t first)
        : x0(first - 4), quick(0)
    {
#pragma unroll
        for (int k = 0; k < items; k++) {
            const int i = threadIdx.x + k * G::threads;
            const int64_t x = x0 + i % fours * 4;
            rows[k] = median_source(a, 1, y0 + i / fours - G::h) * a.row;
            quick |= (unsigned)(arrays.fours && x >= 0 && x + 3 < a.n[2]) << k;
        }
    }

    __device__ __forceinline__ void load(const dezinger_arrays &arrays, const median_array &a,
                                         int64_t z)
    {
        const int64_t plane = median_source(a, 0, z) * a.plane;
#pragma unroll
        for (int k = 0; k < items; k++) {
            const int i = threadIdx.x + k * G::threads;
            const int64_t x = x0 + i % fours * 4, at = plane + rows[k] + x;
            if (i >= G::py * fours)
                continue;
            if (!(quick >> k & 1))
                held[k] = load_slowly(arrays.in, arrays.type, a, plane + rows[k], x);
            else if (arrays.type == MB_F32)
                held[k] = load_four<float>(arrays.in, at);
            else if (arrays.type == MB_U16)
                held[k] = load_four<uint16_t>(arrays.in, at);
            else
                held[k] = load_four<uint8_t>(arrays.in, at);
        }
    }

    __device__ __forceinline__ void put(typename G::plane &plane) const
    {
#pragma unroll
        for (int k = 0; k < items; k++) {
            const int i = threadIdx.x + k * G::threads;
            if (i < G::py * fours)
                *(float4 *)&plane[i / fours][i % fours * 4] = held[k];
        }
    }
};

/* Counts, for the four values c, how many of one row of their windows lie below their reach: by the
** sign of a difference, which takes less than a comparison. */
template <int K>
__device__ static __forceinline__ void count_row(const float *s, const float (&c)[4],
                                                 const float (&reach)[4], int (&in)[4])
{
    constexpr int h = K / 2;
    float v[12];
    const float4 q = *(const float4 *)(s + 4);
    v[4] = q.x;
    v[5] = q.y;
    v[6] = q.z;
    v[7] = q.w;
    if (K == 3) {
        v[3] = s[3];
        v[8] = s[8];
    } else if (K == 5) {
        const float2 l = *(const float2 *)(s + 2), r = *(const float2 *)(s + 8);
        v[2] = l.x;
        v[3] = l.y;
        v[8] = r.x;
        v[9] = r.y;
    } else {
        const float4 l = *(const float4 *)s, r = *(const float4 *)(s + 8);
        v[1] = l.y;
        v[2] = l.z;
        v[3] = l.w;
        v[8] = r.x;
        v[9] = r.y;
        v[10] = r.z;
    }
#pragma unroll
    for (int o = 0; o < 4; o++)
#pragma unroll
        for (int dx = 0; dx < K; dx++)
            in[o] -= __float_as_int(fabsf(v[4 - h + o + dx] - c[o]) - reach[o]) >> 31;
}

/* The median of the window of one thread. (bx, by): its first column and row in the planes. */
template <int KZ, int K>
__device__ static __forceinline__ int median_alone(const typename tile<KZ, K>::plane *ring, int bx,
                                                   int by)
{
    constexpr int N = KZ * K * K;
    int v[N], sorted[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = median_key(ring[i / (K * K)][by + i / K % K][bx + i % K]);
    median_run<median_sorting<N>>(v, sorted);
    return sorted[N / 2];
}

/* The same by all lanes, for one window. */
template <int KZ, int K>
__device__ static __forceinline__ int median_together(const typename tile<KZ, K>::plane *ring,
                                                      int bx, int by)
{
    constexpr int N = KZ * K * K, OWN = (N + 31) / 32;
    int v[OWN];
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        const int at = (threadIdx.x & 31) + 32 * i;
        v[i] = at < N ? median_key(ring[at / (K * K)][by + at / K % K][bx + at % K]) : 0x7fffffff;
    }
    return median_select<OWN>(v, N);
}

/* Replaces those of the four values that are still open. Returns which. */
template <int KZ, int K>
__device__ static __forceinline__ unsigned settle(const typename tile<KZ, K>::plane *ring, int tx,
                                                  int ty, unsigned open, const dezinger_rule &rule,
                                                  float (&c)[4])
{
    unsigned replaced = 0;
#pragma unroll 1
    for (int o = 0; o < 4; o++) {
        const float value = o == 0 ? c[0] : o == 1 ? c[1] : o == 2 ? c[2] : c[3];
        unsigned who = __ballot_sync(0xffffffffu, open >> o & 1);
        float median = value;
        if constexpr (tile<KZ, K>::alone) {
            if (who)
                median = median_value<float>(median_alone<KZ, K>(ring, 4 * tx + 4 - K / 2 + o, ty));
        } else {
            while (who) {
                const int lane = __ffs((int)who) - 1;
                const int key = median_together<KZ, K>(ring, 4 * lane + 4 - K / 2 + o, ty);
                if (lane == (int)(threadIdx.x & 31))
                    median = median_value<float>(key);
                who &= who - 1;
            }
        }
        if ((open >> o & 1) && replaces(rule, value, median)) {
            replaced |= 1u << o;
            if (o == 0)
                c[0] = median;
            else if (o == 1)
                c[1] = median;
            else if (o == 2)
                c[2] = median;
            else
                c[3] = median;
        }
    }
    return replaced;
}

template <class T>
__device__ static inline void store_four(T *to, bool fours, int64_t left, const float (&c)[4])
{
    if (fours && left >= 4) {
        typename four_of<T>::type q;
        q.x = (T)c[0];
        q.y = (T)c[1];
        q.z = (T)c[2];
        q.w = (T)c[3];
        __stcs((typename four_of<T>::type *)to, q);
        return;
    }
#pragma unroll
    for (int o = 0; o < 4; o++)
        if (o < left)
            to[o] = (T)c[o];
}

__device__ static inline void store_any(const dezinger_arrays &arrays, int64_t at, bool fours,
                                        int64_t left, const float (&c)[4])
{
    if (arrays.type == MB_F32)
        store_four((float *)arrays.out + at, fours, left, c);
    else if (arrays.type == MB_U16)
        store_four((uint16_t *)arrays.out + at, fours, left, c);
    else
        store_four((uint8_t *)arrays.out + at, fours, left, c);
}

template <int KZ, int K>
__global__ void __launch_bounds__(tile<KZ, K>::threads, tile<KZ, K>::blocks)
    dezinger_tile(dezinger_arrays arrays, median_array a, dezinger_rule rule)
{
    typedef tile<KZ, K> G;
    constexpr int hz = KZ / 2, half = G::count / 2 + 1;
    __shared__ typename G::plane ring[KZ];
    const int tx = threadIdx.x % (TILE_X / 4), ty = threadIdx.x / (TILE_X / 4);
    const int64_t x0 = blockIdx.x * (int64_t)TILE_X, z0 = blockIdx.z * arrays.planes,
                  z1 = min(z0 + arrays.planes, a.n[0]);
    unsigned replaced = 0;
    for (int64_t y0 = blockIdx.y * (int64_t)G::rows; y0 < a.n[1];
         y0 += gridDim.y * (int64_t)G::rows) {
        tile_loads<G> loads(arrays, a, y0, x0);
        const int64_t x = x0 + 4 * tx, y = y0 + ty, left = y < a.n[1] ? a.n[2] - x : 0;
        int64_t to = z0 * a.to_plane + y * a.to_row + x;
        int middle = hz; /* slots of the plane z and of z + hz */
        int newest = KZ - 1;
        for (int i = 0; i < KZ - 1; i++) {
            loads.load(arrays, a, z0 - hz + i);
            loads.put(ring[i]);
        }
        loads.load(arrays, a, z0 + hz);
        for (int64_t z = z0; z < z1; z++, to += a.to_plane) {
            loads.put(ring[newest]);
            __syncthreads();
            if (z + 1 < z1)
                loads.load(arrays, a, z + 1 + hz); /* arrives while this plane is worked on */
            const float4 q = *(const float4 *)&ring[middle][ty + G::h][4 * tx + 4];
            float c[4] = {q.x, q.y, q.z, q.w};
            const float reach[4] = {reach_of(rule, c[0]), reach_of(rule, c[1]),
                                    reach_of(rule, c[2]), reach_of(rule, c[3])};
            int in[4] = {0, 0, 0, 0};
            auto unsettled = [&] {
                return (unsigned)(in[0] < half) | (unsigned)(in[1] < half) << 1 |
                       (unsigned)(in[2] < half) << 2 | (unsigned)(in[3] < half) << 3;
            };
            /* Rows of the middle plane, then of those above and below it in turn. */
            auto row = [&](int at) {
                const int step = at / K, slot = middle + (step & 1 ? -(step + 1) / 2 : step / 2);
                count_row<K>(&ring[slot < 0     ? slot + KZ
                                   : slot >= KZ ? slot - KZ
                                                : slot][ty + at - step * K][4 * tx],
                             c, reach, in);
            };
#pragma unroll
            for (int at = 0; at < G::enough; at++)
                row(at);
            unsigned open = unsettled();
            if (__any_sync(0xffffffffu, open)) {
#pragma unroll 1
                for (int at = G::enough; at < KZ * K; at++)
                    row(at);
                open = unsettled();
            }
            if (__any_sync(0xffffffffu, open)) {
                unsigned which = settle<KZ, K>(ring, tx, ty, open, rule, c);
                for (; which; which &= which - 1) {
                    const int o = __ffs((int)which) - 1;
                    replaced += o < left && counted(rule, z, y, x + o);
                }
            }
            if (left > 0)
                store_any(arrays, to, arrays.fours, left, c);
            middle = middle + 1 == KZ ? 0 : middle + 1;
            newest = newest + 1 == KZ ? 0 : newest + 1;
            __syncthreads();
        }
    }
    add_replaced(replaced, rule.tally);
}

/* ---- any window ---- */

__device__ static int count_direct(const void *in, int type, const median_array &a, int64_t z,
                                   int64_t y, int64_t x, float c, float reach)
{
    int within = 0;
    for (int i = 0; i < a.k[0]; i++) {
        const int64_t plane = median_source(a, 0, z + i - a.k[0] / 2) * a.plane;
        for (int j = 0; j < a.k[1]; j++) {
            const int64_t row = plane + median_source(a, 1, y + j - a.k[1] / 2) * a.row;
            for (int k = 0; k < a.k[2]; k++) {
                const float v = value_at(in, type, row + median_source(a, 2, x + k - a.k[2] / 2));
                within += fabsf(v - c) < reach;
            }
        }
    }
    return within;
}

template <int OWN>
__global__ void __launch_bounds__(32 * MEDIAN_WARPS)
    dezinger_any(dezinger_arrays arrays, median_array a, dezinger_rule rule)
{
    const int lane = threadIdx.x & 31;
    const int64_t first = (blockIdx.x * (int64_t)MEDIAN_WARPS + (threadIdx.x >> 5)) * 32;
    const int64_t x = first + lane;
    unsigned replaced = 0;
    for (int64_t line = blockIdx.y; line < a.n[0] * a.n[1] && first < a.n[2]; line += gridDim.y) {
        const int64_t z = line / a.n[1], y = line - z * a.n[1];
        float value = 0;
        bool open = false;
        if (x < a.n[2]) {
            value = value_at(arrays.in, arrays.type, z * a.plane + y * a.row + x);
            open = count_direct(arrays.in, arrays.type, a, z, y, x, value, reach_of(rule, value)) <=
                   a.count / 2;
        }
        unsigned who = __ballot_sync(0xffffffffu, open);
        if (who) {
            const median_places<OWN> places(a, z, y);
            for (; who; who &= who - 1) {
                const int at = __ffs((int)who) - 1;
                int v[OWN];
                places.gather(arrays.in, arrays.type, a, first + at, v);
                const int key = median_select<OWN>(v, a.count);
                const float median = arrays.type == MB_F32 ? median_value<float>(key) : (float)key;
                if (at == lane && replaces(rule, value, median)) {
                    value = median;
                    replaced += counted(rule, z, y, x);
                }
            }
        }
        if (x < a.n[2]) {
            const float c[4] = {value, 0, 0, 0};
            store_any(arrays, z * a.to_plane + y * a.to_row + x, false, 1, c);
        }
    }
    add_replaced(replaced, rule.tally);
}

__global__ void dezinger_counts(const unsigned long long *tally, double *counts)
{
    *counts = (double)*tally;
}

template <class T>
static bool aligned(const mb_array *array)
{
    return (uintptr_t)array->data % (4 * sizeof(T)) == 0 && mb_median_row(array) % 4 == 0 &&
           mb_median_plane(array) % 4 == 0;
}

static bool aligned_any(const mb_array *array)
{
    return array->dtype == MB_F32   ? aligned<float>(array)
           : array->dtype == MB_U16 ? aligned<uint16_t>(array)
                                    : aligned<uint8_t>(array);
}

template <int KZ, int K>
static mb_status tiles(const mb_op_call *call, const median_array &a, const dezinger_rule &rule)
{
    typedef tile<KZ, K> G;
    const mb_array *in = call->arrays[MB_DEZINGER_A], *out = call->arrays[MB_DEZINGER_RESULT];
    const int64_t across = (a.n[2] + TILE_X - 1) / TILE_X, down = (a.n[1] + G::rows - 1) / G::rows;
    const int64_t want =
        (int64_t)call->device->facts.threads * 32; /* blocks that fill the device */
    int64_t planes = a.n[0] * across * down / (want > 0 ? want : 1);
    planes = planes < 16 ? 16 : planes > 64 ? 64 : planes;
    while ((a.n[0] + planes - 1) / planes > 65535)
        planes *= 2;
    const dezinger_arrays arrays = {in->data, out->data, in->dtype,
                                    aligned_any(in) && aligned_any(out), planes};
    const dim3 blocks((unsigned)across, (unsigned)(down < 65535 ? down : 65535),
                      (unsigned)((a.n[0] + planes - 1) / planes));
    dezinger_tile<KZ, K><<<blocks, G::threads, 0, mb_stream(call)>>>(arrays, a, rule);
    return MB_LAUNCH_STATUS("dezinger_tile");
}

static mb_status any(const mb_op_call *call, const median_array &a, const dezinger_rule &rule)
{
    const mb_array *in = call->arrays[MB_DEZINGER_A], *out = call->arrays[MB_DEZINGER_RESULT];
    const dezinger_arrays arrays = {in->data, out->data, in->dtype, false, 0};
    return median_own(a.count, [&](auto own) {
        dezinger_any<decltype(own)::value>
            <<<median_blocks((a.n[2] + 31) / 32, a.n[0] * a.n[1]), 32 * MEDIAN_WARPS, 0,
               mb_stream(call)>>>(arrays, a, rule);
        return MB_LAUNCH_STATUS("dezinger_any");
    });
}

static mb_status run(const mb_op_call *call, const median_array &a, const dezinger_rule &rule)
{
    switch (10000 * a.k[0] + 100 * a.k[1] + a.k[2]) {
    case 10303: return tiles<1, 3>(call, a, rule);
    case 10505: return tiles<1, 5>(call, a, rule);
    case 10707: return tiles<1, 7>(call, a, rule);
    case 30303: return tiles<3, 3>(call, a, rule);
    case 50505: return tiles<5, 5>(call, a, rule);
    case 70707: return tiles<7, 7>(call, a, rule);
    }
    return any(call, a, rule);
}

extern "C" mb_status mb_cuda_dezinger(const mb_op_call *call)
{
    const mb_dezinger_params *p = (const mb_dezinger_params *)call->params;
    const mb_array *a = call->arrays[MB_DEZINGER_A];
    const mb_median_window w = mb_median_window_of(&p->size, p->mode, &a->shape);
    const median_array m = median_array_of(w, a, call->arrays[MB_DEZINGER_RESULT]);
    const dezinger_rule rule = rule_of(call);
    MB_CUDA(cudaMemsetAsync(rule.tally, 0, sizeof *rule.tally, mb_stream(call)));
    if (w.n[0] * w.n[1] * w.n[2] > 0)
        MB_TRY(run(call, m, rule));
    dezinger_counts<<<1, 1, 0, mb_stream(call)>>>(rule.tally,
                                                  (double *)call->arrays[MB_DEZINGER_COUNTS]->data);
    return MB_LAUNCH_STATUS("dezinger_counts");
}
