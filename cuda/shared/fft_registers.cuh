/*
** Fourier transforms of one thread group: N points over T = N/E threads, E of them in each thread's
** registers, by the Stockham scheme. Thread t holds points t + T*j (j = 0 ... E-1) before and
** after, in natural order both times, so a spectrum can be changed in registers and transformed
** back. Between passes the points go through shared memory. The transform is unnormalized, with
** exp(-2 pi i jk/N). The inverse is the same transform between two swaps of real and imaginary
** parts, which cost nothing in registers. Twiddle factors come from a table in shared memory,
** rounded from double precision.
*/
#ifndef MB_CUDA_FFT_REGISTERS_CUH
#define MB_CUDA_FFT_REGISTERS_CUH

#include <cuda_runtime.h>

/* The factorization of N points: radices R1 * R2 * R3 = N, each a divisor of E. */
template <int N_, int E_, int R1_, int R2_ = 1, int R3_ = 1>
struct mb_fft_cut {
    static constexpr int N = N_, E = E_, T = N_ / E_, R1 = R1_, R2 = R2_, R3 = R3_;
    static constexpr int passes = R3 > 1 ? 3 : R2 > 1 ? 2 : 1;
    /* The table has the factors of the second pass, [r][p] with p < R1, then those of the third,
    ** p < R1 * R2. */
    static constexpr int second = R2 > 1 ? R1 *R2 : 0, third = R3 > 1 ? R1 *R2 *R3 : 0;
    static constexpr int table = second + third;
    /* Points of one exchange in shared memory, with a gap every R1 points to avoid bank
    ** conflicts. */
    static constexpr int room = N + N / R1;
    static_assert(R1 * R2 * R3 == N && E % R1 == 0 && E % R2 == 0 && E % R3 == 0, "no such cut");
};

/* The factorization of N points. The points per thread in ops/fused_fft.h must agree with it. */
template <int N>
struct mb_fft_cut_of : mb_fft_cut<N, 32, 32, N / 32> {
};
template <>
struct mb_fft_cut_of<16> : mb_fft_cut<16, 16, 16> {
};
template <>
struct mb_fft_cut_of<64> : mb_fft_cut<64, 8, 8, 8> {
};
template <>
struct mb_fft_cut_of<128> : mb_fft_cut<128, 16, 16, 8> {
};
template <>
struct mb_fft_cut_of<256> : mb_fft_cut<256, 16, 16, 16> {
};
template <>
struct mb_fft_cut_of<2048> : mb_fft_cut<2048, 32, 32, 32, 2> {
};

__device__ static __forceinline__ float2 mb_fft_mul(float2 a, float2 w)
{
    return make_float2(fmaf(-a.y, w.y, a.x * w.x), fmaf(a.y, w.x, a.x * w.y));
}

__device__ static __forceinline__ float2 mb_fft_swap(float2 a)
{
    return make_float2(a.y, a.x);
}

__device__ static __forceinline__ float2 mb_fft_conj(float2 a)
{
    return make_float2(a.x, -a.y);
}

/* cos(2 pi k / 32) for k = 0 ... 31; folds to a constant once k is known. */
__device__ static __forceinline__ constexpr float mb_fft_cos32(int k)
{
    k &= 31;
    k = k > 16 ? 32 - k : k;
    const bool negative = k > 8;
    k = negative ? 16 - k : k;
    const float c = k == 0   ? 1.0f
                    : k == 1 ? 0.98078528040323044913f
                    : k == 2 ? 0.92387953251128675613f
                    : k == 3 ? 0.83146961230254523708f
                    : k == 4 ? 0.70710678118654752440f
                    : k == 5 ? 0.55557023301960222474f
                    : k == 6 ? 0.38268343236508977173f
                    : k == 7 ? 0.19509032201612826785f
                             : 0.0f;
    return negative ? -c : c;
}

/* The DFT of R values in registers, natural order, R a power of two up to 32. */
template <int R>
struct mb_fft_dft {
    __device__ static __forceinline__ void run(float2 (&x)[R])
    {
        float2 even[R / 2], odd[R / 2];
#pragma unroll
        for (int k = 0; k < R / 2; k++) {
            even[k] = x[2 * k];
            odd[k] = x[2 * k + 1];
        }
        mb_fft_dft<R / 2>::run(even);
        mb_fft_dft<R / 2>::run(odd);
#pragma unroll
        for (int k = 0; k < R / 2; k++) {
            const float2 e = even[k], o = odd[k];
            if (k == 0) {
                x[0] = make_float2(e.x + o.x, e.y + o.y);
                x[R / 2] = make_float2(e.x - o.x, e.y - o.y);
            } else if (4 * k == R) {
                x[k] = make_float2(e.x + o.y, e.y - o.x);
                x[k + R / 2] = make_float2(e.x - o.y, e.y + o.x);
            } else {
                const float c = mb_fft_cos32(k * (32 / R));
                const float s = -mb_fft_cos32(k * (32 / R) + 24);
                const float re = fmaf(-o.y, s, fmaf(o.x, c, e.x));
                const float im = fmaf(o.x, s, fmaf(o.y, c, e.y));
                x[k] = make_float2(re, im);
                x[k + R / 2] = make_float2(fmaf(2.0f, e.x, -re), fmaf(2.0f, e.y, -im));
            }
        }
    }
};
template <>
struct mb_fft_dft<1> {
    __device__ static __forceinline__ void run(float2 (&)[1]) {}
};

/* One pass of radix R over the results of NS-point transforms. */
template <class C, int NS, int R>
__device__ static __forceinline__ void mb_fft_pass(float2 (&v)[C::E], int t, const float2 *table)
{
    constexpr int B = C::E / R;
#pragma unroll
    for (int b = 0; b < B; b++) {
        float2 x[R];
        const int p = (t + C::T * b) % NS;
#pragma unroll
        for (int r = 0; r < R; r++) {
            x[r] = v[b + B * r];
            if (NS > 1 && r > 0)
                x[r] = mb_fft_mul(x[r], table[r * NS + p]);
        }
        mb_fft_dft<R>::run(x);
#pragma unroll
        for (int r = 0; r < R; r++)
            v[b + B * r] = x[r];
    }
}

/* The place of point t + T*j in shared memory. The gaps are added at compile time, except for those
** that depend on the thread. */
template <class C>
__device__ static __forceinline__ int mb_fft_place(int t)
{
    return C::T > C::R1 ? t + t / C::R1 : t;
}
template <class C>
__device__ static __forceinline__ constexpr int mb_fft_offset(int j)
{
    return C::T * j + C::T * j / C::R1;
}

template <bool WARP>
__device__ static __forceinline__ void mb_fft_sync(void)
{
    if (WARP)
        __syncwarp();
    else
        __syncthreads();
}

/* After a pass (NS, R): stores the points in their places, and loads those that thread t needs
** next. `width` columns are adjacent; NS is 1 or R1. */
template <class C, int NS, int R, bool WARP>
__device__ static __forceinline__ void mb_fft_exchange(float2 (&v)[C::E], int t, float2 *points,
                                                       int width, int lane)
{
    constexpr int B = C::E / R;
    static_assert((NS == 1 && R == C::R1) || NS == C::R1, "gaps");
    mb_fft_sync<WARP>(); /* all earlier reads are finished */
#pragma unroll
    for (int b = 0; b < B; b++) {
        const unsigned i = t + C::T * b;
        float2 *to = points + (i / NS * (R * NS + (NS == 1 ? 1 : R)) + i % NS) * width + lane;
#pragma unroll
        for (int r = 0; r < R; r++)
            to[r * (NS == 1 ? 1 : NS + 1) * width] = v[b + B * r];
    }
    mb_fft_sync<WARP>();
    const float2 *from = points + mb_fft_place<C>(t) * width + lane;
#pragma unroll
    for (int j = 0; j < C::E; j++)
        v[j] = from[mb_fft_offset<C>(j) * width];
}

/* The transform of thread group (t, lane). WARP: the group, and all groups that share `points`, are
** within one warp. */
template <class C, bool WARP>
__device__ static __forceinline__ void mb_fft_run(float2 (&v)[C::E], int t, const float2 *table,
                                                  float2 *points, int width, int lane)
{
    mb_fft_pass<C, 1, C::R1>(v, t, table);
    if (C::passes > 1) {
        mb_fft_exchange<C, 1, C::R1, WARP>(v, t, points, width, lane);
        mb_fft_pass<C, C::R1, C::R2>(v, t, table);
    }
    if (C::passes > 2) {
        mb_fft_exchange<C, C::R1, C::R2, WARP>(v, t, points, width, lane);
        mb_fft_pass<C, C::R1 * C::R2, C::R3>(v, t, table + C::second);
    }
}

/* exp(-2 pi i k / n) */
__device__ static __forceinline__ float2 mb_fft_root(int k, int n)
{
    double s, c;
    sincospi(-2.0 * k / n, &s, &c);
    return make_float2((float)c, (float)s);
}

/* Fills the table of a factorization. All threads of the block must call it; the caller
** synchronizes. */
template <class C>
__device__ static __forceinline__ void mb_fft_fill_table(float2 *table)
{
    for (int i = threadIdx.x; i < C::second; i += blockDim.x)
        table[i] = mb_fft_root(i / C::R1 * (i % C::R1), C::R1 * C::R2);
    for (int i = threadIdx.x; i < C::third; i += blockDim.x)
        table[C::second + i] =
            mb_fft_root(i / (C::R1 * C::R2) * (i % (C::R1 * C::R2)), C::R1 * C::R2 * C::R3);
}

#endif
