/*
** stripes_raven: what the host and the CUDA kernel share. Arrays: sino (in), result (out; may be
** sino). Slots: those of angle_modes.h, the taps (even, then odd ones), and on the host four rows a
** thread.
**
** The two-dimensional Fourier transform of a padded sinogram of H x W values is multiplied by
** b(fx) = 1 / (1 + (fx / cutoff)^(2 order)) in the rows |fy| <= rows. Nothing else is touched: the
** modes are the sines and cosines of these fy, and 1 - b filters their profiles along the columns.
** With origin 1, b(fx + 1) and the rows |fy + 1| <= rows stand for these where W or H is even, and
** the real part is taken: 1/2 (G(fy, fx) + G(-fy, -fx)) is the gain.
*/
#ifndef MB_OPS_OP_STRIPES_RAVEN_H
#define MB_OPS_OP_STRIPES_RAVEN_H

#include "ops/stripes/profile_filter.h"
#include <math.h>

typedef enum mb_raven_padding {
    MB_RAVEN_PAD_NONE,
    MB_RAVEN_PAD_EDGE,
    MB_RAVEN_PAD_MEAN
} mb_raven_padding;

typedef struct mb_stripes_raven_params {
    double cutoff;
    int64_t order, rows;
    int padding;
    int64_t pad; /* 0 = auto */
    int64_t origin;
} mb_stripes_raven_params;

enum { MB_STRIPES_RAVEN_SINO, MB_STRIPES_RAVEN_RESULT };
enum { MB_STRIPES_RAVEN_TAPS = MB_MODES_SLOTS, MB_STRIPES_RAVEN_ROWS };

#define MB_RAVEN_MOST_ROWS 10
#define MB_RAVEN_MODES (2 * (MB_RAVEN_MOST_ROWS + 1) + 1)

typedef struct mb_raven_plan {
    int64_t angles, pad, height, top; /* top: the highest fy that is touched */
    int64_t modes, rows, shift_y, shift_x;
    int padding;
    double cutoff;
    int order;
    mb_profile_filter filter;
} mb_raven_plan;

static inline mb_raven_plan mb_raven_plan_make(const mb_stripes_raven_params *p, int64_t angles,
                                               int64_t columns)
{
    const int64_t least = angles < columns ? angles : columns;
    mb_raven_plan r = {0};
    r.angles = angles;
    r.pad = p->padding == MB_RAVEN_PAD_NONE ? 0
            : p->pad > 0                    ? p->pad
            : least / 10 < 150              ? least / 10
                                            : 150;
    r.height = angles + 2 * r.pad;
    r.padding = p->padding;
    r.cutoff = p->cutoff;
    r.order = (int)p->order;
    r.rows = p->rows;
    r.filter.columns = columns;
    r.filter.period = columns + 2 * r.pad;
    r.filter.left = r.pad;
    r.filter.reach = r.filter.period / 2;
    r.shift_y = r.height % 2 == 0 ? p->origin : 0;
    r.shift_x = r.filter.period % 2 == 0 ? p->origin : 0;
    r.top = r.rows + r.shift_y < r.height / 2 ? r.rows + r.shift_y : r.height / 2;
    r.modes = 1 + 2 * r.top - (r.top > 0 && 2 * r.top == r.height);
    return r;
}

/* The frequency of a mode, and whether it is a sine. */
MB_BOTH static inline int64_t mb_raven_frequency(int64_t mode)
{
    return (mode + 1) / 2;
}
MB_BOTH static inline bool mb_raven_is_sine(int64_t mode)
{
    return mode > 0 && mode % 2 == 0;
}

/* Sum over `count` places from j on of the sine or cosine of a mode. */
MB_BOTH static inline double mb_raven_wave_sum(const mb_raven_plan *r, int64_t mode, int64_t j,
                                               int64_t count)
{
    const double pi = 3.14159265358979323846;
    const int64_t f = mb_raven_frequency(mode);
    /* the phase of the middle, in units of pi / H */
    const int64_t phase = f * (2 * j + count - 1) % (2 * r->height);
    const double at = pi * (double)phase / (double)r->height;
    const double half = pi * (double)f / (double)r->height;
    const double sum = f == 0 ? (double)count : sin((double)count * half) / sin(half);
    return sum * (mb_raven_is_sine(mode) ? sin(at) : cos(at));
}

/* Elements of P and Q. */
MB_BOTH static inline double mb_raven_p(const mb_raven_plan *r, int64_t mode, int64_t a)
{
    double value = mb_raven_wave_sum(r, mode, r->pad + a, 1);
    if (r->pad == 0)
        return value;
    if (r->padding == MB_RAVEN_PAD_MEAN)
        return value + (mb_raven_wave_sum(r, mode, 0, r->pad) +
                        mb_raven_wave_sum(r, mode, r->pad + r->angles, r->pad)) /
                           (double)r->angles;
    if (a == 0)
        value += mb_raven_wave_sum(r, mode, 0, r->pad);
    if (a == r->angles - 1)
        value += mb_raven_wave_sum(r, mode, r->pad + r->angles, r->pad);
    return value;
}
MB_BOTH static inline double mb_raven_q(const mb_raven_plan *r, int64_t mode, int64_t a)
{
    const int64_t f = mb_raven_frequency(mode);
    const double sides = f == 0 || 2 * f == r->height ? 1 : 2;
    return sides / (double)r->height * mb_raven_wave_sum(r, mode, r->pad + a, 1);
}

/* Is row fy of the spectrum filtered? -height / 2 <= fy <= height / 2 */
static inline bool mb_raven_touched(const mb_raven_plan *r, int64_t fy)
{
    const int64_t own = (2 * fy == r->height ? -fy : fy) + r->shift_y;
    return own >= -r->rows && own <= r->rows;
}

/* What becomes of the profile of a mode. */
static inline mb_profile_recipe mb_raven_recipe(const mb_raven_plan *r, int64_t mode)
{
    const int64_t f = mb_raven_frequency(mode);
    const bool plus = mb_raven_touched(r, f), minus = mb_raven_touched(r, -f);
    const float part = (plus ? 0.5f : 0.0f) + (minus ? 0.5f : 0.0f);
    mb_profile_recipe recipe = {part, -part, 0, (int)mode};
    if (plus != minus) {
        recipe.odd = plus != mb_raven_is_sine(mode) ? 1.0f : -1.0f;
        recipe.other = (int)(mb_raven_is_sine(mode) ? mode - 1 : mode + 1);
    }
    return recipe;
}

/* Taps of b: sum over fx of b(fx) exp(2 pi i fx d / W) / W, the even (real) and the odd (imaginary)
** part. Values of b below 1e-10 are left out. */
MB_BOTH static inline void mb_raven_tap(const mb_raven_plan *r, int64_t d, double *even,
                                        double *odd)
{
    const double pi = 3.14159265358979323846;
    const int64_t period = r->filter.period, low = -(period / 2), high = (period - 1) / 2;
    const double far = ceil(r->cutoff * pow(1e10, 0.5 / r->order)) + 1;
    const int64_t reach = far < (double)period ? (int64_t)far : period;
    const int64_t first = -reach > low ? -reach : low, last = reach < high ? reach : high;
    const double turn = 2 * pi * (double)(d % period) / (double)period;
    const double cos_turn = cos(turn), sin_turn = sin(turn);
    double re = 0, im = 0, c = 1, s = 0;
    for (int64_t f = first; f <= last; f++) {
        if ((f - first) % 16 == 0) {
            const double at = 2 * pi * (double)(f * d % period) / (double)period;
            c = cos(at);
            s = sin(at);
        }
        const double x = fabs((double)(f + r->shift_x)) / r->cutoff;
        const double b = 1 / (1 + pow(x, 2 * r->order));
        re += b * c;
        im += b * s;
        const double keep = c * cos_turn - s * sin_turn;
        s = s * cos_turn + c * sin_turn;
        c = keep;
    }
    const double weight = mb_profile_tap_weight(&r->filter, d) / (double)period;
    *even = re * weight;
    *odd = im * weight;
}

#endif
