/*
** median_filter on CUDA. Windows of 3, 5 and 7 in a plane and of 3 and 5 in a volume: a warp makes
** the medians of 32 neighboring columns less the window's margins in registers. Any other window: a
** warp makes one median after the other.
*/
#include "filter/median_window.cuh"
#include "ops/filter/op_median_filter.h"

__device__ static inline void median_store(void *out, int type, int64_t at, int key)
{
    if (type == MB_U8)
        ((uint8_t *)out)[at] = (uint8_t)key;
    else if (type == MB_U16)
        ((uint16_t *)out)[at] = (uint16_t)key;
    else
        ((float *)out)[at] = median_value<float>(key);
}

/* One kernel for all types: only loads and stores differ. */
template <int KZ, int KY, int KX>
__global__ void __launch_bounds__(32 * MEDIAN_WARPS)
    median_network(const void *in, void *out, int type, median_array a)
{
    constexpr int N = KZ * KY, RESULTS = 33 - KX;
    const int lane = threadIdx.x & 31;
    const int64_t piece = blockIdx.x * (int64_t)MEDIAN_WARPS + (threadIdx.x >> 5);
    const int64_t x = piece * RESULTS + lane; /* of the result */
    if (piece * RESULTS >= a.n[2])
        return;
    for (int64_t row = blockIdx.y; row < a.n[0] * a.n[1]; row += gridDim.y) {
        const int64_t z = row / a.n[1], y = row - z * a.n[1];
        int v[N];
        if (type == MB_U8)
            median_load<KZ, KY>((const uint8_t *)in, a, z, y, x - KX / 2, v);
        else if (type == MB_U16)
            median_load<KZ, KY>((const uint16_t *)in, a, z, y, x - KX / 2, v);
        else
            median_load<KZ, KY>((const float *)in, a, z, y, x - KX / 2, v);
        const int key = median_of_columns<N, KX>(v);
        const int64_t at = z * a.to_plane + y * a.to_row + x;
        if (lane >= RESULTS || x >= a.n[2])
            continue;
        median_store(out, type, at, key);
    }
}

template <int OWN>
__global__ void __launch_bounds__(32 * MEDIAN_WARPS)
    median_any(const void *in, void *out, int type, median_array a)
{
    const int lane = threadIdx.x & 31;
    const int64_t first = (blockIdx.x * (int64_t)MEDIAN_WARPS + (threadIdx.x >> 5)) * 32;
    const int64_t end = min(first + 32, a.n[2]);
    for (int64_t row = blockIdx.y; row < a.n[0] * a.n[1] && first < end; row += gridDim.y) {
        const int64_t z = row / a.n[1], y = row - z * a.n[1];
        const median_places<OWN> places(a, z, y);
        int mine = 0, key = 0;
        for (int64_t x = first; x < end; x++) {
            int v[OWN];
            places.gather(in, type, a, x, v);
            key = x == first ? median_select<OWN>(v, a.count) : median_near<OWN>(v, a.count, key);
            mine = x - first == lane ? key : mine;
        }
        if (first + lane < end)
            median_store(out, type, z * a.to_plane + y * a.to_row + first + lane, mine);
    }
}

template <int KZ, int KY, int KX>
static mb_status network(const mb_op_call *call, const median_array &a)
{
    constexpr int results = 33 - KX;
    const mb_array *in = call->arrays[MB_MEDIAN_FILTER_A],
                   *out = call->arrays[MB_MEDIAN_FILTER_RESULT];
    median_network<KZ, KY, KX>
        <<<median_blocks((a.n[2] + results - 1) / results, a.n[0] * a.n[1]), 32 * MEDIAN_WARPS, 0,
           mb_stream(call)>>>(in->data, out->data, in->dtype, a);
    return MB_LAUNCH_STATUS("median_network");
}

static mb_status any(const mb_op_call *call, const median_array &a)
{
    const mb_array *in = call->arrays[MB_MEDIAN_FILTER_A],
                   *out = call->arrays[MB_MEDIAN_FILTER_RESULT];
    return median_own(a.count, [&](auto own) {
        median_any<decltype(own)::value>
            <<<median_blocks((a.n[2] + 31) / 32, a.n[0] * a.n[1]), 32 * MEDIAN_WARPS, 0,
               mb_stream(call)>>>(in->data, out->data, in->dtype, a);
        return MB_LAUNCH_STATUS("median_any");
    });
}

extern "C" mb_status mb_cuda_median_filter(const mb_op_call *call)
{
    const mb_median_filter_params *p = (const mb_median_filter_params *)call->params;
    const mb_array *a = call->arrays[MB_MEDIAN_FILTER_A];
    const mb_median_window w = mb_median_window_of(&p->size, p->mode, &a->shape);
    const median_array m = median_array_of(w, a, call->arrays[MB_MEDIAN_FILTER_RESULT]);
    if (w.n[0] * w.n[1] * w.n[2] == 0)
        return MB_STATUS_OK;
    switch (10000 * w.k[0] + 100 * w.k[1] + w.k[2]) {
    case 10303: return network<1, 3, 3>(call, m);
    case 10505: return network<1, 5, 5>(call, m);
    case 10707: return network<1, 7, 7>(call, m);
    case 30303: return network<3, 3, 3>(call, m);
    case 50505: return network<5, 5, 5>(call, m);
    }
    return any(call, m);
}
