/*
** Fourier transforms of one thread block, of m T points: T threads, a power of two from 32 to 1024,
** hold up to 16 points each, thread t those at t + T e. Stockham's passes, in natural order on both
** sides: radix m first (5, 6, 7, 8, 10, 12, 14 or 16), then those of T. Between passes points go
** through shared memory. Not normalized.
*/
#ifndef MB_CUDA_FOURIER_BLOCK_CUH
#define MB_CUDA_FOURIER_BLOCK_CUH

#include "shared/cuda_launch.cuh"

#define FOURIER_HELD 16 /* points of a thread */

__device__ static inline float2 fourier_times(float2 a, float2 b)
{
    return make_float2(fmaf(-a.y, b.y, a.x * b.x), fmaf(a.y, b.x, a.x * b.y));
}

/* exp(i pi x) */
__device__ static inline float2 fourier_turn(float x)
{
    float2 w;
    sincospif(x, &w.y, &w.x);
    return w;
}

/* w^r for r = 1 ... R - 1 by few products each: rounding errors do not add up along a chain. */
template <int R>
__device__ static inline void fourier_powers(float2 w, float2 *power)
{
    power[0] = make_float2(1, 0);
    power[1] = w;
#pragma unroll
    for (int r = 2; r < R; r++)
        power[r] = fourier_times(power[r / 2], power[r - r / 2]);
}

/* cos(2 pi k / 16) */
__device__ static constexpr float fourier_cos16(int k)
{
    k &= 15;
    k = k > 8 ? 16 - k : k;
    return k == 0   ? 1.0f
           : k == 1 ? 0.92387953251128675613f
           : k == 2 ? 0.70710678118654752440f
           : k == 3 ? 0.38268343236508977173f
           : k == 4 ? 0.0f
           : k == 5 ? -0.38268343236508977173f
           : k == 6 ? -0.70710678118654752440f
           : k == 7 ? -0.92387953251128675613f
                    : -1.0f;
}

/* cos(2 pi k / P) of the odd primes. */
template <int P>
__device__ static constexpr float fourier_cosine(int k)
{
    k %= P;
    k = 2 * k > P ? P - k : k;
    return k == 0   ? 1.0f
           : P == 3 ? -0.5f
           : P == 5 ? (k == 1 ? 0.30901699437494742410f : -0.80901699437494742410f)
                    : (k == 1   ? 0.62348980185873353053f
                       : k == 2 ? -0.22252093395631440429f
                                : -0.90096886790241912624f);
}

template <int P>
__device__ static constexpr float fourier_sine(int k)
{
    k %= P;
    const float sign = 2 * k > P ? -1.0f : 1.0f;
    k = 2 * k > P ? P - k : k;
    return sign * (k == 0   ? 0.0f
                   : P == 3 ? 0.86602540378443864676f
                   : P == 5 ? (k == 1 ? 0.95105651629515357212f : 0.58778525229247312917f)
                            : (k == 1   ? 0.78183148246802980871f
                               : k == 2 ? 0.97492791218182360702f
                                        : 0.43388373911755812048f));
}

/* The transform of R values in registers, natural order; SIGN of the exponent. R = 2^a, an odd
** prime, or 2^a times one (Good and Thomas: no factors between coprime lengths). */
template <int R, int SIGN>
struct fourier_dft {
    static constexpr int EVEN = R % 8 == 0   ? 8
                                : R % 4 == 0 ? 4
                                : R % 2 == 0 ? 2
                                             : 1,
                         ODD = R / EVEN;
    __device__ static __forceinline__ void run(float2 *x)
    {
        if constexpr (ODD == 1 || R == 16) {
            constexpr int H = R / 2;
            float2 even[H], odd[H];
#pragma unroll
            for (int k = 0; k < H; k++) {
                even[k] = x[2 * k];
                odd[k] = x[2 * k + 1];
            }
            fourier_dft<H, SIGN>::run(even);
            fourier_dft<H, SIGN>::run(odd);
#pragma unroll
            for (int k = 0; k < H; k++) {
                const float2 e = even[k], o = odd[k];
                if (k == 0 || 4 * k == R) {
                    const float2 p = k == 0 ? o : make_float2(-SIGN * o.y, SIGN * o.x);
                    x[k] = make_float2(e.x + p.x, e.y + p.y);
                    x[k + H] = make_float2(e.x - p.x, e.y - p.y);
                } else {
                    const float c = fourier_cos16(k * (16 / R)),
                                s = SIGN * fourier_cos16(k * (16 / R) + 12);
                    const float re = fmaf(-o.y, s, fmaf(o.x, c, e.x)),
                                im = fmaf(o.x, s, fmaf(o.y, c, e.y));
                    x[k] = make_float2(re, im);
                    x[k + H] = make_float2(fmaf(2.0f, e.x, -re), fmaf(2.0f, e.y, -im));
                }
            }
        } else if constexpr (EVEN == 1) {
            constexpr int H = R / 2;
            float2 sum[H], difference[H];
            const float2 first = x[0];
#pragma unroll
            for (int j = 0; j < H; j++) {
                const float2 a = x[j + 1], b = x[R - 1 - j];
                sum[j] = make_float2(a.x + b.x, a.y + b.y);
                difference[j] = make_float2(a.x - b.x, a.y - b.y);
                x[0].x += sum[j].x;
                x[0].y += sum[j].y;
            }
#pragma unroll
            for (int k = 1; k <= H; k++) {
                float2 c = first, s = make_float2(0, 0);
#pragma unroll
                for (int j = 0; j < H; j++) {
                    const float cosine = fourier_cosine<R>((j + 1) * k),
                                sine = SIGN * fourier_sine<R>((j + 1) * k);
                    c.x = fmaf(cosine, sum[j].x, c.x);
                    c.y = fmaf(cosine, sum[j].y, c.y);
                    s.x = fmaf(sine, difference[j].x, s.x);
                    s.y = fmaf(sine, difference[j].y, s.y);
                }
                x[k] = make_float2(c.x - s.y, c.y + s.x);
                x[R - k] = make_float2(c.x + s.y, c.y - s.x);
            }
        } else {
            /* Point (ODD a + EVEN b) mod R, a < EVEN, b < ODD, goes to the frequency that is a' mod
            ** EVEN and b' mod ODD: a transform along a with exp(.. ODD a a' / EVEN), so the one of
            ** plain order with a' read at ODD a'. */
            float2 grid[ODD][EVEN];
#pragma unroll
            for (int b = 0; b < ODD; b++) {
#pragma unroll
                for (int a = 0; a < EVEN; a++)
                    grid[b][a] = x[(ODD * a + EVEN * b) % R];
                fourier_dft<EVEN, SIGN>::run(grid[b]);
            }
#pragma unroll
            for (int a = 0; a < EVEN; a++) {
                float2 column[ODD];
#pragma unroll
                for (int b = 0; b < ODD; b++)
                    column[b] = grid[b][a];
                fourier_dft<ODD, SIGN>::run(column);
                /* Sums over a and b of x exp(2 pi i (a f / EVEN + b f / ODD)) at f: index f mod
                ** EVEN of the one, f mod ODD of the other. */
#pragma unroll
                for (int b = 0; b < ODD; b++)
#pragma unroll
                    for (int f = 0; f < R; f++)
                        if (f % EVEN == a && f % ODD == b)
                            x[f] = column[b];
            }
        }
    }
};
template <int SIGN>
struct fourier_dft<1, SIGN> {
    __device__ static __forceinline__ void run(float2 *) {}
};

/* The same of x[r] w^r, R a power of two: a factor costs a butterfly that has one nothing, and the
** others are few. */
template <int R, int SIGN>
__device__ static __forceinline__ void fourier_dft_turned(float2 *x, float2 w)
{
    constexpr int H = R / 2, STEPS = R > 2 ? R / 4 : 1;
    float2 even[H], odd[H];
#pragma unroll
    for (int k = 0; k < H; k++) {
        even[k] = x[2 * k];
        odd[k] = x[2 * k + 1];
    }
    if constexpr (R > 2) {
        const float2 w2 = fourier_times(w, w);
        fourier_dft_turned<H, SIGN>(even, w2);
        fourier_dft_turned<H, SIGN>(odd, w2);
    }
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        const float2 turn =
            make_float2(fourier_cos16(k * (16 / R)), SIGN * fourier_cos16(k * (16 / R) + 12));
        float2 u = k == 0 ? w : fourier_times(w, turn);
#pragma unroll
        for (int j = k; j < H; j += STEPS) {
            const float2 e = even[j], o = odd[j];
            const float re = fmaf(-o.y, u.y, fmaf(o.x, u.x, e.x)),
                        im = fmaf(o.x, u.y, fmaf(o.y, u.x, e.y));
            x[j] = make_float2(re, im);
            x[j + H] = make_float2(fmaf(2.0f, e.x, -re), fmaf(2.0f, e.y, -im));
            u = make_float2(-SIGN * u.y, SIGN * u.x); /* a quarter of a turn on */
        }
    }
}

/* Places in shared memory, with a gap every 16 against bank conflicts. */
__device__ static inline int fourier_place(int i)
{
    return i + (i >> 4);
}

/* b mod `done`; POWER: of two. b < 2^14, b / done < 2^12. */
template <bool POWER>
__device__ static inline int fourier_rest(int b, int done)
{
    return POWER ? b & (done - 1) : b - (int)(((float)b + 0.5f) * (1.0f / (float)done)) * done;
}

/* A pass of radix R over transforms of `done` points each that earlier passes have made: point
** b + r n / R is v[q + Q r], b = t + T q. Of fewer `points` than threads could hold there are fewer
** b: warps without any go on. */
template <int R, int T, int SIGN, bool POWER>
__device__ static __forceinline__ void fourier_pass(float2 (&v)[FOURIER_HELD], int t, int done,
                                                    int points = 1 << 30)
{
    constexpr int Q = FOURIER_HELD / R;
#pragma unroll
    for (int q = 0; q < Q; q++) {
        const int b = t + T * q;
        float2 x[R];
        if (!POWER && b * R >= points)
            continue;
#pragma unroll
        for (int r = 0; r < R; r++)
            x[r] = v[q + Q * r];
        if (done > 1) {
            const float k = (float)fourier_rest<POWER>(b, done);
            fourier_dft_turned<R, SIGN>(x, fourier_turn(SIGN * 2.0f * k / (float)(R * done)));
        } else {
            fourier_dft<R, SIGN>::run(x);
        }
#pragma unroll
        for (int r = 0; r < R; r++)
            v[q + Q * r] = x[r];
    }
}

/* Among the T threads of a transform; a block may hold several. */
template <int T>
__device__ static __forceinline__ void fourier_sync(int group)
{
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(T) : "memory");
}

/* The points of a pass to their places. POWER: every `done` is 1 before a radix of 16, or a
** multiple of 16, so that places of equal steps lie at equal steps. */
template <int R, int T, bool POWER>
__device__ static __forceinline__ void fourier_put(const float2 (&v)[FOURIER_HELD], int t, int done,
                                                   int points, float2 *shared)
{
    constexpr int Q = FOURIER_HELD / R;
#pragma unroll
    for (int q = 0; q < Q; q++) {
        const int b = t + T * q, k = fourier_rest<POWER>(b, done), first = (b - k) * R + k;
        const int place = fourier_place(first);
        if (POWER || b * R < points)
#pragma unroll
            for (int r = 0; r < R; r++)
                shared[POWER ? place + r * (done + done / 16) : fourier_place(first + r * done)] =
                    v[q + Q * r];
    }
}

/* And those of the next pass, of radix R. */
template <int R, int T>
__device__ static __forceinline__ void fourier_get(float2 (&v)[FOURIER_HELD], int t, int points,
                                                   const float2 *shared)
{
    constexpr int Q = FOURIER_HELD / R;
    constexpr bool even = T / R % 16 == 0; /* `step` is a multiple of 16 */
    const int step = points / R;
#pragma unroll
    for (int q = 0; q < Q; q++) {
        const int b = t + T * q, place = fourier_place(b);
        if (b < step)
#pragma unroll
            for (int r = 0; r < R; r++)
                v[q + Q * r] =
                    shared[even ? place + r * (step + step / 16) : fourier_place(b + r * step)];
    }
}

template <int R, int T, int NEXT, bool POWER>
__device__ static __forceinline__ void fourier_exchange(float2 (&v)[FOURIER_HELD], int t, int done,
                                                        int points, float2 *shared, int group)
{
    fourier_put<R, T, POWER>(v, t, done, points, shared);
    fourier_sync<T>(group);
    fourier_get<NEXT, T>(v, t, points, shared);
    fourier_sync<T>(group);
}

/* T as a product of radices, 1 where none is left. */
template <int T>
struct fourier_radices {
    static constexpr int A = T == 128 || T == 256 || T == 1024 ? 16 : 8;
    static constexpr int REST = T / A;
    static constexpr int B = REST > 16 ? 8 : REST;
    static constexpr int C = REST / B;
};

/* The passes after a first one of radix `done` that has been put: over T. The last leaves point
** b + r n / LAST in registers. POWER: radix 16, a power of two in all. */
template <int T, int SIGN, bool POWER>
__device__ static __forceinline__ void fourier_passes(float2 (&v)[FOURIER_HELD], int t, int done,
                                                      int points, float2 *shared, int group)
{
    using R = fourier_radices<T>;
    fourier_sync<T>(group);
    fourier_get<R::A, T>(v, t, points, shared);
    fourier_sync<T>(group);
    fourier_pass<R::A, T, SIGN, POWER>(v, t, done, points);
    fourier_exchange<R::A, T, R::B, POWER>(v, t, done, points, shared, group);
    fourier_pass<R::B, T, SIGN, POWER>(v, t, done * R::A, points);
    if constexpr (R::C > 1) {
        fourier_exchange<R::B, T, R::C, POWER>(v, t, done * R::A, points, shared, group);
        fourier_pass<R::C, T, SIGN, POWER>(v, t, done * R::A * R::B, points);
    }
}

/* The first pass of m T points, which radix m makes of the first m that a thread holds. */
template <int M, int T, int SIGN>
__device__ static __forceinline__ void fourier_first_of(float2 (&v)[FOURIER_HELD], int t,
                                                        float2 *shared)
{
    fourier_dft<M, SIGN>::run(v);
#pragma unroll
    for (int r = 0; r < M; r++)
        shared[fourier_place(t * M + r)] = v[r];
}

template <int T, int SIGN>
__device__ static __forceinline__ void fourier_first(float2 (&v)[FOURIER_HELD], int t, int m,
                                                     float2 *shared)
{
    switch (m) {
    case 5: fourier_first_of<5, T, SIGN>(v, t, shared); break;
    case 6: fourier_first_of<6, T, SIGN>(v, t, shared); break;
    case 7: fourier_first_of<7, T, SIGN>(v, t, shared); break;
    case 8: fourier_first_of<8, T, SIGN>(v, t, shared); break;
    case 10: fourier_first_of<10, T, SIGN>(v, t, shared); break;
    case 12: fourier_first_of<12, T, SIGN>(v, t, shared); break;
    case 14: fourier_first_of<14, T, SIGN>(v, t, shared); break;
    default: fourier_first_of<16, T, SIGN>(v, t, shared); break;
    }
}

/* float2 of shared memory for a transform of `points`. */
__host__ __device__ static inline int fourier_room(int points)
{
    return points + points / 16;
}

#endif
