/*
** Stripes that are found and removed alone, on CUDA (stripes_detect.h). The sinograms of a group
** are worked on at once; what is found in one is a warp's work, everything else is spread over the
** columns.
*/
#include "stripes/stripes_launch.h"
#include "ops/stripes/stripes_detect.h"
#include "shared/cuda_launch.cuh"

enum { FIND_THREADS = 128, FIND_WARPS = FIND_THREADS / 32, COMPARE_THREADS = 512 };

/* Lists of a sinogram of the group. */
struct find_lists {
    float *fluctuation, *background, *factor, *sorted;
    int32_t *mask, *left, *right;
    __device__ __forceinline__ find_lists(void *slot, int64_t columns, int64_t sinogram)
    {
        float *lists = (float *)slot + sinogram * MB_STRIPES_LISTS * columns;
        fluctuation = lists + MB_STRIPES_LIST_FLUCTUATION * columns;
        background = lists + MB_STRIPES_LIST_BACKGROUND * columns;
        factor = lists + MB_STRIPES_LIST_FACTOR * columns;
        sorted = lists + MB_STRIPES_LIST_SORTED * columns;
        mask = (int32_t *)lists + MB_STRIPES_LIST_MASK * columns;
        left = (int32_t *)lists + MB_STRIPES_LIST_LEFT * columns;
        right = (int32_t *)lists + MB_STRIPES_LIST_RIGHT * columns;
    }
};

/* The sum of 32 lanes, in pairs; all lanes get it. */
__device__ static __forceinline__ double warp_fold(double sum)
{
    for (int step = MB_STRIPES_SUM_LANES / 2; step > 0; step /= 2)
        sum += __shfl_down_sync(~0u, sum, step);
    return __shfl_sync(~0u, sum, 0);
}

/* The key of a list's value, as a number without a sign. */
__device__ static __forceinline__ uint32_t bits_at(const float *list, int64_t columns, int64_t c)
{
    return (uint32_t)mb_stripes_key(list[mb_stripes_reflect(c, columns)]) ^ 1u << 31;
}

/* ---- factors of dead columns ---- */

/* A thread has a column and a chunk of angles. */
__global__ void __launch_bounds__(FIND_THREADS)
    stripes_fluctuate(const float *from, int64_t row, int64_t stride, mb_stripes_sinos s,
                      double *sums)
{
    const int64_t c = (int64_t)blockIdx.x * FIND_THREADS + threadIdx.x, n = s.angles;
    const int64_t a0 = (int64_t)blockIdx.y * MB_STRIPES_CHUNK;
    const int64_t a1 = a0 + MB_STRIPES_CHUNK < n ? a0 + MB_STRIPES_CHUNK : n;
    const float *in = from + blockIdx.z * row + c;
    if (c >= s.columns)
        return;
    double window = 0, sum = 0;
    for (int64_t k = 0; k < MB_STRIPES_SMOOTH; k++)
        window += in[mb_stripes_reflect(a0 - MB_STRIPES_SMOOTH_BEFORE + k, n) * stride];
#pragma unroll 4
    for (int64_t a = a0; a < a1; a++) {
        const int64_t next = a - MB_STRIPES_SMOOTH_BEFORE + MB_STRIPES_SMOOTH;
        const double enter = in[mb_stripes_reflect(next, n) * stride];
        const double gone = in[mb_stripes_reflect(a - MB_STRIPES_SMOOTH_BEFORE, n) * stride];
        sum += fabsf(in[a * stride] - (float)(window * (1.0 / MB_STRIPES_SMOOTH)));
        window = window + enter - gone;
    }
    sums[(blockIdx.z * (int64_t)gridDim.y + blockIdx.y) * s.columns + c] = sum;
}

__global__ void __launch_bounds__(FIND_THREADS)
    stripes_add_sums(const double *sums, int64_t chunks, int64_t columns, void *slot)
{
    const int64_t c = (int64_t)blockIdx.x * FIND_THREADS + threadIdx.x;
    if (c >= columns)
        return;
    const double *own = sums + blockIdx.y * chunks * columns + c;
    double total = 0;
    for (int64_t i = 0; i < chunks; i++)
        total += own[i * columns];
    find_lists(slot, columns, blockIdx.y).fluctuation[c] = (float)total;
}

/* A warp has a column. The median is found by its bits; windows of up to 128 stay in registers. */
__global__ void __launch_bounds__(FIND_THREADS)
    stripes_background(int64_t columns, int size, void *slot)
{
    enum { HELD = 4 };
    const int64_t c = (int64_t)blockIdx.x * FIND_WARPS + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (c >= columns)
        return;
    const find_lists lists(slot, columns, blockIdx.y);
    const int64_t begin = c - size / 2;
    uint32_t held[HELD], prefix = 0;
#pragma unroll
    for (int j = 0; j < HELD; j++)
        held[j] = lane + 32 * j < size ? bits_at(lists.fluctuation, columns, begin + lane + 32 * j)
                                       : ~0u; /* below no trial */
    for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
        const uint32_t trial = prefix | bit;
        int below = 0;
#pragma unroll
        for (int j = 0; j < HELD; j++)
            below += __popc(__ballot_sync(~0u, held[j] < trial));
        for (int first = 32 * HELD; first < size; first += 32) {
            const int i = first + lane;
            const bool less = i < size && bits_at(lists.fluctuation, columns, begin + i) < trial;
            below += __popc(__ballot_sync(~0u, less));
        }
        if (below <= size / 2)
            prefix = trial;
    }
    if (lane == 0)
        lists.background[c] = mb_stripes_value((int32_t)(prefix ^ 1u << 31));
}

__global__ void __launch_bounds__(COMPARE_THREADS) stripes_compare(int64_t columns, void *slot)
{
    __shared__ double mean;
    const find_lists lists(slot, columns, blockIdx.x);
    if (threadIdx.x < 32) {
        double sum = 0;
#pragma unroll 8
        for (int64_t c = threadIdx.x; c < columns; c += 32)
            sum += lists.background[c];
        sum = warp_fold(sum) / (double)columns;
        if (threadIdx.x == 0)
            mean = sum;
    }
    __syncthreads();
    for (int64_t c = threadIdx.x; c < columns; c += COMPARE_THREADS) {
        const double own = lists.background[c];
        lists.factor[c] = mb_stripes_ratio(lists.fluctuation[c], own != 0 ? own : mean);
    }
}

mb_status mb_stripes_launch_fluctuations(const mb_op_call *call, const mb_stripes_batch *b,
                                         int64_t size)
{
    const mb_stripes_sinos &s = b->sinos;
    const unsigned across = (unsigned)((s.columns + FIND_THREADS - 1) / FIND_THREADS);
    const unsigned by_warps = (unsigned)((s.columns + FIND_WARPS - 1) / FIND_WARPS);
    const unsigned chunks = (unsigned)mb_stripes_chunks(&s), count = (unsigned)b->count;
    double *sums = (double *)call->slots[MB_STRIPES_SUMS];
    void *slot = call->slots[MB_STRIPES_COLUMNS];
    stripes_fluctuate<<<dim3(across, chunks, count), FIND_THREADS, 0, mb_stream(call)>>>(
        b->from, b->from_row, b->from_angle, s, sums);
    MB_LAUNCHED("stripes_fluctuate");
    stripes_add_sums<<<dim3(across, count), FIND_THREADS, 0, mb_stream(call)>>>(sums, chunks,
                                                                                s.columns, slot);
    MB_LAUNCHED("stripes_add_sums");
    stripes_background<<<dim3(by_warps, count), FIND_THREADS, 0, mb_stream(call)>>>(
        s.columns, (int)size, slot);
    MB_LAUNCHED("stripes_background");
    stripes_compare<<<count, COMPARE_THREADS, 0, mb_stream(call)>>>(s.columns, slot);
    return MB_LAUNCH_STATUS("stripes_compare");
}

/* ---- factors of wide stripes ---- */

/* A warp has a column. */
__global__ void __launch_bounds__(FIND_THREADS)
    stripes_mean_factors(const int32_t *keys, const int32_t *medians, mb_stripes_sinos s,
                         int64_t drop, void *slot)
{
    const int64_t c = (int64_t)blockIdx.x * FIND_WARPS + threadIdx.x / 32;
    if (c >= s.columns)
        return;
    const int64_t at = (blockIdx.y * s.columns + c) * s.pitch;
    double own = 0, smooth = 0;
    for (int64_t r = drop + threadIdx.x % 32; r < s.angles - drop; r += 32) {
        own += mb_stripes_value(keys[at + r]);
        smooth += mb_stripes_value(medians[at + r]);
    }
    own = warp_fold(own);
    smooth = warp_fold(smooth);
    if (threadIdx.x % 32 == 0)
        find_lists(slot, s.columns, blockIdx.y).factor[c] = mb_stripes_ratio(own, smooth);
}

mb_status mb_stripes_launch_factors(const mb_op_call *call, const mb_stripes_batch *b,
                                    double drop_ratio)
{
    const dim3 grid((unsigned)((b->sinos.columns + FIND_WARPS - 1) / FIND_WARPS),
                    (unsigned)b->count);
    stripes_mean_factors<<<grid, FIND_THREADS, 0, mb_stream(call)>>>(
        (const int32_t *)call->slots[MB_STRIPES_VALUES],
        (const int32_t *)call->slots[MB_STRIPES_MEDIANS], b->sinos,
        mb_stripes_dropped(drop_ratio, b->sinos.angles), call->slots[MB_STRIPES_COLUMNS]);
    return MB_LAUNCH_STATUS("stripes_mean_factors");
}

/* ---- finding ---- */

/* A warp has a factor: what comes before it says where it is. */
__global__ void __launch_bounds__(FIND_THREADS) stripes_sort_factors(int64_t columns, void *slot)
{
    const int64_t c = (int64_t)blockIdx.x * FIND_WARPS + threadIdx.x / 32;
    if (c >= columns)
        return;
    const find_lists lists(slot, columns, blockIdx.y);
    const int own = mb_stripes_key(lists.factor[c]), n = (int)columns;
    int rank = 0;
#pragma unroll 4
    for (int i = threadIdx.x % 32; i < n; i += 32) {
        const int key = mb_stripes_key(lists.factor[i]);
        rank += key < own || (key == own && i < (int)c);
    }
    for (int step = 16; step > 0; step /= 2)
        rank += __shfl_xor_sync(~0u, rank, step);
    if (threadIdx.x % 32 == 0)
        lists.sorted[rank] = lists.factor[c];
}

__device__ static mb_stripes_limits warp_limits(const float *sorted, int64_t n, double snr)
{
    const double sum = warp_fold(mb_stripes_fit_sum(sorted, n, threadIdx.x));
    const double mean = sum / (double)mb_stripes_fit_count(n);
    const double products = warp_fold(mb_stripes_fit_slope(sorted, n, threadIdx.x, mean));
    return mb_stripes_limits_of(sorted, n, mean, products, snr);
}

/* A block has a sinogram. */
__global__ void __launch_bounds__(COMPARE_THREADS)
    stripes_find(int64_t columns, double snr, bool dead, void *slot)
{
    __shared__ mb_stripes_limits limits;
    const find_lists lists(slot, columns, blockIdx.x);
    const bool few = columns < MB_STRIPES_LEAST_COLUMNS;
    int found = 0;
    if (threadIdx.x < 32 && !few) {
        const mb_stripes_limits own = warp_limits(lists.sorted, columns, snr);
        if (threadIdx.x == 0)
            limits = own;
    }
    __syncthreads();
    /* all threads take part in each round: they count together */
    for (int64_t first = 0; first < columns; first += COMPARE_THREADS) {
        const int64_t c = first + threadIdx.x;
        int32_t hit = c < columns && !few && (!dead || mb_stripes_inside(columns, c));
        hit = hit && mb_stripes_masked(lists.factor, columns, c, limits);
        if (c < columns)
            lists.mask[c] = hit;
        found += __syncthreads_count(hit);
    }
    for (int64_t c = threadIdx.x; few && c < columns; c += COMPARE_THREADS)
        lists.factor[c] = 1;
    for (int64_t c = threadIdx.x; dead && c < columns; c += COMPARE_THREADS) {
        int64_t left = c, right = c;
        while (found < columns / 3 && lists.mask[left])
            left--;
        while (found < columns / 3 && lists.mask[right])
            right++;
        lists.left[c] = (int32_t)left;
        lists.right[c] = (int32_t)right;
    }
}

mb_status mb_stripes_launch_find(const mb_op_call *call, const mb_stripes_batch *b, double snr,
                                 bool dead)
{
    const int64_t columns = b->sinos.columns;
    const dim3 grid((unsigned)((columns + FIND_WARPS - 1) / FIND_WARPS), (unsigned)b->count);
    void *slot = call->slots[MB_STRIPES_COLUMNS];
    stripes_sort_factors<<<grid, FIND_THREADS, 0, mb_stream(call)>>>(columns, slot);
    MB_LAUNCHED("stripes_sort_factors");
    stripes_find<<<(unsigned)b->count, COMPARE_THREADS, 0, mb_stream(call)>>>(columns, snr, dead,
                                                                              slot);
    return MB_LAUNCH_STATUS("stripes_find");
}

/* ---- removal ---- */

enum { FILL_ANGLES = 32 }; /* of a block */

/* In place, only the columns of stripes are read and written. */
__global__ void __launch_bounds__(FIND_THREADS) stripes_fill_in(mb_stripes_batch b, void *slot)
{
    const int64_t c = (int64_t)blockIdx.x * FIND_THREADS + threadIdx.x;
    const int64_t a0 = (int64_t)blockIdx.y * FILL_ANGLES;
    const int64_t a1 = a0 + FILL_ANGLES < b.sinos.angles ? a0 + FILL_ANGLES : b.sinos.angles;
    if (c >= b.sinos.columns)
        return;
    const find_lists lists(slot, b.sinos.columns, blockIdx.z);
    const int64_t left = lists.left[c], right = lists.right[c];
    const float *from = b.from + blockIdx.z * b.from_row;
    float *to = b.to + blockIdx.z * b.to_row;
    if (left < right) {
        for (int64_t a = a0; a < a1; a++)
            to[a * b.to_angle + c] = mb_stripes_between(
                from[a * b.from_angle + left], from[a * b.from_angle + right], c - left, right - c);
    } else if (from != to) {
#pragma unroll 8
        for (int64_t a = a0; a < a1; a++)
            to[a * b.to_angle + c] = from[a * b.from_angle + c];
    }
}

mb_status mb_stripes_launch_fill_in(const mb_op_call *call, const mb_stripes_batch *b)
{
    const dim3 grid((unsigned)((b->sinos.columns + FIND_THREADS - 1) / FIND_THREADS),
                    (unsigned)((b->sinos.angles + FILL_ANGLES - 1) / FILL_ANGLES),
                    (unsigned)b->count);
    stripes_fill_in<<<grid, FIND_THREADS, 0, mb_stream(call)>>>(*b,
                                                                call->slots[MB_STRIPES_COLUMNS]);
    return MB_LAUNCH_STATUS("stripes_fill_in");
}

/* A block has a column. A thread looks after a rank and the one as far from the end, which change
** places if the factor is negative. */
template <class T>
__global__ void __launch_bounds__(FIND_THREADS)
    stripes_choose(const int32_t *keys, int32_t *medians, T *order, mb_stripes_sinos s,
                   bool normalize, void *slot)
{
    const int64_t c = blockIdx.x, at = (blockIdx.y * s.columns + c) * s.pitch, n = s.angles;
    const find_lists lists(slot, s.columns, blockIdx.y);
    if (lists.mask[c])
        return;
    const float factor = normalize ? mb_stripes_divisor(lists.factor[c]) : 1.0F;
    if (factor > 0) {
        for (int64_t r = threadIdx.x; r < n; r += FIND_THREADS)
            medians[at + r] =
                normalize ? mb_stripes_key(mb_stripes_value(keys[at + r]) / factor) : keys[at + r];
        return;
    }
    for (int64_t r = threadIdx.x; r < (n + 1) / 2; r += FIND_THREADS) {
        const int64_t other = n - 1 - r;
        const float low = mb_stripes_value(keys[at + r]), high = mb_stripes_value(keys[at + other]);
        const T swap = order[at + r];
        medians[at + other] = mb_stripes_key(low / factor);
        medians[at + r] = mb_stripes_key(high / factor);
        order[at + r] = order[at + other];
        order[at + other] = swap;
    }
}

mb_status mb_stripes_launch_choose(const mb_op_call *call, const mb_stripes_batch *b,
                                   bool normalize)
{
    const dim3 grid((unsigned)b->sinos.columns, (unsigned)b->count);
    const int32_t *keys = (const int32_t *)call->slots[MB_STRIPES_VALUES];
    int32_t *medians = (int32_t *)call->slots[MB_STRIPES_MEDIANS];
    void *order = call->slots[MB_STRIPES_ORDER], *slot = call->slots[MB_STRIPES_COLUMNS];
    if (mb_stripes_order_bytes(&b->sinos, false) == 2)
        stripes_choose<<<grid, FIND_THREADS, 0, mb_stream(call)>>>(
            keys, medians, (unsigned short *)order, b->sinos, normalize, slot);
    else
        stripes_choose<<<grid, FIND_THREADS, 0, mb_stream(call)>>>(keys, medians, (uint32_t *)order,
                                                                   b->sinos, normalize, slot);
    return MB_LAUNCH_STATUS("stripes_choose");
}
