/*
** Transforms of a thread group (fft_registers.cuh) of lines whose second half is zero, or of which
** only the first half is wanted: the first pass leaves out what is zero, the last what nobody
** reads. Also lengths 3 * 2^k, whose last radix has the factor 3.
*/
#ifndef MB_CUDA_FFT_HALVES_CUH
#define MB_CUDA_FFT_HALVES_CUH

#include "shared/fft_registers.cuh"

/* cos(2 pi k / 24), folds to a constant once k is known. */
__device__ static __forceinline__ constexpr float mb_fft_cos24(int k)
{
    k %= 24;
    k = k > 12 ? 24 - k : k;
    const bool negative = k > 6;
    k = negative ? 12 - k : k;
    const float c = k == 0   ? 1.0f
                    : k == 1 ? 0.96592582628906828675f
                    : k == 2 ? 0.86602540378443864676f
                    : k == 3 ? 0.70710678118654752440f
                    : k == 4 ? 0.5f
                    : k == 5 ? 0.25881904510252076235f
                             : 0.0f;
    return negative ? -c : c;
}

/* exp(-2 pi i k / R), R a divisor of 32 or 24. */
template <int R>
__device__ static __forceinline__ constexpr float2 mb_fft_turn(int k)
{
    return R % 3 == 0 ? float2{mb_fft_cos24(k * (24 / R)), -mb_fft_cos24(k * (24 / R) + 18)}
                      : float2{mb_fft_cos32(k * (32 / R)), -mb_fft_cos32(k * (32 / R) + 24)};
}

/* a + b w, with a - b w in the second: two results of a butterfly. */
__device__ static __forceinline__ void mb_fft_butterfly(float2 a, float2 b, float2 w, float2 &sum,
                                                        float2 &rest)
{
    sum = make_float2(fmaf(-b.y, w.y, fmaf(b.x, w.x, a.x)), fmaf(b.x, w.y, fmaf(b.y, w.x, a.y)));
    rest = make_float2(fmaf(2.0f, a.x, -sum.x), fmaf(2.0f, a.y, -sum.y));
}

/* The DFT of R values in registers, R a power of two or 3 times one. */
template <int R>
struct mb_fft_dft_any {
    __device__ static __forceinline__ void run(float2 (&x)[R])
    {
        if constexpr (R == 3) {
            const float2 a = x[0], s = make_float2(x[1].x + x[2].x, x[1].y + x[2].y),
                         d = make_float2(x[1].x - x[2].x, x[1].y - x[2].y),
                         m = make_float2(fmaf(-0.5f, s.x, a.x), fmaf(-0.5f, s.y, a.y));
            constexpr float root = 0.86602540378443864676f;
            x[0] = make_float2(a.x + s.x, a.y + s.y);
            x[1] = make_float2(fmaf(root, d.y, m.x), fmaf(-root, d.x, m.y));
            x[2] = make_float2(fmaf(-root, d.y, m.x), fmaf(root, d.x, m.y));
        } else if constexpr (R % 3 == 0) {
            float2 even[R / 2], odd[R / 2];
#pragma unroll
            for (int k = 0; k < R / 2; k++) {
                even[k] = x[2 * k];
                odd[k] = x[2 * k + 1];
            }
            mb_fft_dft_any<R / 2>::run(even);
            mb_fft_dft_any<R / 2>::run(odd);
#pragma unroll
            for (int k = 0; k < R / 2; k++)
                mb_fft_butterfly(even[k], odd[k], mb_fft_turn<R>(k), x[k], x[k + R / 2]);
        } else {
            mb_fft_dft<R>::run(x);
        }
    }
};

/* x[R / 2] and on count as zero, and are not read. */
template <int R>
__device__ static __forceinline__ void mb_fft_dft_half_in(float2 (&x)[R])
{
    float2 even[R / 2], odd[R / 2];
#pragma unroll
    for (int k = 0; k < R / 2; k++) {
        even[k] = x[k];
        odd[k] = k == 0 ? x[k] : mb_fft_mul(x[k], mb_fft_turn<R>(k));
    }
    mb_fft_dft_any<R / 2>::run(even);
    mb_fft_dft_any<R / 2>::run(odd);
#pragma unroll
    for (int k = 0; k < R / 2; k++) {
        x[2 * k] = even[k];
        x[2 * k + 1] = odd[k];
    }
}

/* x[R / 2] and on are left as they are. */
template <int R>
__device__ static __forceinline__ void mb_fft_dft_half_out(float2 (&x)[R])
{
    float2 even[R / 2], odd[R / 2];
#pragma unroll
    for (int k = 0; k < R / 2; k++) {
        even[k] = x[2 * k];
        odd[k] = x[2 * k + 1];
    }
    mb_fft_dft_any<R / 2>::run(even);
    mb_fft_dft_any<R / 2>::run(odd);
#pragma unroll
    for (int k = 0; k < R / 2; k++) {
        const float2 a = even[k], b = odd[k], w = mb_fft_turn<R>(k);
        x[k] = k == 0 ? make_float2(a.x + b.x, a.y + b.y)
                      : make_float2(fmaf(-b.y, w.y, fmaf(b.x, w.x, a.x)),
                                    fmaf(b.x, w.y, fmaf(b.y, w.x, a.y)));
    }
}

/* The last pass, of radix R over transforms of NS points. */
template <class C, int NS, int R, bool OUT>
__device__ static __forceinline__ void mb_fft_last_pass(float2 (&v)[C::E], int t,
                                                        const float2 *table)
{
    constexpr int B = C::E / R;
#pragma unroll
    for (int b = 0; b < B; b++) {
        float2 x[R];
        const int p = (t + C::T * b) % NS;
#pragma unroll
        for (int r = 0; r < R; r++)
            x[r] = r == 0 ? v[b] : mb_fft_mul(v[b + B * r], table[r * NS + p]);
        if constexpr (OUT)
            mb_fft_dft_half_out<R>(x);
        else
            mb_fft_dft_any<R>::run(x);
#pragma unroll
        for (int r = 0; r < (OUT ? R / 2 : R); r++)
            v[b + B * r] = x[r];
    }
}

/* The transform of thread group (t, lane), like mb_fft_run. IN: points N / 2 and on are zero, and
** v[E / 2] and on are not read. OUT: only points below N / 2 are wanted, and v[E / 2] and on are of
** no use afterwards. */
template <class C, bool IN, bool OUT>
__device__ static __forceinline__ void
mb_fft_run_half(float2 (&v)[C::E], int t, const float2 *table, float2 *points, int width, int lane)
{
    static_assert(C::passes > 1, "two or three passes");
    if constexpr (IN) {
        constexpr int B = C::E / C::R1;
#pragma unroll
        for (int b = 0; b < B; b++) {
            float2 x[C::R1];
#pragma unroll
            for (int r = 0; r < C::R1 / 2; r++)
                x[r] = v[b + B * r];
            mb_fft_dft_half_in<C::R1>(x);
#pragma unroll
            for (int r = 0; r < C::R1; r++)
                v[b + B * r] = x[r];
        }
    } else {
        mb_fft_pass<C, 1, C::R1>(v, t, table);
    }
    mb_fft_exchange<C, 1, C::R1, false>(v, t, points, width, lane);
    if constexpr (C::passes == 2) {
        mb_fft_last_pass<C, C::R1, C::R2, OUT>(v, t, table);
    } else {
        mb_fft_pass<C, C::R1, C::R2>(v, t, table);
        mb_fft_exchange<C, C::R1, C::R2, false>(v, t, points, width, lane);
        mb_fft_last_pass<C, C::R1 * C::R2, C::R3, OUT>(v, t, table + C::second);
    }
}

#endif
