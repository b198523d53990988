/*
** A warp sorts up to 32 E pairs (key, number) in registers: Batcher's merge exchange within the
** lane, then bitonic merges across lanes. E is 2^k or 3 * 2^k. Pairs are compared as a whole, so
** equal keys are in the order of their numbers.
*/
#ifndef MB_CUDA_STRIPES_SORT_CUH
#define MB_CUDA_STRIPES_SORT_CUH

#include "shared/cuda_launch.cuh"

__device__ static __forceinline__ bool mb_pair_less(int ka, unsigned va, int kb, unsigned vb)
{
    return ((long long)ka << 32 | va) < ((long long)kb << 32 | vb);
}

__device__ static __forceinline__ void mb_pair_order(int &ka, unsigned &va, int &kb, unsigned &vb)
{
    const bool swap = mb_pair_less(kb, vb, ka, va);
    const int k = swap ? kb : ka;
    const unsigned v = swap ? vb : va;
    kb = swap ? ka : kb;
    vb = swap ? va : vb;
    ka = k;
    va = v;
}

__host__ __device__ constexpr int mb_power_below(int n)
{
    return n <= 2 ? 1 : 2 * mb_power_below((n + 1) / 2);
}

/* Merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M). */
template <int E, int P, int Q, int R, int D>
__device__ static __forceinline__ void mb_lane_sort(int (&k)[E], unsigned (&v)[E])
{
#pragma unroll
    for (int i = 0; i < E - D; i++)
        if ((i & P) == R)
            mb_pair_order(k[i], v[i], k[i + D], v[i + D]);
    if constexpr (Q != P)
        mb_lane_sort<E, P, Q / 2, P, Q - P>(k, v);
    else if constexpr (P > 1)
        mb_lane_sort<E, P / 2, mb_power_below(E), 0, P / 2>(k, v);
}

/* A bitonic sequence of LEN registers. */
template <int E, int LO, int LEN>
__device__ static __forceinline__ void mb_lane_merge(int (&k)[E], unsigned (&v)[E])
{
    if constexpr (LEN == 3) {
        mb_pair_order(k[LO], v[LO], k[LO + 1], v[LO + 1]);
        mb_pair_order(k[LO + 1], v[LO + 1], k[LO + 2], v[LO + 2]);
        mb_pair_order(k[LO], v[LO], k[LO + 1], v[LO + 1]);
    } else if constexpr (LEN > 1) {
#pragma unroll
        for (int i = 0; i < LEN / 2; i++)
            mb_pair_order(k[LO + i], v[LO + i], k[LO + i + LEN / 2], v[LO + i + LEN / 2]);
        mb_lane_merge<E, LO, LEN / 2>(k, v);
        mb_lane_merge<E, LO + LEN / 2, LEN / 2>(k, v);
    }
}

__device__ static __forceinline__ void mb_pair_take(int &k, unsigned &v, int other_k,
                                                    unsigned other_v, bool upper)
{
    const bool swap = mb_pair_less(other_k, other_v, k, v) != upper;
    k = swap ? other_k : k;
    v = swap ? other_v : v;
}

/* Ascending over (lane, register). */
template <int E>
__device__ static __forceinline__ void mb_warp_sort(int (&k)[E], unsigned (&v)[E], int lane)
{
    constexpr int TOP = mb_power_below(E);
    mb_lane_sort<E, TOP, TOP, 0, TOP>(k, v);
#pragma unroll 1
    for (int width = 2; width <= 32; width *= 2) {
        const bool upper = lane & (width / 2);
#pragma unroll
        for (int j = 0; j < E / 2; j++) { /* the other half backwards: bitonic */
            const int ka = __shfl_xor_sync(~0u, k[E - 1 - j], width - 1);
            const unsigned va = __shfl_xor_sync(~0u, v[E - 1 - j], width - 1);
            const int kb = __shfl_xor_sync(~0u, k[j], width - 1);
            const unsigned vb = __shfl_xor_sync(~0u, v[j], width - 1);
            mb_pair_take(k[j], v[j], ka, va, upper);
            mb_pair_take(k[E - 1 - j], v[E - 1 - j], kb, vb, upper);
        }
#pragma unroll 1
        for (int d = width / 4; d >= 1; d /= 2) {
            const bool up = lane & d;
#pragma unroll
            for (int j = 0; j < E; j++) {
                const int ka = __shfl_xor_sync(~0u, k[j], d);
                const unsigned va = __shfl_xor_sync(~0u, v[j], d);
                mb_pair_take(k[j], v[j], ka, va, up);
            }
        }
        mb_lane_merge<E, 0, E>(k, v);
    }
}

#endif
