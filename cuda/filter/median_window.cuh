/*
** What the kernels of median_filter and dezinger share: the array and its window, elements and keys
** (median_window.h), and the median of any window by a warp.
*/
#ifndef MB_CUDA_MEDIAN_WINDOW_CUH
#define MB_CUDA_MEDIAN_WINDOW_CUH

#include "filter/median_network.cuh"
#include "ops/filter/median_window.h"
#include "shared/cuda_launch.cuh"

struct median_array {
    int64_t n[3];
    int k[3], count, mode;
    int64_t plane, row;       /* strides of the input */
    int64_t to_plane, to_row; /* and of the result */
};

static inline median_array median_array_of(const mb_median_window &w, const mb_array *a,
                                           const mb_array *to)
{
    median_array m = {{w.n[0], w.n[1], w.n[2]},
                      {w.k[0], w.k[1], w.k[2]},
                      w.count,
                      w.mode,
                      mb_median_plane(a),
                      mb_median_row(a),
                      mb_median_plane(to),
                      mb_median_row(to)};
    return m;
}

__device__ static inline int median_key(float v)
{
    return mb_median_key(__float_as_int(v));
}
__device__ static inline int median_key(uint16_t v)
{
    return v;
}
__device__ static inline int median_key(uint8_t v)
{
    return v;
}
template <class T>
__device__ static inline T median_value(int key)
{
    return (T)key;
}
template <>
__device__ inline float median_value<float>(int key)
{
    return __int_as_float(mb_median_bits(key));
}

__device__ static inline int64_t median_source(const median_array &a, int axis, int64_t i)
{
    return i >= 0 && i < a.n[axis] ? i : mb_pad_source(a.mode, i, a.n[axis]);
}

/* The keys of the column of a window of KZ x KY rows about (z, y), at column x of the array. */
template <int KZ, int KY, class T>
__device__ static __forceinline__ void median_load(const T *in, const median_array &a, int64_t z,
                                                   int64_t y, int64_t x, int (&v)[KZ * KY])
{
    const T *column = in + median_source(a, 2, x);
    int64_t rows[KY];
#pragma unroll
    for (int j = 0; j < KY; j++)
        rows[j] = median_source(a, 1, y + j - KY / 2) * a.row;
#pragma unroll
    for (int i = 0; i < KZ; i++) {
        const T *plane = column + median_source(a, 0, z + i - KZ / 2) * a.plane;
#pragma unroll
        for (int j = 0; j < KY; j++)
            v[i * KY + j] = median_key(plane[rows[j]]);
    }
}

/* ---- any window: its values lie in the lanes of a warp ---- */

/* Few values of a lane are held in registers; many, in local memory. */
/* How far loops over them are unrolled. */
template <int OWN>
struct median_lane {
    static constexpr int unroll = OWN <= 11 ? OWN : 4;
};

__device__ static inline int median_warp_sum(int v)
{
#if __CUDA_ARCH__ >= 800
    return (int)__reduce_add_sync(0xffffffffu, (unsigned)v);
#else
    for (int step = 16; step > 0; step >>= 1)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
#endif
}

/* Bits in which any two values of the warp differ. */
__device__ static inline unsigned median_warp_differ(unsigned differ)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(0xffffffffu, differ);
#else
    for (int step = 16; step > 0; step >>= 1)
        differ |= __shfl_xor_sync(0xffffffffu, differ, step);
    return differ;
#endif
}

__device__ static inline int median_load_key(const void *in, int type, int64_t at)
{
    return type == MB_F32   ? median_key(((const float *)in)[at])
           : type == MB_U16 ? median_key(((const uint16_t *)in)[at])
                            : median_key(((const uint8_t *)in)[at]);
}

/* Where a lane's values of the windows of a row are: OWN of them, at these offsets of rows and
** columns. Those beyond the window's count have the offset -1. */
template <int OWN>
struct median_places {
    int64_t rows[OWN];
    int columns[OWN];

    __device__ __forceinline__ median_places(const median_array &a, int64_t z, int64_t y)
    {
#pragma unroll(median_lane <OWN>::unroll)
        for (int i = 0; i < OWN; i++) {
            const int at = (threadIdx.x & 31) + 32 * i, above = at / a.k[2], dz = above / a.k[1];
            columns[i] = at - above * a.k[2] - a.k[2] / 2;
            rows[i] = at >= a.count
                          ? -1
                          : median_source(a, 0, z + dz - a.k[0] / 2) * a.plane +
                                median_source(a, 1, y + above - dz * a.k[1] - a.k[1] / 2) * a.row;
        }
    }

    /* The keys of the window about column x; those beyond its count are the greatest. */
    __device__ __forceinline__ void gather(const void *in, int type, const median_array &a,
                                           int64_t x, int (&v)[OWN]) const
    {
#pragma unroll(median_lane <OWN>::unroll)
        for (int i = 0; i < OWN; i++)
            v[i] = rows[i] < 0
                       ? 0x7fffffff
                       : median_load_key(in, type, rows[i] + median_source(a, 2, x + columns[i]));
    }
};

/* The key of rank count / 2 (from 0), the same in all lanes: its bits are found from the highest
** one in which keys differ. */
template <int OWN>
__device__ static __forceinline__ int median_select(const int (&v)[OWN], int count)
{
    const unsigned first = (unsigned)__shfl_sync(0xffffffffu, v[0], 0) ^ 0x80000000u;
    const int lane = threadIdx.x & 31;
    unsigned differ = 0;
#pragma unroll(median_lane <OWN>::unroll)
    for (int i = 0; i < OWN; i++)
        differ |= lane + 32 * i < count ? ((unsigned)v[i] ^ 0x80000000u) ^ first : 0;
    differ = median_warp_differ(differ);
    const int bits = 32 - __clz((int)differ);
    unsigned found = bits == 32 ? 0 : first >> bits << bits;
#pragma unroll 1
    for (int bit = bits - 1; bit >= 0; bit--) {
        const unsigned trial = found | 1u << bit;
        const int key = (int)(trial ^ 0x80000000u);
        int below = 0;
#pragma unroll(median_lane <OWN>::unroll)
        for (int i = 0; i < OWN; i++)
            below += v[i] < key;
        if (median_warp_sum(below) <= count / 2)
            found = trial;
    }
    return (int)(found ^ 0x80000000u);
}

__device__ static inline int median_warp_max(int v)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(0xffffffffu, v);
#else
    for (int step = 16; step > 0; step >>= 1)
        v = max(v, __shfl_xor_sync(0xffffffffu, v, step));
    return v;
#endif
}

/* The same, found from a key near it, the median of a neighboring window: from value to value, for
** some steps. */
template <int OWN>
__device__ static __forceinline__ int median_near(const int (&v)[OWN], int count, int near)
{
#pragma unroll 1
    for (int step = 0; step < 12; step++) {
        int below = 0, next = (int)0x80000000, over = (int)0x80000000;
#pragma unroll(median_lane <OWN>::unroll)
        for (int i = 0; i < OWN; i++) {
            below += (v[i] < near) + ((v[i] <= near) << 16);
            next = max(next, v[i] < near ? v[i] : (int)0x80000000);
            over = max(over, v[i] > near ? ~v[i] : (int)0x80000000);
        }
        below = median_warp_sum(below);
        if ((below & 0xffff) > count / 2)
            near = median_warp_max(next);
        else if (below >> 16 <= count / 2)
            near = ~median_warp_max(over);
        else
            return near;
    }
    return median_select<OWN>(v, count);
}

/* Calls f with the number of values a lane holds of a window of `count`, as a constant. */
template <class F>
static inline mb_status median_own(int count, const F &f)
{
    const int own = (count + 31) / 32;
    return own <= 4    ? f(std::integral_constant<int, 4>())
           : own <= 11 ? f(std::integral_constant<int, 11>())
                       : f(std::integral_constant<int, 32>());
}

/* Rows of a grid of warps: blockIdx.y and z go over the rows in steps. */
#define MEDIAN_WARPS 4

static inline dim3 median_blocks(int64_t pieces, int64_t rows)
{
    const int64_t across = (pieces + MEDIAN_WARPS - 1) / MEDIAN_WARPS;
    const int64_t down = rows < 65535 ? rows : 65535;
    return dim3((unsigned)across, (unsigned)down);
}

#endif
