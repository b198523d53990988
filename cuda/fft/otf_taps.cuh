/*
** The product with a transfer function in planes (ops/fft/op_otf.h) without a transform along z: a
** column of the spectra of planes is convolved along z, circularly, with the column of the planes,
** its taps. That is 4 multiplications a tap and a point. A thread takes a column from its first
** plane to its last, so each point is read once and written once, in place, and all columns of a
** plane are neighbors. The points that a result needs are in registers, as are those that are on
** their way from memory.
*/
#ifndef MB_CUDA_FFT_OTF_TAPS_CUH
#define MB_CUDA_FFT_OTF_TAPS_CUH

#include "shared/cuda_launch.cuh"
#include "ops/fft/op_otf.h"

#define MB_TAPS_THREADS 128
#define MB_TAPS_REACH 8 /* at most */

struct taps_job {
    float2 *data;
    const float2 *otf; /* rows of points + 1 */
    int reach;         /* of the planes of otf: -reach ... reach */
    int planes;        /* of data */
    int rows, points;  /* of a plane; points exclude the highest frequency */
    float scale;
    bool conj;
};

/* The taps of a column; those beyond the planes of otf are 0. The conjugate of a transfer function
** is that of the conjugate taps in reverse. */
template <int REACH>
__device__ static __forceinline__ void load_taps(float2 (&tap)[2 * REACH + 1], const taps_job &job,
                                                 const float2 *middle, int64_t stride)
{
#pragma unroll
    for (int p = -REACH; p <= REACH; p++) {
        float2 &to = tap[p + REACH];
        to = make_float2(0, 0);
        if (p >= -job.reach && p <= job.reach) {
            to = middle[(job.conj ? -p : p) * stride];
            to.x *= job.scale;
            to.y *= job.conj ? -job.scale : job.scale;
        }
    }
}

/* P = 2 REACH + 1 steps at a time, after which each point is in the same register again: that of
** plane z in window[(z + REACH) % P]. A step takes the next point from `next`, and asks for the one
** that takes its place P steps later. The points of the first planes, which the last results need
** too, are written over before: they are kept in shared memory. */
template <int REACH>
__global__ void __launch_bounds__(MB_TAPS_THREADS) taps_kernel(const taps_job job)
{
    constexpr int P = 2 * REACH + 1;
    __shared__ float2 begin[REACH][MB_TAPS_THREADS];
    const int64_t body = (int64_t)job.rows * job.points, stride = body + job.rows,
                  c = (int64_t)blockIdx.x * MB_TAPS_THREADS + threadIdx.x;
    if (c >= stride)
        return;
    /* The grid stores the highest frequencies after the others, otf at the end of each row. */
    const int64_t at =
        c < body ? c + (unsigned)c / job.points : (c - body) * (job.points + 1) + job.points;
    float2 tap[P], window[P], next[P];
    float2 *column = job.data + c;
#pragma unroll
    for (int i = 0; i < 2 * REACH; i++) {
        const int z = i - REACH < 0 ? i - REACH + job.planes : i - REACH;
        window[i] = __ldcs(column + z * stride);
    }
    float2 *to = column;
    const float2 *from = column + REACH * stride;
#pragma unroll
    for (int i = 0; i < P; i++, from += stride)
        if (REACH + i < job.planes)
            next[i] = __ldcs(from);
    load_taps<REACH>(tap, job, job.otf + (int64_t)job.reach * stride + at, stride);
#pragma unroll
    for (int i = 0; i < REACH; i++)
        begin[i][threadIdx.x] = window[REACH + i];
#pragma unroll 1
    for (int first = 0; first < job.planes; first += P) {
#pragma unroll
        for (int i = 0; i < P; i++) {
            const int z = first + i, ahead = z + REACH;
            if (z >= job.planes)
                break;
            window[(i + 2 * REACH) % P] =
                ahead < job.planes ? next[i] : begin[ahead - job.planes][threadIdx.x];
            if (ahead + P < job.planes)
                next[i] = __ldcs(from);
            from += stride;
            float2 even = make_float2(0, 0), odd = even;
#pragma unroll
            for (int k = 0; k < P; k++) { /* the point of plane z + REACH - k */
                const float2 w = tap[k], v = window[(i + 2 * REACH - k) % P];
                even.x = fmaf(w.x, v.x, even.x);
                even.y = fmaf(w.x, v.y, even.y);
                odd.x = fmaf(w.y, v.y, odd.x);
                odd.y = fmaf(w.y, v.x, odd.y);
            }
            __stcs(to, make_float2(even.x - odd.x, even.y + odd.y));
            to += stride;
        }
    }
}

template <int REACH>
static mb_status launch_taps(const mb_op_call *call, const taps_job &job)
{
    const int64_t columns = (int64_t)job.rows * (job.points + 1);
    taps_kernel<REACH><<<(unsigned)((columns + MB_TAPS_THREADS - 1) / MB_TAPS_THREADS),
                         MB_TAPS_THREADS, 0, mb_stream(call)>>>(job);
    MB_LAUNCHED("taps_kernel");
    return MB_STATUS_OK;
}

/* Whether this is faster than transforms. A convolution of 1024^3 on an H200: 12.4 -> 11.2 ms with
** 9 planes, 12.4 -> 11.3 with 17, 12.5 -> 11.7 with 23, 12.6 ms both ways with 31, where smaller
** grids lose a tenth. Few columns leave the device idle. */
static bool taps_pay(const mb_device_facts *facts, const taps_job &job)
{
    return job.reach <= MB_TAPS_REACH &&
           (int64_t)job.rows * (job.points + 1) >= (int64_t)MB_TAPS_THREADS * facts->threads;
}

static mb_status taps(const mb_op_call *call, const taps_job &job)
{
    if (job.reach <= 2)
        return launch_taps<2>(call, job);
    if (job.reach <= 4)
        return launch_taps<4>(call, job);
    if (job.reach <= 6)
        return launch_taps<6>(call, job);
    return launch_taps<MB_TAPS_REACH>(call, job);
}

#endif
