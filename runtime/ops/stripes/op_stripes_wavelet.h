/*
** stripes_wavelet: what the host and the CUDA kernel share. Arrays: sino (in), result (out; may be
** sino). Slots: those of angle_modes.h, then the work area of the tables and that of the rows.
**
** A level k of the two-dimensional wavelet transform of a sinogram has a band of vertical details,
** low-pass along the angles and high-pass along the columns, where stripes are. Its columns, M_k
** values along the angles, are damped in Fourier space by 1 - g(f). All else stays, and the
** transform can be inverted exactly, so the result is the sinogram minus the inverse transform of g times the
** bands. g is a narrow Gaussian: few frequencies f are left. With them the band of level k is
** (F_k A_k) x B_k', where A_k is k low-pass steps along the angles, F_k some rows of a Fourier
** matrix, and B_k works along the columns: (F_k A_k) are modes of angle_modes.h. P has a row A_k'
** F_k' for each level, frequency and sine or cosine, Q has the inverse steps of the same sines and
** cosines with their gains, and B_k and its inverse filter the profiles. No transform of a whole
** sinogram is made, at any level.
**
** Steps: c[m] = sum over t of h[t] v[2 m + s - t]. Symmetric edges repeat the edge value, s = 1,
** and n values give (n + L - 1) / 2 coefficients for a filter of L. Periodic ones have s = L / 2;
** an odd n is made even by one more last value, and gives (n + 1) / 2.
*/
#ifndef MB_OPS_OP_STRIPES_WAVELET_H
#define MB_OPS_OP_STRIPES_WAVELET_H

#include "ops/stripes/angle_modes.h"
#include "ops/stripes/wavelet_tables.h"
#include <math.h>

#define MB_WAVELET_LEVELS 20
#define MB_WAVELET_LENGTH 40 /* the longest filter */
#define MB_WAVELET_DAUBECHIES 20

typedef enum mb_wavelet_boundary { MB_WAVELET_SYMMETRIC, MB_WAVELET_PERIODIC } mb_wavelet_boundary;

typedef enum mb_wavelet_padding {
    MB_WAVELET_PAD_NONE,
    MB_WAVELET_PAD_ANGLES,  /* zeros, an eighth of the angles in all */
    MB_WAVELET_PAD_COLUMNS, /* edge values, half of the columns on both sides */
    /* a tenth of the smaller extent, at most 150, on all sides: means along the angles, edge values
    ** along the columns */
    MB_WAVELET_PAD_BOTH
} mb_wavelet_padding;

typedef struct mb_stripes_wavelet_params {
    int wavelet; /* 0 ... 19: db1 ... db20; then sym2 ... sym20 */
    double sigma;
    int64_t level; /* 0 = auto */
    int boundary;
    int padding;
    double origin;
} mb_stripes_wavelet_params;

enum { MB_STRIPES_WAVELET_SINO, MB_STRIPES_WAVELET_RESULT };
enum { MB_STRIPES_WAVELET_CASCADE = MB_MODES_SLOTS, MB_STRIPES_WAVELET_ROWS };

/* Everything that follows from the parameters and the extents; a kernel argument. */
typedef struct mb_wavelet_plan {
    int levels, length, boundary, padding;
    double sigma, origin;
    double low[MB_WAVELET_LENGTH];                                     /* h */
    float low_f[MB_WAVELET_LENGTH];                                    /* the same */
    float high_f[MB_WAVELET_LENGTH];                                   /* of the high-pass */
    int64_t angles, columns;                                           /* of a sinogram */
    int64_t before, left;                                              /* padding in front */
    int64_t rows[MB_WAVELET_LEVELS + 1], width[MB_WAVELET_LEVELS + 1]; /* M_k, N_k */
    int64_t first[MB_WAVELET_LEVELS + 1]; /* mode of level k + 1; the last: how many there are */
} mb_wavelet_plan;

static inline const double *mb_wavelet_low(int wavelet, int *length)
{
    const int order =
        wavelet < MB_WAVELET_DAUBECHIES ? wavelet + 1 : wavelet - MB_WAVELET_DAUBECHIES + 2;
    *length = 2 * order;
    return wavelet < MB_WAVELET_DAUBECHIES ? mb_daubechies_table + order * (order - 1)
                                           : mb_symlet_table + order * (order - 1) - 2;
}

/* Coefficients of n values. */
static inline int64_t mb_wavelet_half(const mb_wavelet_plan *w, int64_t n)
{
    return w->boundary == MB_WAVELET_PERIODIC ? (n + 1) / 2 : (n + w->length - 1) / 2;
}

/* What is left of frequency f of `rows` values, 0 <= f <= rows / 2, is 1 - this. With an origin the
** Gaussian of an even number of rows is not centered, and its real part is taken. */
MB_BOTH static inline double mb_wavelet_gain(const mb_wavelet_plan *w, int64_t rows, int64_t f)
{
    const double o = rows % 2 == 0 ? w->origin : 0, d = 2 * w->sigma * w->sigma;
    const double below = (double)f - o, above = (double)f + o;
    if (2 * f == rows)
        return exp(-below * below / d); /* -rows / 2 alone */
    return (exp(-below * below / d) + exp(-above * above / d)) / 2;
}

/* The frequencies of `rows` values of which more than 1e-6 goes: 0 to this. */
static inline int64_t mb_wavelet_highest(const mb_wavelet_plan *w, int64_t rows)
{
    const double far = floor(w->sigma * sqrt(2 * log(1e6)) + w->origin);
    const int64_t half = rows / 2;
    int64_t top = far < (double)half ? (int64_t)far : half;
    while (top > 0 && mb_wavelet_gain(w, rows, top) < 1e-6)
        top--;
    return top;
}

static inline mb_wavelet_plan mb_wavelet_plan_make(const mb_stripes_wavelet_params *p,
                                                   int64_t angles, int64_t columns)
{
    mb_wavelet_plan w = {0};
    const double *low = mb_wavelet_low(p->wavelet, &w.length);
    const int64_t least = angles < columns ? angles : columns;
    const int64_t most = angles > columns ? angles : columns;
    const int64_t tenth = least / 10 < 150 ? least / 10 : 150;
    int64_t after = 0, right = 0;
    for (int t = 0; t < w.length; t++) {
        w.low[t] = low[t];
        w.low_f[t] = (float)low[t];
        w.high_f[t] = (float)(t % 2 ? low[w.length - 1 - t] : -low[w.length - 1 - t]);
    }
    w.boundary = p->boundary;
    w.padding = p->padding;
    w.sigma = p->sigma;
    w.origin = p->origin;
    w.angles = angles;
    w.columns = columns;
    if (p->padding == MB_WAVELET_PAD_ANGLES) {
        w.before = angles / 8 / 2;
        after = angles / 8 - w.before;
    } else if (p->padding == MB_WAVELET_PAD_COLUMNS) {
        w.left = right = columns / 2;
        right += (columns + 2 * w.left) % 2;
    } else if (p->padding == MB_WAVELET_PAD_BOTH) {
        w.before = after = w.left = right = tenth;
    }
    w.levels = (int)p->level;
    if (w.levels == 0)
        for (w.levels = 1; w.levels < MB_WAVELET_LEVELS && (int64_t)1 << w.levels < most;)
            w.levels++;
    w.rows[0] = w.before + angles + after;
    w.width[0] = w.left + columns + right;
    for (int k = 1; k <= w.levels; k++) {
        w.rows[k] = mb_wavelet_half(&w, w.rows[k - 1]);
        w.width[k] = mb_wavelet_half(&w, w.width[k - 1]);
        const int64_t top = mb_wavelet_highest(&w, w.rows[k]);
        w.first[k] = w.first[k - 1] + 1 + 2 * top - (top > 0 && 2 * top == w.rows[k]);
    }
    return w;
}

static inline int64_t mb_wavelet_modes(const mb_wavelet_plan *w)
{
    return w->first[w->levels];
}

/* The level of a mode: 1 ... levels. */
MB_BOTH static inline int mb_wavelet_level(const mb_wavelet_plan *w, int64_t mode)
{
    int k = 1;
    while (mode >= w->first[k])
        k++;
    return k;
}

/* Doubles of one of the two buffers in which a mode is made. */
static inline int64_t mb_wavelet_cascade(const mb_wavelet_plan *w)
{
    int64_t most = 1;
    for (int k = 1; k <= w->levels; k++)
        most = w->rows[k] > most ? w->rows[k] : most;
    return most;
}

/* ---- CUDA: sizes of slots. A block makes a mode of one table in a part of the first; a block that
** filters a profile has both its buffers in shared memory, or in the second slot if they are too
** long. Values of N_k are in the first buffer for even k, in the second for odd k. ---- */

static inline uint64_t mb_wavelet_cuda_cascade_bytes(const mb_wavelet_plan *w)
{
    return 4 * sizeof(double) * (uint64_t)(mb_wavelet_modes(w) * mb_wavelet_cascade(w));
}

/* Floats of buffer 0 or 1. */
static inline int64_t mb_wavelet_cuda_buffer(const mb_wavelet_plan *w, int number)
{
    int64_t most = 1;
    for (int k = number; k <= w->levels; k += 2)
        most = w->width[k] > most ? w->width[k] : most;
    return most;
}

/* Bytes of both buffers. */
static inline uint64_t mb_wavelet_cuda_row_bytes(const mb_wavelet_plan *w)
{
    return sizeof(float) * (uint64_t)(mb_wavelet_cuda_buffer(w, 0) + mb_wavelet_cuda_buffer(w, 1));
}

static inline uint64_t mb_wavelet_cuda_rows_bytes(const mb_wavelet_plan *w, const mb_device *device,
                                                  int64_t count)
{
    const uint64_t bytes = mb_wavelet_cuda_row_bytes(w);
    const int64_t modes = mb_wavelet_modes(w);
    const int64_t group = mb_modes_group(device, count, w->angles, w->columns, modes);
    return bytes + 1024 <= device->facts.block_shared_bytes ? 0 : bytes * (uint64_t)(modes * group);
}

/* Value m of a mode at its level: a cosine or a sine. */
MB_BOTH static inline double mb_wavelet_wave(const mb_wavelet_plan *w, int64_t mode, int64_t m)
{
    const int k = mb_wavelet_level(w, mode);
    const int64_t number = mode - w->first[k - 1], f = (number + 1) / 2;
    const double turns = 2 * (double)(f * m % w->rows[k]) / (double)w->rows[k];
    const double pi = 3.14159265358979323846;
    return number % 2 || number == 0 ? cos(pi * turns) : sin(pi * turns);
}

/* The factor of a mode in the inverse Fourier transform, times its gain. */
MB_BOTH static inline double mb_wavelet_factor(const mb_wavelet_plan *w, int64_t mode)
{
    const int k = mb_wavelet_level(w, mode);
    const int64_t f = (mode - w->first[k - 1] + 1) / 2;
    const double sides = f == 0 || 2 * f == w->rows[k] ? 1 : 2;
    return sides / (double)w->rows[k] * mb_wavelet_gain(w, w->rows[k], f);
}

/* What coefficients v (`count`) give to the place j: sum over m of h[2 m + s - j] v[m]. */
MB_BOTH static inline double mb_wavelet_spread(const mb_wavelet_plan *w, const double *v,
                                               int64_t count, int64_t j)
{
    const int64_t s = w->boundary == MB_WAVELET_PERIODIC ? w->length / 2 : 1;
    /* 0 <= 2 m + s - j < length */
    int64_t first = j - s < 0 ? -((s - j) / 2) : (j - s + 1) / 2;
    int64_t last = j - s + w->length - 1;
    double sum = 0;
    if (last < 0)
        return 0;
    last /= 2;
    first = first < 0 ? 0 : first;
    last = last < count - 1 ? last : count - 1;
    for (int64_t m = first; m <= last; m++)
        sum += w->low[2 * m + s - j] * v[m];
    return sum;
}

/* Value i of the n that `count` coefficients come from: by the inverse low-pass step, or by the
** transposed one, which P has. */
MB_BOTH static inline double mb_wavelet_up(const mb_wavelet_plan *w, const double *v, int64_t count,
                                           int64_t n, int64_t i, bool transposed)
{
    double sum = 0;
    if (w->boundary == MB_WAVELET_PERIODIC) {
        const int64_t period = 2 * count;
        /* places from 1 - L / 2 to period - 2 + L / 2 */
        const int64_t low = 1 - w->length / 2, high = period - 2 + w->length / 2;
        /* extents of a filter's length or more need no division */
        const int64_t back = period < w->length ? (i - low) / period : i - period >= low;
        for (int64_t j = i - back * period; j <= high; j += period)
            sum += mb_wavelet_spread(w, v, count, j);
        if (transposed && n % 2 && i == n - 1)
            for (int64_t j = n - (n - low) / period * period; j <= high; j += period)
                sum += mb_wavelet_spread(w, v, count, j);
        return sum;
    }
    if (!transposed)
        return mb_wavelet_spread(w, v, count, i);
    /* every place from 2 - L to 2 count - 1 that an edge reflects to i */
    const int64_t low = 2 - w->length, high = 2 * count - 1, mirror = 2 * n - 1 - i;
    const int64_t back = n < w->length ? (i - low) / (2 * n) : 0;
    const int64_t turned = n < w->length ? (mirror - low) / (2 * n) : mirror - 2 * n >= low;
    for (int64_t j = i - back * 2 * n; j <= high; j += 2 * n)
        sum += mb_wavelet_spread(w, v, count, j);
    for (int64_t j = mirror - turned * 2 * n; j <= high; j += 2 * n)
        sum += mb_wavelet_spread(w, v, count, j);
    return sum;
}

/* The place, of n, of index i of values that go on beyond their edges. */
MB_BOTH static inline int64_t mb_wavelet_place(const mb_wavelet_plan *w, int64_t i, int64_t n)
{
    if (i >= 0 && i < n)
        return i;
    if (w->boundary == MB_WAVELET_PERIODIC) {
        const int64_t period = n + n % 2;
        i %= period;
        i = i < 0 ? i + period : i;
        return i < n ? i : n - 1;
    }
    i %= 2 * n;
    i = i < 0 ? i + 2 * n : i;
    return i < n ? i : 2 * n - 1 - i;
}

#endif
