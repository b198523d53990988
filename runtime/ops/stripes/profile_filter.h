/*
** Filters along the columns of profiles (angle_modes.h). A profile of n values is repeated beyond
** its edges to `period` values, `left` of them in front, and this repeats itself for ever: the
** filter is a product in the Fourier space of `period` samples. It is applied as the sum it is,
** with taps 0 ... reach, reach <= period / 2, for distances to both sides: profiles are few. The tap
** for half of an even period is halved, because both sides meet there.
**
** A filter that is not even has odd taps beside the even ones, which act on another profile.
*/
#ifndef MB_OPS_STRIPES_PROFILE_FILTER_H
#define MB_OPS_STRIPES_PROFILE_FILTER_H

#include "ops/stripes/angle_modes.h"

typedef struct mb_profile_filter {
    int64_t columns, period, left, reach;
} mb_profile_filter;

/* What profile `m` becomes: own * m + taps * (the even taps of m + odd * the odd taps of profile
** `other`). */
typedef struct mb_profile_recipe {
    float own, taps, odd;
    int other;
} mb_profile_recipe;

/* The taps: reach + 1 even ones, then as many odd ones. */
static inline uint64_t mb_profile_filter_bytes(const mb_profile_filter *f)
{
    return mb_bytes_mul(2 * (uint64_t)(f->reach + 1), sizeof(float));
}

/* Where value i of the periodic profile is: a column. */
MB_BOTH static inline int64_t mb_profile_column(const mb_profile_filter *f, int64_t i)
{
    i %= f->period;
    i = (i < 0 ? i + f->period : i) - f->left;
    return i < 0 ? 0 : i < f->columns ? i : f->columns - 1;
}

/* The factor of tap d. */
MB_BOTH static inline double mb_profile_tap_weight(const mb_profile_filter *f, int64_t d)
{
    return 2 * d == f->period ? 0.5 : 1.0;
}

/* ---- host ---- */

/* Floats of a profile with what the filter needs beyond its edges: whole blocks. */
int64_t mb_profile_filter_room(const mb_profile_filter *f);
/* Two of these for each thread; nothing on CUDA. */
uint64_t mb_profile_filter_rows_bytes(const mb_profile_filter *f, const mb_device *device);
/* Copies a row there. */
void mb_profile_filter_extend(const mb_profile_filter *f, const float *row, float *extended);
/* to[c] = sum of even taps over `extended`, plus that of odd taps over `other`: other[c - d] -
** other[c + d]. `other` and `odd` may be NULL. */
void mb_profile_filter_run(const mb_profile_filter *f, const float *extended, const float *even,
                           const float *other, const float *odd, float *to);

#endif
