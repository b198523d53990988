/*
** The transfer function of a few planes (ops/fft/op_otf.h), made along z where it is needed: by the
** passes of Moonbeam in registers (mb_otf_multiply, and fft_split.cuh), beside the FFT library by a
** kernel over the spectrum (mb_cuda_otf_planes_multiply). Plane p and plane -p have conjugate
** turns. The passes of fft/otf_taps.cuh need no transform along z.
*/
#ifndef MB_CUDA_OTF_PLANES_CUH
#define MB_CUDA_OTF_PLANES_CUH

#include "shared/cuda_launch.cuh"
#include "shared/fft_registers.cuh"
#include "ops/fft/op_otf.h"

#define MB_OTF_REACH (MB_OTF_MOST_PLANES / 2)

/* Adds plane p, `a`, and plane -p, `b`, of which `w` is the turn of a, to the sums of planes that
** have the same turns from one of G frequencies to the next. */
template <int G>
__device__ static __forceinline__ void mb_otf_add(float2 (&q)[G], int p, float2 a, float2 b,
                                                  float2 w)
{
    float2 &up = q[p % G], &down = q[(G - p % G) % G];
    up.x = fmaf(a.x, w.x, fmaf(-a.y, w.y, up.x));
    up.y = fmaf(a.x, w.y, fmaf(a.y, w.x, up.y));
    down.x = fmaf(b.x, w.x, fmaf(b.y, w.y, down.x));
    down.y = fmaf(b.y, w.x, fmaf(-b.x, w.y, down.y));
}

/* The planes of W neighboring columns in shared memory, [plane][column]. `otf` is the thread's
** column in the first plane; threads of a block are column + W t. */
template <int W>
__device__ static __forceinline__ void mb_otf_load_planes(float2 *to, const float2 *otf,
                                                          int64_t stride, int planes, bool real)
{
    for (int i = threadIdx.x / W; i < planes; i += blockDim.x / W)
        to[i * W + threadIdx.x % W] = real ? __ldcg(otf + i * stride) : make_float2(0, 0);
}

/* exp(-2 pi i p t / N) for plane p and thread t, from the table of the transform. That of 64 points
** has turns for p < 8 alone. */
template <class C>
__device__ static __forceinline__ float2 mb_otf_turn(const float2 *table, int p, int t)
{
    if (C::passes == 1)
        return make_float2(1, 0);
    if (C::passes == 2 && p < C::R1)
        return table[t * C::R1 + p];
    if (C::passes == 2) {
        const float2 half = table[t * C::R1 + C::R1 / 2];
        return mb_fft_mul(table[t * C::R1 + p - C::R1], mb_fft_mul(half, half));
    }
    return table[C::second + C::third / 2 + p * t];
}

/* Multiplies the points of a column, those of thread t, by the factors of its planes, whose real
** part is multiplied by `scale` and whose imaginary part by `turn`. `middle` is the plane of z = 0
** in shared memory, `step` float2 before the next. The points t + T (S m + s) with m < G come from
** a transform of G points. */
template <class C>
__device__ static __forceinline__ void mb_otf_multiply(float2 (&v)[C::E], const float2 *middle,
                                                       int step, int reach, const float2 *table,
                                                       int t, float scale, float turn)
{
    constexpr int G = C::E < 16 ? C::E : 16, S = C::E / G;
    static_assert(C::passes != 2 || (C::T <= C::R2 && 2 * C::R1 > MB_OTF_REACH), "table");
    static_assert(C::passes != 3 || C::R3 == 2, "table");
#pragma unroll
    for (int s = 0; s < S; s++) {
        float2 q[G];
        q[0] = middle[0];
#pragma unroll
        for (int i = 1; i < G; i++)
            q[i] = make_float2(0, 0);
#pragma unroll
        for (int p = 1; p <= MB_OTF_REACH; p++) {
            if (p > reach)
                break;
            const int k = 32 / C::E * s * p;
            const float2 w = mb_otf_turn<C>(table, p, t),
                         more = make_float2(mb_fft_cos32(k), -mb_fft_cos32(k + 24));
            mb_otf_add<G>(q, p, middle[p * step], middle[-p * step],
                          s > 0 ? mb_fft_mul(w, more) : w);
        }
        mb_fft_dft<G>::run(q);
#pragma unroll
        for (int m = 0; m < G; m++)
            v[S * m + s] = mb_fft_mul(v[S * m + s], make_float2(q[m].x * scale, q[m].y * turn));
    }
}

/* ---- beside the library ---- */

#define MB_OTF_COLUMNS 128 /* of a block, a thread each */
#define MB_OTF_DEEP 64     /* frequencies k of a block, and as many -k */
#define MB_OTF_AT_ONCE 4   /* of them with each look at the planes */

struct mb_otf_planes_job {
    float2 *a;
    const float2 *otf;
    int64_t nz, columns;
    int reach, deep; /* deep: parts of MB_OTF_DEEP frequencies */
    float scale, turn;
};

/* The frequencies z ... z + K - 1 of a column and their opposites. As on the host
** (runtime/ops/fft/otf_planes.c), sums and differences of planes p and -p give the factors of z and
** of -z. */
__device__ static __forceinline__ void mb_otf_column(const mb_otf_planes_job &job, int64_t z,
                                                     int64_t column, float2 middle,
                                                     const float4 *both, const float2 *roots)
{
    constexpr int K = MB_OTF_AT_ONCE;
    float2 even[K], odd[K], x[K], y[K];
    float2 *at = job.a + z * job.columns + column,
           *opposite = job.a + (job.nz - z) * job.columns + column;
#pragma unroll
    for (int k = 0; k < K; k++) {
        even[k] = middle;
        odd[k] = make_float2(0, 0);
        if (2 * (z + k) <= job.nz)
            x[k] = at[k * job.columns];
        if (z + k > 0 && 2 * (z + k) < job.nz)
            y[k] = opposite[-k * job.columns];
    }
    for (int p = 0; p < job.reach; p++) {
        const float4 f = both[p * MB_OTF_COLUMNS];
#pragma unroll
        for (int k = 0; k < K; k++) {
            const float2 w = roots[p * MB_OTF_DEEP + k];
            even[k].x = fmaf(f.x, w.x, even[k].x);
            even[k].y = fmaf(f.y, w.x, even[k].y);
            odd[k].x = fmaf(f.z, w.y, odd[k].x);
            odd[k].y = fmaf(f.w, w.y, odd[k].y);
        }
    }
#pragma unroll
    for (int k = 0; k < K; k++) {
        const float2 e = even[k], o = odd[k];
        if (2 * (z + k) <= job.nz)
            at[k * job.columns] =
                mb_fft_mul(x[k], make_float2(job.scale * (e.x - o.y), job.turn * (e.y + o.x)));
        if (z + k > 0 && 2 * (z + k) < job.nz)
            opposite[-k * job.columns] =
                mb_fft_mul(y[k], make_float2(job.scale * (e.x + o.y), job.turn * (e.y - o.x)));
    }
}

/* Blocks that have the same columns are neighbors, so that the planes come from the cache. */
__global__ static void __launch_bounds__(MB_OTF_COLUMNS)
    mb_otf_planes_kernel(const mb_otf_planes_job job)
{
    __shared__ float4 both[MB_OTF_REACH * MB_OTF_COLUMNS]; /* sums and differences, [p][column] */
    __shared__ float2 roots[MB_OTF_REACH * MB_OTF_DEEP];   /* [p][k], of this block */
    const int64_t first = (int64_t)(blockIdx.x % job.deep) * MB_OTF_DEEP;
    for (int i = threadIdx.x; i < job.reach * MB_OTF_DEEP; i += MB_OTF_COLUMNS) {
        const int64_t turns = (i / MB_OTF_DEEP + 1) * (first + i % MB_OTF_DEEP) % job.nz;
        double s, c;
        sincospi(-2.0 * (double)turns / (double)job.nz, &s, &c);
        roots[i] = make_float2((float)c, (float)s);
    }
    __syncthreads();
    for (int64_t column = (int64_t)(blockIdx.x / job.deep) * MB_OTF_COLUMNS + threadIdx.x;
         column < job.columns; column += (int64_t)(gridDim.x / job.deep) * MB_OTF_COLUMNS) {
        const float2 *middle = job.otf + job.reach * job.columns + column, m = *middle;
        for (int p = 1; p <= job.reach; p++) {
            const float2 a = middle[p * job.columns], b = middle[-p * job.columns];
            both[(p - 1) * MB_OTF_COLUMNS + threadIdx.x] =
                make_float4(a.x + b.x, a.y + b.y, a.x - b.x, a.y - b.y);
        }
        for (int i = 0; i < MB_OTF_DEEP && 2 * (first + i) <= job.nz; i += MB_OTF_AT_ONCE)
            mb_otf_column(job, first + i, column, m, both + threadIdx.x, roots + i);
    }
}

/* Multiplies a, nz planes of so many complex numbers, by the transfer function of `planes` planes
** or its conjugate, and by scale. */
static inline mb_status mb_cuda_otf_planes_multiply(const mb_op_call *call, float2 *a,
                                                    const float2 *otf, int planes, int64_t nz,
                                                    int64_t columns, double scale, bool conj)
{
    const int64_t across = (columns + MB_OTF_COLUMNS - 1) / MB_OTF_COLUMNS,
                  deep = (nz / 2 + MB_OTF_DEEP) / MB_OTF_DEEP,
                  most = (int64_t)call->device->facts.threads * 16 / deep + 1;
    const mb_otf_planes_job job = {
        a, otf, nz, columns, planes / 2, (int)deep, (float)scale, (float)(conj ? -scale : scale)};
    mb_otf_planes_kernel<<<(unsigned)(deep * (across < most ? across : most)), MB_OTF_COLUMNS, 0,
                           mb_stream(call)>>>(job);
    return MB_LAUNCH_STATUS("mb_otf_planes_kernel");
}

#endif
