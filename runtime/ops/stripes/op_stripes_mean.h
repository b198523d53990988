/*
** stripes_mean: what the host and the CUDA kernel share. Arrays: sino (in), result (out; may be
** sino). Slots: those of angle_modes.h, the taps, and on the host two rows a thread.
**
** One mode: the mean over the angles, v. A Gaussian of low_sigma smooths it; the Gaussian of
** high_sigma of this is taken away. The two together are a difference of two Gaussians. Their
** Fourier transforms are sampled at the frequencies of the period, the next product of powers of 2,
** 3, 5 and 7 from twice the columns on.
*/
#ifndef MB_OPS_OP_STRIPES_MEAN_H
#define MB_OPS_OP_STRIPES_MEAN_H

#include "ops/stripes/profile_filter.h"
#include <math.h>

typedef enum mb_stripes_mean_mode {
    MB_STRIPES_MEAN_SUBTRACT,
    MB_STRIPES_MEAN_DIVIDE
} mb_stripes_mean_mode;

typedef struct mb_stripes_mean_params {
    int mode;
    double low_sigma, high_sigma;
} mb_stripes_mean_params;

enum { MB_STRIPES_MEAN_SINO, MB_STRIPES_MEAN_RESULT };
enum { MB_STRIPES_MEAN_TAPS = MB_MODES_SLOTS, MB_STRIPES_MEAN_ROWS };

static inline int64_t mb_stripes_mean_period(int64_t columns)
{
    static const int64_t primes[] = {2, 3, 5, 7};
    for (int64_t period = 2 * columns;; period++) {
        int64_t left = period;
        for (int i = 0; i < 4; i++)
            while (left % primes[i] == 0)
                left /= primes[i];
        if (left == 1)
            return period;
    }
}

static inline mb_profile_filter mb_stripes_mean_filter(const mb_stripes_mean_params *p,
                                                       int64_t columns)
{
    mb_profile_filter f = {columns, mb_stripes_mean_period(columns), 0, 0};
    const double low = p->low_sigma, high = p->high_sigma;
    const double least = low > 0 ? low : high, most = sqrt(low * low + high * high);
    f.left = (f.period - columns) / 2;
    f.reach = f.period / 2;
    /* The transform of a narrow Gaussian does not fade before the highest frequency, and its taps
    ** not at all. */
    if (least == 0)
        f.reach = 0;
    else if (least >= 2 && ceil(7 * most) < (double)f.reach)
        f.reach = (int64_t)ceil(7 * most);
    return f;
}

/* How the profile becomes what is subtracted. */
static inline mb_profile_recipe mb_stripes_mean_recipe(const mb_stripes_mean_params *p)
{
    mb_profile_recipe recipe = {0, 1, 0, 0};
    if (p->low_sigma == 0) {
        recipe.own = 1;
        recipe.taps = p->high_sigma > 0 ? -1 : 0;
    }
    return recipe;
}

/* Tap d of a Gaussian of the period. */
MB_BOTH static inline double mb_stripes_mean_gaussian(int64_t period, double sigma, int64_t d)
{
    const double pi = 3.14159265358979323846;
    const double width = (double)period / (2 * pi * sigma), far = ceil(9 * width);
    const int64_t half = period / 2, last = far < (double)half ? (int64_t)far : half;
    const double turn = 2 * pi * (double)(d % period) / (double)period;
    const double cos_turn = cos(turn), sin_turn = sin(turn);
    double sum = 0, c = 1, s = 0;
    for (int64_t f = 0; f <= last; f++) {
        if (f % 16 == 0) {
            const double at = 2 * pi * (double)(f * d % period) / (double)period;
            c = cos(at);
            s = sin(at);
        }
        const double x = (double)f / width, sides = f == 0 || 2 * f == period ? 1 : 2;
        sum += sides * exp(-0.5 * x * x) * c;
        const double keep = c * cos_turn - s * sin_turn;
        s = s * cos_turn + c * sin_turn;
        c = keep;
    }
    return sum / (double)period;
}

MB_BOTH static inline double mb_stripes_mean_tap(const mb_stripes_mean_params *p,
                                                 const mb_profile_filter *f, int64_t d)
{
    const double low = p->low_sigma, high = p->high_sigma;
    double tap = 0;
    if (low > 0)
        tap = mb_stripes_mean_gaussian(f->period, low, d);
    if (high > 0) {
        const double wide = mb_stripes_mean_gaussian(f->period, sqrt(low * low + high * high), d);
        tap = low > 0 ? tap - wide : wide;
    }
    return tap * mb_profile_tap_weight(f, d);
}

#endif
