/*
** A detector row on its way through the ramp filter, on the chip: the work of one thread block.
**
** P reals are N = P / 2 complex numbers, the even samples and the odd ones. Two rows as one complex
** row would be simpler, but each would get rounding errors of the other, and its NaNs: here nothing
** of a row is ever added to another. T = N / 16 threads; thread t holds the numbers t + T e, e < 16
** (fourier_block.cuh). Radices forward are 16, A, B, LAST, backward LAST, B, A, 16. The spectrum of
** the reals at k and N - k comes from those of the numbers at k and N - k: the last pass gives each
** thread butterflies b and N / LAST - b together, which hold such pairs, and the first pass
** backward takes them from there. Rows are rotated so that the detector begins at sample 0: the
** filter's convolution is circular.
*/
#ifndef MB_CUDA_RAMP_ROW_CUH
#define MB_CUDA_RAMP_ROW_CUH

#include "tomography/fourier_block.cuh"
#include "ops/tomography/op_ramp_filter.h"

/* What a bin of a row is multiplied by beside the response. */
struct ramp_straight {
    __device__ float2 at(int) const { return make_float2(1, 0); }
};

struct ramp_turned { /* the phase of a slice that moves */
    uint64_t turn;
    __device__ float2 at(int k) const { return fourier_turn(mb_ramp_filter_phase(turn, k)); }
};

template <int T>
struct ramp_row {
    static constexpr int H = FOURIER_HELD, N = T * H, P = 2 * N;
    static constexpr int A = T == 128 || T == 1024 ? 16 : 8;
    static constexpr int LAST = T == 32 || T == 256 ? 4 : 8;
    static constexpr int B = T / (A * LAST); /* 1: no such pass */
    static constexpr int Q = H / LAST, STEP = N / LAST;
    static_assert(A * B * LAST == T && B <= 8 && Q % 2 == 0, "no such cut");

    int t;
    float2 half;           /* exp(-2 pi i t / P) */
    float2 a, b;           /* factors of the passes forward, */
    float2 a_back, b_back; /* and backward */

    __device__ explicit ramp_row(int thread) : t(thread)
    {
        half = fourier_turn(-t / (float)N);
        a = fourier_turn(-2.0f * (t % H) / (H * A));
        b = fourier_turn(-2.0f * (t % (H * A)) / (H * A * B));
        b_back = fourier_turn(2.0f * (t % LAST) / (LAST * B));
        a_back = fourier_turn(2.0f * (t % (LAST * B)) / (LAST * B * A));
    }

    /* Keeps the compiler from making tables of powers before a loop over rows: they would not fit
    ** the registers. */
    __device__ __forceinline__ void hold()
    {
        asm volatile("" : "+f"(half.x), "+f"(half.y), "+f"(a.x), "+f"(a.y));
        asm volatile("" : "+f"(a_back.x), "+f"(a_back.y));
        if constexpr (B > 1)
            asm volatile("" : "+f"(b.x), "+f"(b.y), "+f"(b_back.x), "+f"(b_back.y));
    }

    /* ---- passes: point b + r N / R is v[q + 16 / R r], b = t + T q ---- */

    template <int R, int SIGN>
    __device__ static __forceinline__ void pass(float2 (&v)[H], float2 turn)
    {
        constexpr int W = H / R;
#pragma unroll
        for (int q = 0; q < W; q++) {
            float2 x[R];
#pragma unroll
            for (int r = 0; r < R; r++)
                x[r] = v[q + W * r];
            fourier_dft_turned<R, SIGN>(x, turn);
#pragma unroll
            for (int r = 0; r < R; r++)
                v[q + W * r] = x[r];
        }
    }

    /* To their places after a pass over transforms of DONE points. The gaps (fourier_place) between
    ** places of equal steps add up to the same for all: nothing is carried. */
    template <int R, int DONE>
    __device__ static __forceinline__ void put(const float2 *v, int stride, int b, float2 *shared)
    {
        const int k = b % DONE, place = fourier_place((b - k) * R + k);
#pragma unroll
        for (int r = 0; r < R; r++)
            shared[place + r * DONE + r * DONE / 16] = v[stride * r];
    }

    template <int R>
    __device__ static __forceinline__ void get(float2 *v, int stride, int b, const float2 *shared)
    {
        const int place = fourier_place(b);
#pragma unroll
        for (int r = 0; r < R; r++)
            v[stride * r] = shared[place + r * (N / R + N / R / 16)];
    }

    template <int R, int DONE, int NEXT>
    __device__ __forceinline__ void exchange(float2 (&v)[H], float2 *shared) const
    {
#pragma unroll
        for (int q = 0; q < H / R; q++)
            put<R, DONE>(v + q, H / R, t + T * q, shared);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < H / NEXT; q++)
            get<NEXT>(v + q, H / NEXT, t + T * q, shared);
        __syncthreads();
    }

    /* ---- the spectrum: point b + r N / LAST is v[q + Q r], b = butterfly(q) ---- */

    __device__ __forceinline__ int butterfly(int q) const
    {
        const int even = t + T * (q / 2);
        return q % 2 == 0 ? even : q == 1 && t == 0 ? STEP / 2 : STEP - even;
    }

    /* One point of the reals' spectrum and its partner at N - k, the response, and back. turn:
    ** exp(-2 pi i k / P). */
    template <class Factor>
    __device__ static __forceinline__ void bin(float2 &z, float2 &partner, int k, float2 turn,
                                               const float *response, const Factor &factor)
    {
        const float2 sum = make_float2(z.x + partner.x, z.y - partner.y),
                     difference = make_float2(z.x - partner.x, z.y + partner.y);
        const float2 u = make_float2(turn.y, -turn.x), odd = fourier_times(difference, u);
        float2 here = make_float2(sum.x + odd.x, sum.y + odd.y),
               there = make_float2(sum.x - odd.x, sum.y - odd.y); /* conjugate */
        const float h = response[k], g = response[N - k];
        here = make_float2(here.x * h, here.y * h);
        there = make_float2(there.x * g, there.y * g);
        if constexpr (!std::is_same<Factor, ramp_straight>::value) {
            float2 c = factor.at(k), d = factor.at(N - k);
            d.y = k == 0 ? 0.0f : -d.y; /* a row of reals has no more than the cosine at P / 2 */
            here = fourier_times(here, c);
            there = fourier_times(there, d);
        }
        const float2 even = make_float2(here.x + there.x, here.y + there.y),
                     back = make_float2(here.x - there.x, here.y - there.y);
        z = make_float2(fmaf(back.y, u.y, fmaf(back.x, u.x, even.x)),
                        fmaf(-back.x, u.y, fmaf(back.y, u.x, even.y)));
        partner = make_float2(fmaf(2.0f, even.x, -z.x), fmaf(-2.0f, even.y, z.y));
    }

    template <class Factor>
    __device__ __forceinline__ void bins(float2 (&v)[H], const float *response,
                                         const Factor &factor) const
    {
#pragma unroll
        for (int q = 0; q < Q; q += 2) {
            const int first = t + T * (q / 2);
            if (first == 0) /* those of 0 and of N / LAST / 2 hold their own partners */
                continue;
            const float2 own = q == 0 ? half : fourier_times(half, fourier_turn(-q / 32.0f));
#pragma unroll
            for (int r = 0; r < LAST; r++)
                bin(v[q + Q * r], v[q + 1 + Q * (LAST - 1 - r)], first + r * STEP,
                    fourier_times(own, fourier_turn(-r / (float)LAST)), response, factor);
        }
        if (t > 0)
            return;
#pragma unroll
        for (int r = 0; r <= LAST / 2; r++) {
            float2 partner = v[Q * ((LAST - r) % LAST)];
            bin(v[Q * r], partner, r * STEP, fourier_turn(-r / (float)LAST), response, factor);
            if (r > 0 && r < LAST / 2)
                v[Q * (LAST - r)] = partner;
        }
#pragma unroll
        for (int r = 0; r < LAST / 2; r++)
            bin(v[1 + Q * r], v[1 + Q * (LAST - 1 - r)], STEP / 2 + r * STEP,
                fourier_turn(-(r + 0.5f) / (float)LAST), response, factor);
    }

    /* ---- the whole ---- */

    /* `line`: cols <= P samples, which seldom reach the upper half of the numbers. */
    __device__ __forceinline__ void load(float2 (&v)[H], const float *line, int cols,
                                         bool edge) const
    {
#pragma unroll
        for (int e = 0; e < H; e++)
            v[e] = make_float2(0, 0);
        if (edge) {
            const float before = line[0], after = line[cols - 1];
            const int end = P - (P - cols) / 2;
#pragma unroll
            for (int e = 0; e < H; e++) {
                const int i = 2 * (t + T * e);
                v[e] = make_float2(i < end ? after : before, i + 1 < end ? after : before);
            }
        }
        load_part(v, line, cols, 0);
        if (cols > N)
            load_part(v + H / 2, line, cols, N);
    }

    __device__ __forceinline__ void load_part(float2 *v, const float *line, int cols,
                                              int first) const
    {
        const bool whole = (uintptr_t)line % sizeof(float2) == 0;
#pragma unroll
        for (int e = 0; e < H / 2; e++) {
            const int i = first + 2 * (t + T * e);
            if (whole && i + 1 < cols) {
                v[e] = *(const float2 *)(line + i);
            } else {
                if (i < cols)
                    v[e].x = line[i];
                if (i + 1 < cols)
                    v[e].y = line[i + 1];
            }
        }
    }

    __device__ __forceinline__ void store(const float2 (&v)[H], float *line, int cols) const
    {
        store_part(v, line, cols, 0);
        if (cols > N)
            store_part(v + H / 2, line, cols, N);
    }

    __device__ __forceinline__ void store_part(const float2 *v, float *line, int cols,
                                               int first) const
    {
        const bool whole = (uintptr_t)line % sizeof(float2) == 0;
#pragma unroll
        for (int e = 0; e < H / 2; e++) {
            const int i = first + 2 * (t + T * e);
            if (whole && i + 1 < cols) {
                *(float2 *)(line + i) = v[e];
            } else {
                if (i < cols)
                    line[i] = v[e].x;
                if (i + 1 < cols)
                    line[i + 1] = v[e].y;
            }
        }
    }

    /* `response`: P / 2 + 1 factors, which make up for transforms that are not normalized and for
    ** the halves that this leaves out: half of op_ramp_filter.h's. Returns with shared memory
    ** free. */
    template <class Factor>
    __device__ __forceinline__ void filter(float2 (&v)[H], const float *response,
                                           const Factor &factor, float2 *shared) const
    {
        fourier_dft<H, -1>::run(v);
        exchange<H, 1, A>(v, shared);
        pass<A, -1>(v, a);
        if constexpr (B > 1) {
            exchange<A, H, B>(v, shared);
            pass<B, -1>(v, b);
        }
        constexpr int BEFORE = B > 1 ? B : A, DONE = B > 1 ? H * A : H;
#pragma unroll
        for (int q = 0; q < H / BEFORE; q++)
            put<BEFORE, DONE>(v + q, H / BEFORE, t + T * q, shared);
        __syncthreads();
        const float2 turn = fourier_times(half, half); /* exp(-2 pi i t / N) */
        float2 x[Q][LAST];
#pragma unroll
        for (int q = 0; q < Q; q++) {
            get<LAST>(x[q], 1, butterfly(q), shared);
            float2 own = q < 2 ? turn : fourier_times(turn, fourier_turn(-(q / 2) / 8.0f));
            if (q % 2 == 1) {
                own = fourier_times(make_float2(own.x, -own.y), fourier_turn(-2.0f / LAST));
                if (q == 1 && t == 0)
                    own = fourier_turn(-1.0f / LAST);
            }
            fourier_dft_turned<LAST, -1>(x[q], own);
#pragma unroll
            for (int r = 0; r < LAST; r++)
                v[q + Q * r] = x[q][r];
        }
        bins(v, response, factor);
#pragma unroll
        for (int q = 0; q < Q; q++)
#pragma unroll
            for (int r = 0; r < LAST; r++)
                x[q][r] = v[q + Q * r];
        __syncthreads();
#pragma unroll
        for (int q = 0; q < Q; q++) {
            fourier_dft<LAST, 1>::run(x[q]);
            put<LAST, 1>(x[q], 1, butterfly(q), shared);
        }
        __syncthreads();
        constexpr int NEXT = B > 1 ? B : A;
#pragma unroll
        for (int q = 0; q < H / NEXT; q++)
            get<NEXT>(v + q, H / NEXT, t + T * q, shared);
        __syncthreads();
        if constexpr (B > 1) {
            pass<B, 1>(v, b_back);
            exchange<B, LAST, A>(v, shared);
        }
        pass<A, 1>(v, a_back);
        exchange<A, LAST * B, H>(v, shared);
        pass<H, 1>(v, make_float2(turn.x, -turn.y));
    }
};

#endif
