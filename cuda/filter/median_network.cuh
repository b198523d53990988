/*
** Medians of small windows by a warp, in registers: each lane sorts the values of its column of the
** window, and takes over the sorted columns of its neighbors, by twos and fours. Exchanges are
** Batcher's merge exchange, written out at compile time; what the median does not depend on falls
** away in the compiler.
*/
#ifndef MB_CUDA_MEDIAN_NETWORK_CUH
#define MB_CUDA_MEDIAN_NETWORK_CUH

#include <stdint.h>
#include <utility>

/* Exchanges of values by their places; afterwards the i-th least is at order[i]. */
template <int VALUES, int MOST>
struct median_net {
    int count = 0;
    uint8_t low[MOST] = {}, high[MOST] = {}, order[VALUES] = {};

    constexpr void exchange(int a, int b)
    {
        low[count] = (uint8_t)a;
        high[count] = (uint8_t)b;
        count++;
    }

    /* The odd-even merge of every stride-th of m places of x and n places of y, both sorted. */
    constexpr void merge(const uint8_t *x, int m, const uint8_t *y, int n, int stride, uint8_t *out)
    {
        uint8_t v[VALUES + 1] = {}, w[VALUES + 1] = {};
        if (m == 0 || n == 0) {
            for (int i = 0; i < m + n; i++)
                out[i] = m ? x[i * stride] : y[i * stride];
            return;
        }
        if (m == 1 && n == 1) {
            exchange(*x, *y);
            out[0] = *x;
            out[1] = *y;
            return;
        }
        const int odd = (m + 1) / 2 + (n + 1) / 2, even = m / 2 + n / 2;
        merge(x, (m + 1) / 2, y, (n + 1) / 2, 2 * stride, v);
        merge(m < 2 ? x : x + stride, m / 2, n < 2 ? y : y + stride, n / 2, 2 * stride, w);
        int at = 0;
        out[at++] = v[0];
        for (int i = 0; i < even; i++) {
            if (i + 1 < odd)
                exchange(w[i], v[i + 1]);
            out[at++] = w[i];
            if (i + 1 < odd)
                out[at++] = v[i + 1];
        }
        if (odd == even + 2)
            out[at] = v[odd - 1];
    }

    constexpr void sort(uint8_t *places, int n)
    {
        uint8_t sorted[VALUES + 1] = {};
        if (n < 2)
            return;
        sort(places, n / 2);
        sort(places + n / 2, n - n / 2);
        merge(places, n / 2, places + n / 2, n - n / 2, 1, sorted);
        for (int i = 0; i < n; i++)
            places[i] = sorted[i];
    }
};

/* Sorts N values. */
template <int N>
constexpr median_net<N, 8 * N> median_sort_net()
{
    median_net<N, 8 * N> net;
    for (int i = 0; i < N; i++)
        net.order[i] = (uint8_t)i;
    net.sort(net.order, N);
    return net;
}

/* Merges values 0 to M - 1 with M to M + N - 1. */
template <int M, int N>
constexpr median_net<M + N, 5 * (M + N)> median_merge_net()
{
    median_net<M + N, 5 * (M + N)> net;
    uint8_t x[M] = {}, y[N] = {};
    for (int i = 0; i < M; i++)
        x[i] = (uint8_t)i;
    for (int i = 0; i < N; i++)
        y[i] = (uint8_t)(M + i);
    net.merge(x, M, y, N, 1, net.order);
    return net;
}

template <int N>
struct median_sorting {
    static constexpr auto net = median_sort_net<N>();
    static constexpr int values = N;
};
template <int M, int N>
struct median_merging {
    static constexpr auto net = median_merge_net<M, N>();
    static constexpr int values = M + N;
};

template <int A, int B>
__device__ static __forceinline__ void median_exchange(int *v)
{
    const int low = min(v[A], v[B]), high = max(v[A], v[B]);
    v[A] = low;
    v[B] = high;
}

template <class Net, size_t... I>
__device__ static __forceinline__ void median_exchanges(int *v, std::index_sequence<I...>)
{
    (median_exchange<Net::net.low[I], Net::net.high[I]>(v), ...);
}

template <class Net, size_t... I>
__device__ static __forceinline__ void median_ordered(const int *v, int *out,
                                                      std::index_sequence<I...>)
{
    ((out[I] = v[std::integral_constant<int, Net::net.order[I]>::value]), ...);
}

template <class Net>
__device__ static __forceinline__ void median_run(int *v, int *out)
{
    median_exchanges<Net>(v, std::make_index_sequence<(size_t)Net::net.count>());
    median_ordered<Net>(v, out, std::make_index_sequence<(size_t)Net::values>());
}

/* The sorted x (M values) and the sorted y of the lane `shift` above (N values). */
template <int M, int N>
__device__ static __forceinline__ void median_merge(const int (&x)[M], const int (&y)[N], int shift,
                                                    int (&out)[M + N])
{
    int v[M + N];
#pragma unroll
    for (int i = 0; i < M; i++)
        v[i] = x[i];
#pragma unroll
    for (int i = 0; i < N; i++)
        v[M + i] = __shfl_down_sync(0xffffffffu, y[i], shift);
    median_run<median_merging<M, N>>(v, out);
}

/* The middle of the sorted x and of the sorted y of the lane `shift` above: the least, over
** i + j = r, of the greater of x's i-th and y's j-th. */
template <int M, int N>
__device__ static __forceinline__ int median_join(const int (&x)[M], const int (&y)[N], int shift)
{
    constexpr int r = (M + N) / 2 + 1;
    int least = x[r - 1];
#pragma unroll
    for (int j = 1; j <= N; j++)
        least = min(least, max(x[r - j - 1], __shfl_down_sync(0xffffffffu, y[j - 1], shift)));
    return least;
}

/* The median of the columns of this lane and of the K - 1 lanes above it, N values each. All lanes
** of the warp take part; the last K - 1 get no median. */
template <int N, int K>
__device__ static __forceinline__ int median_of_columns(int (&v)[N])
{
    int c[N], two[2 * N];
    median_run<median_sorting<N>>(v, c);
    median_merge<N, N>(c, c, 1, two);
    if constexpr (K == 3) {
        return median_join<2 * N, N>(two, c, 2);
    } else {
        int four[4 * N];
        median_merge<2 * N, 2 * N>(two, two, 2, four);
        if constexpr (K == 5) {
            return median_join<4 * N, N>(four, c, 4);
        } else {
            int six[6 * N];
            median_merge<4 * N, 2 * N>(four, two, 4, six);
            return median_join<6 * N, N>(six, c, 6);
        }
    }
}

#endif
