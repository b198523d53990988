/*
** Stripes that are found and removed alone, on the host (stripes_detect.h).
*/
#include "ops/stripes/stripes_found.h"
#include "core/multiversion.h"

#define LANES MB_STRIPES_LANES

static int64_t mirrored(int64_t a, int64_t n)
{
    return mb_stripes_reflect(a, n);
}

/* The fluctuations of columns beside each other: chunks of angles, whose sums are added. */
MB_MULTIVERSION
static void fluctuate(const float *from, int64_t stride, int64_t angles, int64_t lanes, float *to)
{
    double total[LANES] = {0};
    for (int64_t a0 = 0; a0 < angles; a0 += MB_STRIPES_CHUNK) {
        int64_t a1 = a0 + MB_STRIPES_CHUNK < angles ? a0 + MB_STRIPES_CHUNK : angles;
        double window[LANES] = {0}, part[LANES] = {0};
        for (int64_t k = 0; k < MB_STRIPES_SMOOTH; k++) {
            const float *row = from + mirrored(a0 - MB_STRIPES_SMOOTH_BEFORE + k, angles) * stride;
            for (int64_t j = 0; j < lanes; j++)
                window[j] += row[j];
        }
        for (int64_t a = a0; a < a1; a++) {
            int64_t next = a - MB_STRIPES_SMOOTH_BEFORE + MB_STRIPES_SMOOTH;
            const float *row = from + a * stride;
            const float *gone = from + mirrored(a - MB_STRIPES_SMOOTH_BEFORE, angles) * stride;
            const float *enter = from + mirrored(next, angles) * stride;
            for (int64_t j = 0; j < lanes; j++) {
                part[j] += fabsf(row[j] - (float)(window[j] * (1.0 / MB_STRIPES_SMOOTH)));
                window[j] = window[j] + (double)enter[j] - (double)gone[j];
            }
        }
        for (int64_t j = 0; j < lanes; j++)
            total[j] += part[j];
    }
    for (int64_t j = 0; j < lanes; j++)
        to[j] = (float)total[j];
}

/* The sums of 32 lanes, in pairs. */
static double fold(double *lanes)
{
    for (int step = MB_STRIPES_SUM_LANES / 2; step > 0; step /= 2)
        for (int i = 0; i < step; i++)
            lanes[i] += lanes[i + step];
    return lanes[0];
}

static double mean_of(const float *list, int64_t n)
{
    double lanes[MB_STRIPES_SUM_LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        lanes[i % MB_STRIPES_SUM_LANES] += list[i];
    return fold(lanes) / (double)n;
}

void mb_stripes_fluctuations(const mb_stripes_sinos *s, const float *from, int64_t stride,
                             const mb_stripes_lists *lists, int64_t size)
{
    int64_t n = s->columns, blocks = (n + LANES - 1) / LANES;
#pragma omp for schedule(static)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t c = b * LANES, lanes = n - c < LANES ? n - c : LANES;
        if (!mb_cancelled())
            fluctuate(from + c, stride, s->angles, lanes, lists->fluctuation + c);
    }
#pragma omp for schedule(static)
    for (int64_t c = 0; c < n; c++)
        if (!mb_cancelled())
            lists->background[c] = mb_stripes_list_median(lists->fluctuation, n, c, size);
#pragma omp single
    {
        double mean = mean_of(lists->background, n); /* none is negative */
        for (int64_t c = 0; c < n; c++)
            lists->factor[c] = mb_stripes_ratio(
                lists->fluctuation[c], lists->background[c] != 0 ? lists->background[c] : mean);
    }
}

MB_MULTIVERSION
static double sum_of_keys(const int32_t *keys, int64_t n)
{
    double lanes[MB_STRIPES_SUM_LANES] = {0};
    int64_t whole = n / MB_STRIPES_SUM_LANES * MB_STRIPES_SUM_LANES;
    for (int64_t i = 0; i < whole; i += MB_STRIPES_SUM_LANES)
        for (int l = 0; l < MB_STRIPES_SUM_LANES; l++)
            lanes[l] += mb_stripes_value(keys[i + l]);
    for (int64_t i = whole; i < n; i++)
        lanes[i - whole] += mb_stripes_value(keys[i]);
    return fold(lanes);
}

void mb_stripes_factors(const mb_stripes_sinos *s, const int32_t *keys, const int32_t *medians,
                        double drop_ratio, const mb_stripes_lists *lists)
{
    int64_t drop = mb_stripes_dropped(drop_ratio, s->angles), count = s->angles - 2 * drop;
#pragma omp for schedule(static)
    for (int64_t c = 0; c < s->columns; c++)
        if (!mb_cancelled())
            lists->factor[c] = mb_stripes_ratio(sum_of_keys(keys + c * s->pitch + drop, count),
                                                sum_of_keys(medians + c * s->pitch + drop, count));
}

static mb_stripes_limits limits_of(const float *sorted, int64_t n, double snr)
{
    double lanes[MB_STRIPES_SUM_LANES];
    for (int l = 0; l < MB_STRIPES_SUM_LANES; l++)
        lanes[l] = mb_stripes_fit_sum(sorted, n, l);
    double mean = fold(lanes) / (double)mb_stripes_fit_count(n);
    for (int l = 0; l < MB_STRIPES_SUM_LANES; l++)
        lanes[l] = mb_stripes_fit_slope(sorted, n, l, mean);
    return mb_stripes_limits_of(sorted, n, mean, fold(lanes), snr);
}

/* What fills in what. A third of the columns is too much. */
static void find_neighbors(const mb_stripes_lists *lists, int64_t n)
{
    int64_t found = 0;
    for (int64_t c = 0; c < n; c++) {
        lists->mask[c] = lists->mask[c] && mb_stripes_inside(n, c);
        found += lists->mask[c];
    }
    for (int64_t c = 0; c < n; c++) {
        int64_t left = c, right = c;
        while (found < n / 3 && lists->mask[left])
            left--;
        while (found < n / 3 && lists->mask[right])
            right++;
        lists->left[c] = (int32_t)left;
        lists->right[c] = (int32_t)right;
    }
}

void mb_stripes_find(int64_t n, const mb_stripes_lists *lists, double snr, bool dead)
{
    bool few = n < MB_STRIPES_LEAST_COLUMNS;
#pragma omp for schedule(static)
    for (int64_t c = 0; c < n; c++)
        if (!mb_cancelled())
            lists->sorted[mb_stripes_rank(lists->factor, n, c)] = lists->factor[c];
#pragma omp single
    if (!mb_cancelled()) {
        mb_stripes_limits none = {NAN, NAN};
        mb_stripes_limits limits = few ? none : limits_of(lists->sorted, n, snr);
        for (int64_t c = 0; c < n; c++)
            lists->mask[c] = !few && mb_stripes_masked(lists->factor, n, c, limits);
        for (int64_t c = 0; few && c < n; c++)
            lists->factor[c] = 1;
        if (dead)
            find_neighbors(lists, n);
    }
}

void mb_stripes_fill_in(const mb_stripes_sinos *s, const mb_stripes_lists *lists, const float *from,
                        int64_t from_stride, float *to, int64_t to_stride)
{
#pragma omp for schedule(static)
    for (int64_t a = 0; a < s->angles; a++) {
        const float *row = from + a * from_stride;
        float *own = to + a * to_stride;
        if (mb_cancelled())
            continue;
        if (own != row)
            memcpy(own, row, (size_t)s->columns * 4);
        for (int64_t c = 0; c < s->columns; c++) {
            int64_t left = lists->left[c], right = lists->right[c];
            if (left < right)
                own[c] = mb_stripes_between(row[left], row[right], c - left, right - c);
        }
    }
}

/* The values of a column, divided, in ascending order. */
static void divided(const int32_t *keys, int32_t *to, uint32_t *order, int64_t n, float factor)
{
    for (int64_t r = 0; r < n; r++) {
        int32_t key = mb_stripes_key(mb_stripes_value(keys[r]) / factor);
        to[factor < 0 ? n - 1 - r : r] = key;
    }
    for (int64_t r = 0; factor < 0 && r < n / 2; r++) {
        uint32_t swap = order[r];
        order[r] = order[n - 1 - r];
        order[n - 1 - r] = swap;
    }
}

void mb_stripes_choose(const mb_stripes_sinos *s, const int32_t *keys, int32_t *medians,
                       uint32_t *order, const mb_stripes_lists *lists, bool normalize)
{
#pragma omp for schedule(static)
    for (int64_t c = 0; c < s->columns; c++) {
        int64_t at = c * s->pitch;
        if (lists->mask[c] || mb_cancelled())
            continue;
        if (normalize)
            divided(keys + at, medians + at, order + at, s->angles,
                    mb_stripes_divisor(lists->factor[c]));
        else
            memcpy(medians + at, keys + at, (size_t)s->angles * 4);
    }
}
