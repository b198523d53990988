/*
** Medians of sorted columns on CUDA. A thread has a rank and slides along the columns with the
** sorted window in registers, or for windows that are too large with the median and its place
** alone.
*/
#include "stripes/stripes_launch.h"
#include "shared/cuda_launch.cuh"

enum { MEDIAN_THREADS = 128, MEDIAN_COLUMNS = 128 }; /* ranks and columns of a block */

struct median_job {
    mb_stripes_sinos s;
    const int32_t *keys;
    int32_t *medians;
    int size;
};

struct rank_row { /* a rank of all columns */
    const int32_t *keys;
    int64_t pitch, columns;
    __device__ __forceinline__ int operator[](int64_t c) const
    {
        return keys[mb_stripes_reflect(c, columns) * pitch];
    }
};

/* The same, column by column, forwards; turns round at the borders. */
struct rank_walk {
    const int32_t *keys;
    int64_t pitch;
    int columns, at, step;
    __device__ __forceinline__ rank_walk(const rank_row &row, int64_t first)
    {
        const int64_t period = 2 * row.columns, place = (first % period + period) % period;
        keys = row.keys;
        pitch = row.pitch;
        columns = (int)row.columns;
        at = (int)mb_stripes_reflect(first, row.columns);
        step = place < row.columns ? 1 : -1;
    }
    __device__ __forceinline__ int take()
    {
        const int key = keys[at * pitch], next = at + step;
        if ((unsigned)next < (unsigned)columns)
            at = next;
        else
            step = -step;
        return key;
    }
};

/* Windows of at most M columns, M odd: places that are left over hold the least and the largest
** key, so that the median is in the middle. */
template <int M>
__global__ void __launch_bounds__(MEDIAN_THREADS) stripes_medians_of(median_job job)
{
    const int64_t rank = (int64_t)blockIdx.x * MEDIAN_THREADS + threadIdx.x;
    const int64_t c0 = (int64_t)blockIdx.y * MEDIAN_COLUMNS;
    const int64_t c1 = c0 + MEDIAN_COLUMNS < job.s.columns ? c0 + MEDIAN_COLUMNS : job.s.columns;
    if (rank >= job.s.angles)
        return;
    const int64_t base = blockIdx.z * job.s.columns * job.s.pitch + rank;
    const rank_row at = {job.keys + base, job.s.pitch, job.s.columns};
    const int before = job.size / 2;
    rank_walk enters(at, c0 - before), leaves(at, c0 - before);
    int w[M];
#pragma unroll
    for (int i = 0; i < M; i++)
        w[i] = i < M / 2 - before ? INT_MIN : INT_MAX;
#pragma unroll 1
    for (int n = 1; n < job.size; n++) {
        const int x = enters.take();
        int low = INT_MIN;
#pragma unroll
        for (int i = 0; i < M; i++) {
            const int d = w[i];
            w[i] = max(low, min(d, x));
            low = d;
        }
    }
    int gone = INT_MAX, x = enters.take();
    int32_t *out = job.medians + base + c0 * job.s.pitch;
#pragma unroll 1
    for (int64_t c = c0; c < c1; c++) {
        const int next = enters.take(), leave = leaves.take(); /* before they are needed */
        int low = INT_MIN;
#pragma unroll
        for (int i = 0; i < M; i++) {
            const int d = i == M - 1 ? INT_MAX : w[i] < gone ? w[i] : w[i + 1];
            w[i] = max(low, min(d, x));
            low = d;
        }
        *out = w[M / 2];
        out += job.s.pitch;
        gone = leave;
        x = next;
    }
}

/* The median of a window and how many values are smaller, and smaller or equal. */
struct mb_place {
    int value, below, upto;
};

/* f(key) for each of the columns. */
template <class F>
__device__ static __forceinline__ void each_key(const rank_row &at, int64_t first, int size, F f)
{
    if (first >= 0 && first + size <= at.columns) {
        const int32_t *p = at.keys + first * at.pitch;
#pragma unroll 4
        for (int i = 0; i < size; i++, p += at.pitch)
            f(*p);
    } else {
        rank_walk walk(at, first);
        for (int i = 0; i < size; i++)
            f(walk.take());
    }
}

/* The value with `middle` smaller ones, by its bits. */
__device__ static mb_place first_place(const rank_row &at, int64_t c, int size, int middle)
{
    unsigned prefix = 0;
    mb_place p = {0, 0, 0};
    for (unsigned bit = 1u << 31; bit != 0; bit >>= 1) {
        const unsigned trial = prefix | bit;
        int n = 0;
        each_key(at, c, size, [&](int x) { n += ((unsigned)x ^ 1u << 31) < trial; });
        if (n <= middle)
            prefix = trial;
    }
    p.value = (int)(prefix ^ 1u << 31);
    each_key(at, c, size, [&](int x) {
        p.below += x < p.value;
        p.upto += x <= p.value;
    });
    return p;
}

/* Moves to the next smaller or the next larger value of the window. */
__device__ static void next_place(const rank_row &at, int64_t c, int size, bool up, mb_place *p)
{
    int value = INT_MAX, count = 0; /* downwards, keys are taken with their bits inverted */
    const int flip = up ? 0 : -1, from = p->value ^ flip;
    each_key(at, c, size, [&](int key) {
        const int x = key ^ flip;
        const bool nearer = x > from && x < value;
        value = nearer ? x : value;
        count = nearer ? 0 : count;
        count += x == value;
    });
    p->value = value ^ flip;
    if (up) {
        p->below = p->upto;
        p->upto += count;
    } else {
        p->upto = p->below;
        p->below -= count;
    }
}

/* Windows of any size. */
__global__ void __launch_bounds__(MEDIAN_THREADS) stripes_medians_large(median_job job)
{
    const int64_t rank = (int64_t)blockIdx.x * MEDIAN_THREADS + threadIdx.x;
    const int64_t c0 = (int64_t)blockIdx.y * MEDIAN_COLUMNS;
    const int64_t c1 = c0 + MEDIAN_COLUMNS < job.s.columns ? c0 + MEDIAN_COLUMNS : job.s.columns;
    if (rank >= job.s.angles)
        return;
    const int64_t base = blockIdx.z * job.s.columns * job.s.pitch + rank;
    const rank_row at = {job.keys + base, job.s.pitch, job.s.columns};
    const int middle = job.size / 2;
    mb_place p = first_place(at, c0 - middle, job.size, middle);
    for (int64_t c = c0; c < c1; c++) {
        if (c > c0) {
            const int gone = at[c - 1 - middle], x = at[c - middle + job.size - 1];
            p.below += (x < p.value) - (gone < p.value);
            p.upto += (x <= p.value) - (gone <= p.value);
        }
        while (middle < p.below)
            next_place(at, c - middle, job.size, false, &p);
        while (middle >= p.upto)
            next_place(at, c - middle, job.size, true, &p);
        job.medians[base + c * job.s.pitch] = p.value;
    }
}

mb_status mb_stripes_launch_medians(const mb_op_call *call, const mb_stripes_batch *b,
                                    const int32_t *keys, int32_t *medians, int64_t size)
{
    static const struct {
        int most;
        void (*kernel)(median_job);
    } ways[] = {
        {5, stripes_medians_of<5>},   {11, stripes_medians_of<11>}, {21, stripes_medians_of<21>},
        {31, stripes_medians_of<31>}, {41, stripes_medians_of<41>}, {51, stripes_medians_of<51>},
        {61, stripes_medians_of<61>}, {81, stripes_medians_of<81>}, {101, stripes_medians_of<101>}};
    const median_job job = {b->sinos, keys, medians, (int)size};
    const dim3 grid((unsigned)((b->sinos.angles + MEDIAN_THREADS - 1) / MEDIAN_THREADS),
                    (unsigned)((b->sinos.columns + MEDIAN_COLUMNS - 1) / MEDIAN_COLUMNS),
                    (unsigned)b->count);
    auto kernel = stripes_medians_large;
    for (int i = (int)(sizeof ways / sizeof ways[0]) - 1; i >= 0; i--)
        if (size <= ways[i].most)
            kernel = ways[i].kernel;
    kernel<<<grid, MEDIAN_THREADS, 0, mb_stream(call)>>>(job);
    return MB_LAUNCH_STATUS("stripes_medians");
}
