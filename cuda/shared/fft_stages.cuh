/*
** The steps of a 3-D real transform and of the work between its passes, in place, as device
** functions on tiles of one thread block. Each function reads its tile once and writes it once.
**
** A real plane is stored as rows of N + 1 complex numbers (2 N samples and padding,
** ops/padded_grid.h). A spectrum is stored as rows of N complex numbers, which are whole lines of
** memory, followed by the tail: the column of the highest frequency. Columns of a misaligned grid
** would take twice the time. Between the transforms along x and y, the highest frequency of a row,
** which is real, is stored in the imaginary part of the lowest. Loads bypass the first-level cache,
** because other blocks of the same launch have written the data.
*/
#ifndef MB_CUDA_FFT_STAGES_CUH
#define MB_CUDA_FFT_STAGES_CUH

#include "shared/fft_registers.cuh"
#include <stdint.h>

/* How long the second-level cache should keep a loaded or stored line: long if the same launch
** reads it again soon, and short if it does not, so that it does not evict the others. */
enum mb_fft_keep { MB_FFT_KEEP_ANY, MB_FFT_KEEP_SHORT, MB_FFT_KEEP_LONG };

template <mb_fft_keep KEEP>
struct mb_fft_policy { /* encoded as by createpolicy.fractional.L2: evict_first, evict_last */
    static constexpr unsigned long long value =
        KEEP == MB_FFT_KEEP_SHORT ? 0x12f0000000000000ull : 0x14f0000000000000ull;
};

template <mb_fft_keep KEEP = MB_FFT_KEEP_ANY>
__device__ static __forceinline__ float2 mb_fft_load(const float2 *p)
{
    if (KEEP == MB_FFT_KEEP_ANY)
        return __ldcg(p);
    float2 v;
    asm volatile("ld.global.cg.L2::cache_hint.v2.f32 {%0, %1}, [%2], %3;"
                 : "=f"(v.x), "=f"(v.y)
                 : "l"(p), "l"(mb_fft_policy<KEEP>::value)
                 : "memory");
    return v;
}
template <mb_fft_keep KEEP = MB_FFT_KEEP_ANY>
__device__ static __forceinline__ void mb_fft_store(float2 *p, float2 v)
{
    if (KEEP == MB_FFT_KEEP_ANY)
        __stcg(p, v);
    else
        asm volatile("st.global.cg.L2::cache_hint.v2.f32 [%0], {%1, %2}, %3;" ::"l"(p), "f"(v.x),
                     "f"(v.y), "l"(mb_fft_policy<KEEP>::value)
                     : "memory");
}

/* From rows far apart, of which a tile takes a part. On a miss the second-level cache takes the
** neighbors' part from memory too. */
__device__ static __forceinline__ float2 mb_fft_load_wide(const float2 *p)
{
    float2 v;
    asm volatile("ld.global.cg.L2::256B.v2.f32 {%0, %1}, [%2];"
                 : "=f"(v.x), "=f"(v.y)
                 : "l"(p)
                 : "memory");
    return v;
}

/* A step from point to point that is opaque to the compiler, which would otherwise keep all its
** multiples in registers. */
__device__ static __forceinline__ int64_t mb_fft_step(int64_t step)
{
    asm volatile("" : "+l"(step));
    return step;
}

/* Columns, W neighboring ones at a time, with points `stride` apart. `base` is the first point of
** the first column. */
template <class C, int W>
struct mb_fft_columns {
    static constexpr int threads = C::T * W;
    static constexpr int points = C::room * W; /* float2 of shared memory, beside the table */

    template <mb_fft_keep KEEP = MB_FFT_KEEP_ANY>
    __device__ static __forceinline__ void load(float2 (&v)[C::E], const float2 *base,
                                                int64_t stride, int t, int lane, bool real)
    {
        const float2 *p = base + t * stride + lane;
        const int64_t step = mb_fft_step(C::T * stride);
#pragma unroll
        for (int j = 0; j < C::E; j++, p += step)
            v[j] = real ? mb_fft_load<KEEP>(p) : make_float2(0, 0);
    }
    template <mb_fft_keep KEEP = MB_FFT_KEEP_ANY>
    __device__ static __forceinline__ void store(const float2 (&v)[C::E], float2 *base,
                                                 int64_t stride, int t, int lane, bool real)
    {
        float2 *p = base + t * stride + lane;
        const int64_t step = mb_fft_step(C::T * stride);
        if (real)
#pragma unroll
            for (int j = 0; j < C::E; j++, p += step)
                mb_fft_store<KEEP>(p, v[j]);
    }
    __device__ static __forceinline__ void swap(float2 (&v)[C::E])
    {
#pragma unroll
        for (int j = 0; j < C::E; j++)
            v[j] = mb_fft_swap(v[j]);
    }
    /* In the first tile of a plane, column 0 contains two real columns, the lowest frequency + i
    ** times the highest. `tail` is the spectrum of the highest. */
    __device__ static __forceinline__ void join(float2 (&v)[C::E], const float2 *tail, int t,
                                                int lane)
    {
        if (lane == 0)
#pragma unroll
            for (int j = 0; j < C::E; j++) {
                const float2 b = mb_fft_load(tail + t + C::T * j);
                v[j] = make_float2(v[j].x - b.y, v[j].y + b.x);
            }
    }
    __device__ static __forceinline__ void part(const float2 (&v)[C::E], float2 *base,
                                                int64_t stride, float2 *tail, int t, int lane,
                                                float2 *shared)
    {
        __syncthreads();
        if (lane == 0)
#pragma unroll
            for (int j = 0; j < C::E; j++)
                shared[t + C::T * j] = v[j];
        __syncthreads();
#pragma unroll 1
        for (int k = threadIdx.x; k < C::N; k += threads) {
            const float2 p = shared[k], q = shared[k ? C::N - k : 0];
            mb_fft_store(base + k * stride, make_float2(0.5f * (p.x + q.x), 0.5f * (p.y - q.y)));
            mb_fft_store(tail + k, make_float2(0.5f * (p.y + q.y), 0.5f * (q.x - p.x)));
        }
    }
    /* The inverse pass comes before the rows of the same launch, which read what it stores with
    ** KEEP. The forward pass comes after them. */
    template <bool INVERSE, mb_fft_keep KEEP>
    __device__ static __forceinline__ void transform(float2 *base, int64_t stride, float2 *tail,
                                                     const float2 *table, float2 *shared)
    {
        const int lane = threadIdx.x % W, t = threadIdx.x / W;
        float2 v[C::E];
        load<INVERSE ? MB_FFT_KEEP_SHORT : MB_FFT_KEEP_ANY>(v, base, stride, t, lane, true);
        if (INVERSE) {
            if (tail)
                join(v, tail, t, lane);
            swap(v);
        }
        mb_fft_run<C, false>(v, t, table, shared, W, lane);
        if (INVERSE)
            swap(v);
        else if (tail)
            part(v, base, stride, tail, t, lane, shared);
        store<INVERSE ? KEEP : MB_FFT_KEEP_SHORT>(v, base, stride, t, lane,
                                                  INVERSE || !tail || lane > 0);
    }
    /* Takes a few factors at a time, because all factors and all points do not fit into the
    ** registers together. */
    __device__ static __forceinline__ void multiply(float2 (&v)[C::E], const float2 *factor,
                                                    int64_t step, float scale, float turn)
    {
        constexpr int K = C::E < 8 ? C::E : 8;
#pragma unroll
        for (int j = 0; j < C::E; j += K) {
            float2 w[K];
#pragma unroll
            for (int k = 0; k < K; k++, factor += step)
                w[k] = mb_fft_load_wide(factor); /* lines are shared with the neighbors' tiles */
#pragma unroll
            for (int k = 0; k < K; k++) {
                v[j + k] = mb_fft_mul(v[j + k], make_float2(w[k].x * scale, w[k].y * turn));
                asm volatile("" : "+f"(v[j + k].x), "+f"(v[j + k].y)::"memory");
            }
        }
    }
    /* Transforms, calls product(v), and transforms back. Both transforms run the same code, because
    ** two copies would not fit into the instruction cache. product.expect() loads what it needs,
    ** into shared memory too, while the points are on their way. `real`: the column exists. */
    template <class Product>
    __device__ static __forceinline__ void filter(float2 *base, int64_t stride, bool real,
                                                  const Product &product, const float2 *table,
                                                  float2 *shared)
    {
        const int lane = threadIdx.x % W, t = threadIdx.x / W;
        float2 v[C::E];
        const float2 *p = base + t * stride + lane;
        const int64_t step = mb_fft_step(C::T * stride);
#pragma unroll
        for (int j = 0; j < C::E; j++, p += step)
            v[j] = real ? mb_fft_load_wide(p) : make_float2(0, 0);
        product.expect();
        if (C::passes == 1)
            __syncthreads();
#pragma unroll 1
        for (int pass = 0; pass < 2; pass++) {
            mb_fft_run<C, false>(v, t, table, shared, W, lane);
            if (pass == 0)
                product(v);
            swap(v);
        }
        store(v, base, stride, t, lane, real);
    }
};

/* Rows of 2 N real numbers as N complex ones: H rows at a time. */
template <class C, int H>
struct mb_fft_rows {
    static constexpr int threads = C::T * H, height = H;
    typedef C cut;
    static constexpr int points = C::room * H;
    static constexpr int roots = C::N / 2; /* exp(-2 pi i k / 2N), beside the table */
    static constexpr bool WARP = C::T <= 32 && 32 % C::T == 0;

    __device__ static __forceinline__ void fill_roots(float2 *to)
    {
        for (int i = threadIdx.x; i < roots; i += blockDim.x)
            to[i] = mb_fft_root(i, 2 * C::N);
    }
    /* Stores the half spectrum of the packed transform in v to `row`: N complex numbers, with the
    ** highest frequency, which is real, in the imaginary part of the lowest. The mirrored half goes
    ** through shared memory, so that it is also stored in whole lines. */
    template <mb_fft_keep KEEP>
    __device__ static __forceinline__ void unpack(float2 (&v)[C::E], float2 *row, int t,
                                                  const float2 *root, float2 *shared)
    {
        mb_fft_sync<WARP>();
#pragma unroll
        for (int j = C::E / 2; j < C::E; j++)
            shared[t + C::T * j] = v[j];
        mb_fft_sync<WARP>();
#pragma unroll
        for (int j = 0; j < C::E / 2; j++) {
            const int k = t + C::T * j;
            const float2 z = v[j], y = k == 0 ? v[0] : shared[C::N - k];
            const float2 s = make_float2(0.5f * (z.x + y.x), 0.5f * (z.y - y.y));
            const float2 d =
                mb_fft_mul(make_float2(0.5f * (z.x - y.x), 0.5f * (z.y + y.y)), root[k]);
            /* X[k] = s - i d, X[N - k] = conj(s + i d) */
            v[j] = make_float2(s.x + d.y, k == 0 ? s.x - d.y : s.y - d.x);
            if (k > 0)
                shared[C::N - k] = make_float2(s.x - d.y, -s.y - d.x);
        }
        if (t == 0)
            shared[C::N / 2] = mb_fft_conj(v[C::E / 2]);
        mb_fft_sync<WARP>();
#pragma unroll
        for (int j = 0; j < C::E; j++)
            mb_fft_store<KEEP>(row + t + C::T * j, j < C::E / 2 ? v[j] : shared[t + C::T * j]);
    }
    /* The packed transform whose inverse is the real row, from a half spectrum. */
    __device__ static __forceinline__ void pack(float2 (&v)[C::E], const float2 *row, int t,
                                                const float2 *root, float2 *shared)
    {
#pragma unroll
        for (int j = 0; j < C::E; j++)
            v[j] = mb_fft_load(row + t + C::T * j);
        mb_fft_sync<WARP>();
#pragma unroll
        for (int j = C::E / 2; j < C::E; j++)
            shared[t + C::T * j] = v[j];
        mb_fft_sync<WARP>();
#pragma unroll
        for (int j = 0; j < C::E / 2; j++) {
            const int k = t + C::T * j;
            float2 a = v[j], b = k == 0 ? make_float2(a.y, 0) : shared[C::N - k];
            if (k == 0)
                a.y = 0;
            const float2 s = make_float2(a.x + b.x, a.y - b.y);
            const float2 d = mb_fft_mul(make_float2(a.x - b.x, a.y + b.y), mb_fft_conj(root[k]));
            /* Z[k] = s + i d, Z[N - k] = conj(s - i d) */
            v[j] = make_float2(s.x - d.y, s.y + d.x);
            if (k > 0)
                shared[C::N - k] = make_float2(s.x + d.y, d.x - s.y);
        }
        if (t == 0)
            shared[C::N / 2] = make_float2(2 * v[C::E / 2].x, -2 * v[C::E / 2].y);
        mb_fft_sync<WARP>();
#pragma unroll
        for (int j = C::E / 2; j < C::E; j++)
            v[j] = shared[t + C::T * j];
    }
    /* A row of samples, two to a complex number, from its half spectrum. */
    __device__ static __forceinline__ void back(float2 (&v)[C::E], const float2 *row, int t,
                                                const float2 *table, const float2 *root,
                                                float2 *shared)
    {
        pack(v, row, t, root, shared);
        swap(v);
        mb_fft_run<C, WARP>(v, t, table, shared, 1, 0);
        swap(v);
    }
    /* Transforms a row of samples to its half spectrum. */
    template <mb_fft_keep KEEP>
    __device__ static __forceinline__ void forth(float2 (&v)[C::E], float2 *row, int t,
                                                 const float2 *table, const float2 *root,
                                                 float2 *shared)
    {
        mb_fft_run<C, WARP>(v, t, table, shared, 1, 0);
        unpack<KEEP>(v, row, t, root, shared);
    }
    /* Stores a row of samples, in order, in shared memory for the threads of the row; the next
    ** function loads it. */
    __device__ static __forceinline__ void put(const float2 (&v)[C::E], int t, float2 *shared)
    {
        mb_fft_sync<WARP>();
#pragma unroll
        for (int j = 0; j < C::E; j++)
            shared[t + C::T * j] = v[j];
        mb_fft_sync<WARP>();
    }
    __device__ static __forceinline__ void get(float2 (&v)[C::E], int t, const float2 *shared)
    {
        mb_fft_sync<WARP>();
#pragma unroll
        for (int j = 0; j < C::E; j++)
            v[j] = shared[t + C::T * j];
    }
    __device__ static __forceinline__ void swap(float2 (&v)[C::E])
    {
#pragma unroll
        for (int j = 0; j < C::E; j++)
            v[j] = mb_fft_swap(v[j]);
    }
    /* Rows first ... first + H - 1 of a plane: from rows of N + 1 complex numbers to rows of N, or
    ** back. In place, rows move down (or up) over their neighbors: all threads call `order` once
    ** the tile has been read, and it returns when the neighbors have been read too. Rows of N + 1
    ** begin anywhere in a line. Their loads use the first-level cache, which keeps a line until its
    ** other part is loaded (the line is not written before that), and the stores of all consecutive
    ** rows of the tile are combined. */
    template <bool INVERSE, class Order>
    __device__ static __forceinline__ void transform(float2 *plane, int first, const float2 *table,
                                                     const float2 *root, float2 *shared,
                                                     const Order &order)
    {
        const int t = threadIdx.x % C::T, h = threadIdx.x / C::T;
        float2 *loose = plane + (int64_t)first * (C::N + 1),
               *tight = plane + (int64_t)(first + h) * C::N, *mine = shared + h * C::room;
        float2 v[C::E];
        if (INVERSE) {
            back(v, tight, t, table, root, mine);
            __syncthreads(); /* exchanges are finished */
            float2 *row = shared + h * (C::N + 1);
#pragma unroll
            for (int j = 0; j < C::E; j++)
                row[t + C::T * j] = v[j];
            if (t == 0)
                row[C::N] = make_float2(0, 0);
            order();
            const float4 *from = (const float4 *)shared;
#pragma unroll 8
            for (int i = threadIdx.x; i < H * (C::N + 1) / 2; i += threads)
                __stcs((float4 *)loose + i, from[i]);
        } else {
#pragma unroll
            for (int j = 0; j < C::E; j++)
                v[j] = __ldca(loose + h * (C::N + 1) + t + C::T * j);
            mb_fft_run<C, WARP>(v, t, table, mine, 1, 0);
            order();
            unpack<MB_FFT_KEEP_LONG>(v, tight, t, root, mine);
        }
    }
};

#endif
