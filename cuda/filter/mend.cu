/*
** mend on CUDA. First a bit for each value, by ballots. Then a thread for each value, which copies
** it or, where its bit is set, looks for valid neighbors. Few are broken, so medians are found bit
** by bit, reading the neighbors anew each time.
*/
#include "filter/median_window.cuh"
#include "ops/filter/op_mend.h"

struct mend_job {
    int64_t n[3], words, plane, row, to_plane, to_row, mask_row;
    const void *in;
    void *out;
    const uint8_t *mask;
    uint32_t *broken;
    int type, method, reach;
    bool nonfinite, in_place;
    mb_median_part part;
    unsigned long long *tally;
};

__device__ static inline float mend_value(const mend_job &j, int64_t at)
{
    return j.type == MB_F32   ? ((const float *)j.in)[at]
           : j.type == MB_U16 ? (float)((const uint16_t *)j.in)[at]
                              : (float)((const uint8_t *)j.in)[at];
}

__device__ static inline void mend_store(const mend_job &j, int64_t at, double value)
{
    if (j.type == MB_F32)
        ((float *)j.out)[at] = (float)value;
    else if (j.type == MB_U16)
        ((uint16_t *)j.out)[at] = (uint16_t)rint(value);
    else
        ((uint8_t *)j.out)[at] = (uint8_t)rint(value);
}

__global__ void __launch_bounds__(MB_THREADS) mend_mark(mend_job j)
{
    const int lane = threadIdx.x & 31;
    const int64_t warps = gridDim.x * (int64_t)(MB_THREADS / 32);
    for (int64_t word = blockIdx.x * (int64_t)(MB_THREADS / 32) + (threadIdx.x >> 5);
         word < j.n[0] * j.n[1] * j.words; word += warps) {
        const int64_t line = word / j.words, z = line / j.n[1], y = line - z * j.n[1];
        const int64_t x = (word - line * j.words) * 32 + lane;
        bool bad = false;
        if (x < j.n[2]) {
            bad = j.mask && j.mask[y * j.mask_row + x] != 0;
            if (j.nonfinite && j.type == MB_F32)
                bad |= !(fabsf(mend_value(j, z * j.plane + y * j.row + x)) <= 3.402823466e38f);
        }
        const unsigned bits = __ballot_sync(0xffffffffu, bad);
        if (lane == 0)
            j.broken[word] = bits;
    }
}

/* The valid values of a square. */
struct mend_square {
    int64_t z, y0, y1, x0, x1;

    /* Calls f with each, rows first. */
    template <class F>
    __device__ __forceinline__ void each(const mend_job &j, const F &f) const
    {
        for (int64_t y = y0; y <= y1; y++) {
            const uint32_t *bits = j.broken + (z * j.n[1] + y) * j.words;
            for (int64_t x = x0; x <= x1; x++)
                if (!(bits[x / 32] >> (x % 32) & 1))
                    f(mend_value(j, z * j.plane + y * j.row + x));
        }
    }
};

__device__ static double mend_median(const mend_job &j, const mend_square &square, int n)
{
    const int rank = (n - 1) / 2; /* the lower of the middle two, from 0 */
    unsigned found = 0;
#pragma unroll 1
    for (unsigned bit = 0x80000000u; bit; bit >>= 1) {
        const int trial = (int)((found | bit) ^ 0x80000000u);
        int below = 0;
        square.each(j, [&](float v) { below += median_key(v) < trial; });
        if (below <= rank)
            found |= bit;
    }
    const int key = (int)(found ^ 0x80000000u);
    const double lower = (double)median_value<float>(key);
    if (n & 1)
        return lower;
    int upto = 0, next = 0x7fffffff;
    square.each(j, [&](float v) {
        const int own = median_key(v);
        upto += own <= key;
        next = own > key ? min(next, own) : next;
    });
    return 0.5 * (lower + (upto > rank + 1 ? lower : (double)median_value<float>(next)));
}

/* Whether there is a valid neighbor, and what the value becomes. */
__device__ static bool mend_found(const mend_job &j, int64_t z, int64_t y, int64_t x, double *value)
{
    for (int reach = 1; reach <= j.reach; reach++) {
        const mend_square square = {z, y > reach ? y - reach : 0, min(y + reach, j.n[1] - 1),
                                    x > reach ? x - reach : 0, min(x + reach, j.n[2] - 1)};
        double sum = 0;
        int n = 0;
        square.each(j, [&](float v) {
            sum += (double)v;
            n++;
        });
        if (n > 0) {
            *value = j.method == MB_MEND_MEAN ? sum / (double)n : mend_median(j, square, n);
            return true;
        }
    }
    return false;
}

__global__ void __launch_bounds__(MB_THREADS) mend_values(mend_job j)
{
    const int lane = threadIdx.x & 31;
    const int64_t warps = gridDim.x * (int64_t)(MB_THREADS / 32);
    unsigned long long done = 0, left = 0;
    for (int64_t word = blockIdx.x * (int64_t)(MB_THREADS / 32) + (threadIdx.x >> 5);
         word < j.n[0] * j.n[1] * j.words; word += warps) {
        const unsigned bits = j.broken[word];
        if (!bits && j.in_place)
            continue;
        const int64_t line = word / j.words, z = line / j.n[1], y = line - z * j.n[1];
        const int64_t x = (word - line * j.words) * 32 + lane;
        if (x >= j.n[2])
            continue;
        const int64_t to = z * j.to_plane + y * j.to_row + x;
        double value = (double)mend_value(j, z * j.plane + y * j.row + x);
        if (bits >> lane & 1) {
            const bool counts = z >= j.part.first[0] && z < j.part.end[0] && y >= j.part.first[1] &&
                                y < j.part.end[1] && x >= j.part.first[2] && x < j.part.end[2];
            const bool found = mend_found(j, z, y, x, &value);
            done += counts && found;
            left += counts && !found;
            if (j.in_place && !found)
                continue;
        } else if (j.in_place) {
            continue;
        }
        mend_store(j, to, value);
    }
    done = mb_block_fold(done, mb_fold_sum());
    left = mb_block_fold(left, mb_fold_sum());
    if (threadIdx.x == 0 && done)
        atomicAdd(&j.tally[MB_MEND_MENDED], done);
    if (threadIdx.x == 0 && left)
        atomicAdd(&j.tally[MB_MEND_LEFT], left);
}

__global__ void mend_counts(const unsigned long long *tally, double *counts, int64_t step)
{
    counts[threadIdx.x * step] = (double)tally[threadIdx.x];
}

extern "C" mb_status mb_cuda_mend(const mb_op_call *call)
{
    const mb_mend_params *p = (const mb_mend_params *)call->params;
    const mb_array *a = call->arrays[MB_MEND_A], *mask = call->arrays[MB_MEND_MASK],
                   *to = call->arrays[MB_MEND_RESULT], *counts = call->arrays[MB_MEND_COUNTS];
    const int rank = a->shape.rank;
    mend_job j = {};
    for (int i = 0; i < 3; i++)
        j.n[i] = i < 3 - rank ? 1 : a->shape.dims[i - (3 - rank)];
    j.words = mb_mend_words(j.n[2]);
    j.plane = mb_median_plane(a);
    j.row = mb_median_row(a);
    j.to_plane = mb_median_plane(to);
    j.to_row = mb_median_row(to);
    j.mask = mask ? (const uint8_t *)mask->data : NULL;
    j.mask_row = mask ? mask->strides[0] : 0;
    j.in = a->data;
    j.out = to->data;
    j.broken = (uint32_t *)call->slots[MB_MEND_BROKEN];
    j.type = a->dtype;
    j.method = p->method;
    j.reach = (int)p->reach;
    j.nonfinite = p->nonfinite;
    j.in_place = to->data == a->data;
    j.part = mb_median_part_of(&p->counted, &a->shape);
    j.tally = (unsigned long long *)call->slots[MB_MEND_TALLY];
    MB_CUDA(cudaMemsetAsync(j.tally, 0, 2 * sizeof *j.tally, mb_stream(call)));
    const int64_t words = j.n[0] * j.n[1] * j.words;
    if (words > 0) {
        const unsigned blocks = mb_blocks(call, words * 32, MB_THREADS);
        mend_mark<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(j);
        MB_LAUNCHED("mend_mark");
        mend_values<<<blocks, MB_THREADS, 0, mb_stream(call)>>>(j);
        MB_LAUNCHED("mend_values");
    }
    mend_counts<<<1, 2, 0, mb_stream(call)>>>(j.tally, (double *)counts->data, counts->strides[0]);
    return MB_LAUNCH_STATUS("mend_counts");
}
