/*
** Which columns of a sinogram are stripes (algorithm 4 of Vo et al.), on the host and on CUDA. Each
** column has a factor: how it differs from its neighborhood, 1 if it does not. The factors are
** sorted, and a line is fitted to the middle half of them: what it spans from the first to the last
** column is the noise. Where the largest factor is `snr` times that above the line's end, or the
** smallest below its beginning, columns beyond half of it are stripes, and so are their two
** neighbors. A column with a factor that is not finite is a stripe. Sums have a fixed order: 32
** lanes, folded in pairs.
*/
#ifndef MB_OPS_STRIPES_DETECT_H
#define MB_OPS_STRIPES_DETECT_H

#include "ops/stripes/stripes_vo.h"
#include <math.h>

#define MB_STRIPES_SUM_LANES 32
/* Fewer columns are left as they are: there is nothing to fit. */
#define MB_STRIPES_LEAST_COLUMNS 8
/* The least noise, of factors about 1: a sinogram without noise has no stripes to find. */
#define MB_STRIPES_LEAST_NOISE 1e-6

/* The mean along the angles that fluctuating columns are compared with: this many values, from so
** many before. */
enum { MB_STRIPES_SMOOTH = 10, MB_STRIPES_SMOOTH_BEFORE = 5 };

/* Lists of a sinogram in the slot columns, 4 bytes a column each. */
enum {
    MB_STRIPES_LIST_FLUCTUATION, /* sum of differences from the mean along the angles */
    MB_STRIPES_LIST_BACKGROUND,  /* its median over neighboring columns */
    MB_STRIPES_LIST_FACTOR,
    MB_STRIPES_LIST_SORTED, /* the factors */
    MB_STRIPES_LIST_MASK,   /* whole numbers: 1 for a stripe */
    MB_STRIPES_LIST_LEFT,   /* the nearest columns that are no stripe; the column itself if it */
    MB_STRIPES_LIST_RIGHT,  /* is none */
    MB_STRIPES_LISTS
};

MB_BOTH static inline bool mb_stripes_finite(float value)
{
    return value - value == 0;
}

/* What the columns' factors must exceed to be a stripe; NaN: none does. */
typedef struct mb_stripes_limits {
    double above, below;
} mb_stripes_limits;

/* The middle half of n sorted factors, without its last. */
MB_BOTH static inline int64_t mb_stripes_fit_first(int64_t n)
{
    return n / 4;
}
MB_BOTH static inline int64_t mb_stripes_fit_count(int64_t n)
{
    return n - 2 * (n / 4) - 1;
}

/* A lane's part of the sum of the middle half, and of its products with the place. */
MB_BOTH static inline double mb_stripes_fit_sum(const float *sorted, int64_t n, int lane)
{
    const int64_t first = mb_stripes_fit_first(n), count = mb_stripes_fit_count(n);
    double sum = 0;
    for (int64_t i = lane; i < count; i += MB_STRIPES_SUM_LANES)
        sum += sorted[first + i];
    return sum;
}
MB_BOTH static inline double mb_stripes_fit_slope(const float *sorted, int64_t n, int lane,
                                                  double mean)
{
    const int64_t first = mb_stripes_fit_first(n), count = mb_stripes_fit_count(n);
    double sum = 0;
    for (int64_t i = lane; i < count; i += MB_STRIPES_SUM_LANES)
        sum += ((double)i - 0.5 * (double)(count - 1)) * ((double)sorted[first + i] - mean);
    return sum;
}

/* From the mean of the middle half and the sum of products. */
MB_BOTH static inline mb_stripes_limits
mb_stripes_limits_of(const float *sorted, int64_t n, double mean, double products, double snr)
{
    const double m = (double)mb_stripes_fit_count(n);
    const double slope = products * 12 / (m * (m * m - 1));
    const double middle = (double)mb_stripes_fit_first(n) + 0.5 * (m - 1);
    const double begin = mean - slope * middle, end = begin + slope * (double)(n - 1);
    const double noise = fmax(fabs(end - begin), MB_STRIPES_LEAST_NOISE);
    mb_stripes_limits limits;
    int64_t last = n - 1;
    limits.above = limits.below = NAN;
    while (last > 0 && !mb_stripes_finite(sorted[last]))
        last--;
    if (fabs((double)sorted[last] - end) / noise >= snr)
        limits.above = end + noise * snr * 0.5;
    if (fabs(begin - (double)sorted[0]) / noise >= snr)
        limits.below = begin - noise * snr * 0.5;
    return limits;
}

/* Whether column c, or one beside it, is a stripe. A factor that is not finite is one. */
MB_BOTH static inline int32_t mb_stripes_masked(const float *factors, int64_t n, int64_t c,
                                                mb_stripes_limits limits)
{
    int32_t hit = 0;
    for (int64_t i = c > 0 ? c - 1 : 0; i <= c + 1 && i < n; i++)
        hit |= (double)factors[i] > limits.above || (double)factors[i] <= limits.below ||
               !mb_stripes_finite(factors[i]);
    return hit;
}

/* Where factor c is in the sorted list: equal ones are in the order of their columns. */
MB_BOTH static inline int64_t mb_stripes_rank(const float *factors, int64_t n, int64_t c)
{
    const int32_t own = mb_stripes_key(factors[c]);
    int64_t rank = 0;
    for (int64_t i = 0; i < c; i++)
        rank += mb_stripes_key(factors[i]) <= own;
    for (int64_t i = c + 1; i < n; i++)
        rank += mb_stripes_key(factors[i]) < own;
    return rank;
}

/* The median of `size` values about c, by the bits of the keys. */
MB_BOTH static inline float mb_stripes_list_median(const float *list, int64_t n, int64_t c,
                                                   int64_t size)
{
    const int64_t begin = c - size / 2;
    uint32_t prefix = 0;
    for (uint32_t bit = 1U << 31; bit != 0; bit >>= 1) {
        const uint32_t trial = prefix | bit;
        int64_t below = 0;
        for (int64_t i = 0; i < size; i++) {
            const int32_t key = mb_stripes_key(list[mb_stripes_reflect(begin + i, n)]);
            below += ((uint32_t)key ^ 1U << 31) < trial;
        }
        if (below <= size / 2)
            prefix = trial;
    }
    return mb_stripes_value((int32_t)(prefix ^ 1U << 31));
}

/* A value over its background. Where both are 0 there is nothing to compare. */
MB_BOTH static inline float mb_stripes_ratio(double value, double background)
{
    return background != 0 ? (float)(value / background) : 1.0F;
}

/* A factor that a column may be divided by. */
MB_BOTH static inline float mb_stripes_divisor(float factor)
{
    return mb_stripes_finite(factor) && factor != 0 ? factor : 1.0F;
}

/* Between the values of the two columns beside a stripe. Products are exact in double. */
MB_BOTH static inline float mb_stripes_between(float left, float right, int64_t from_left,
                                               int64_t from_right)
{
    return (float)(((double)left * (double)from_right + (double)right * (double)from_left) /
                   (double)(from_left + from_right));
}

/* Where a stripe may be filled in: not in the two first and last columns, and only if less than a
** third are stripes. */
MB_BOTH static inline bool mb_stripes_inside(int64_t n, int64_t c)
{
    return c >= 2 && c < n - 2;
}

/* Ranks that are left out of a column's mean, at both ends. */
static inline int64_t mb_stripes_dropped(double ratio, int64_t angles)
{
    return (int64_t)(0.5 * ratio * (double)angles);
}

#endif
