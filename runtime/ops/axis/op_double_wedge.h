/*
** double_wedge: what the host and the CUDA kernel share. Arrays: sino (in), result (out).
**
** The image of a trial is the sinogram S (angle r, column x; H x W) with, below it, S mirrored
** about the trial axis; columns that the mirror image lacks come from S with its angles reversed.
** The metric is the mean of |2-D FFT| over the frequencies outside the double wedge.
**
** No FFT is needed for a trial. C(q, x) is the transform of column x, padded with zeros to 2 H. A
** trial shifts the mirror image by s = 2 c - (W - 1) columns. Let n = floor(s), and let D(q, k) be
** the sum of C(q, x) w^x, w = exp(-2 pi i k / W), over the columns that are filled, x < n or, for n
** < 0, x >= W + n. With U(q, k), the sum over all columns, the image's transform is
**     E(q, k) = U(q, k) + (-1)^q [w^(n - 1) conj(U - D)(-q, k) + p^q D(-q, k)],
** p = exp(-pi i (H - 1) / H). From one s to the next D gains one column: a few operations for each
** frequency. For a shift with a fraction f the mirrored columns are S between its columns, by a
** cubic spline: U and D of the first term are those of the interpolated columns
** x + f, and filled are the columns x <= n. Trials with the same fraction are a class.
**
** The real and the imaginary parts of C are kept apart: U = A + i B at q, A - i B at -q, with the
** transforms A of real parts and B of imaginary parts, and D = P +- i M alike. So
**     E(+-q, k) = Z1 +- i Z2,
**     Z1 = A + sign (w^(n - 1) conj(A - P) + g P + h M),
**     Z2 = B + sign (w^(n - 1) conj(B - M) + h P - g M),  p^q = g + i h.
*/
#ifndef MB_OPS_OP_DOUBLE_WEDGE_H
#define MB_OPS_OP_DOUBLE_WEDGE_H

#include "core/both.h"
#include "ops/op.h"
#include <math.h>
#include <stdlib.h>

typedef struct mb_double_wedge_params {
    mb_vector centers;   /* ascending, px */
    double ratio;        /* of the object to the width */
    int64_t drop;        /* rows of the spectrum around frequency 0 that do not count */
    int64_t column_drop; /* columns of it */
} mb_double_wedge_params;

enum { MB_DOUBLE_WEDGE_SINO, MB_DOUBLE_WEDGE_RESULT }; /* arrays */
enum { MB_DOUBLE_WEDGE_COLUMNS_FFT, MB_DOUBLE_WEDGE_ROWS_FFT };
enum {
    MB_DOUBLE_WEDGE_COLUMNS,  /* padded columns: host, 16 a thread; CUDA, all, transposed */
    MB_DOUBLE_WEDGE_SPECTRUM, /* C, complex[H + 1][W] */
    MB_DOUBLE_WEDGE_BETWEEN,  /* C between columns; host: 3 W complex a thread; CUDA: as C, or 0 */
    MB_DOUBLE_WEDGE_SUMS,     /* CUDA: U of C, complex[H + 1][W] */
    MB_DOUBLE_WEDGE_OTHER,    /* CUDA: U between columns, as C, or 0 */
    MB_DOUBLE_WEDGE_TURNS,    /* host: w^x, complex[W]; CUDA: 0 */
    MB_DOUBLE_WEDGE_TRIALS,   /* host: shifts, and the first trial of each class, int64[2][trials];
                              ** CUDA: (steps, trial) of a class, int32[2 trials] */
    MB_DOUBLE_WEDGE_PARTS,    /* sums of parts of the spectrum, for each trial */
    MB_DOUBLE_WEDGE_COLUMNS_WORK,
    MB_DOUBLE_WEDGE_ROWS_WORK
};

#define MB_DOUBLE_WEDGE_CENTERS 16384
#define MB_DOUBLE_WEDGE_TAPS 32         /* of the interpolation: what is beyond is below 1e-8 */
#define MB_DOUBLE_WEDGE_GRAIN 1048576.0 /* shifts are multiples of 1 / 2^20 */

typedef struct mb_double_wedge_size {
    int64_t rows, height, width; /* sinograms, H, W */
} mb_double_wedge_size;

static inline mb_double_wedge_size mb_double_wedge_size_of(const mb_shape *shape)
{
    const int rank = shape->rank;
    mb_double_wedge_size size = {rank == 3 ? shape->dims[0] : 1, shape->dims[rank - 2],
                                 shape->dims[rank - 1]};
    return size;
}

/* Floats of a column of reals padded to 2 H, and of a row of W complex: whole cache lines. */
static inline int64_t mb_double_wedge_column_pitch(int64_t height)
{
    return (2 * height + 2 + 15) / 16 * 16;
}

static inline int64_t mb_double_wedge_row_pitch(int64_t width)
{
    return (2 * width + 15) / 16 * 16;
}

#define MB_DOUBLE_WEDGE_STRIP 16   /* columns that a thread of the host transforms together */
#define MB_DOUBLE_WEDGE_GROUPS 256 /* of rows of the spectrum, whose sums the host keeps apart */

/* CUDA: a block takes tiles of so many rows and columns of the spectrum. */
#define MB_DOUBLE_WEDGE_TILE_ROWS 4
#define MB_DOUBLE_WEDGE_TILE_COLUMNS 128
#define MB_DOUBLE_WEDGE_BLOCKS 2048 /* at most; each has sums of its own */

static inline int64_t mb_double_wedge_tiles_across(int64_t width)
{
    return width / 2 / MB_DOUBLE_WEDGE_TILE_COLUMNS + 1;
}

static inline int64_t mb_double_wedge_tiles(const mb_double_wedge_size *size)
{
    return (size->height + MB_DOUBLE_WEDGE_TILE_ROWS - 1) / MB_DOUBLE_WEDGE_TILE_ROWS *
           mb_double_wedge_tiles_across(size->width);
}

static inline int64_t mb_double_wedge_blocks(const mb_double_wedge_size *size)
{
    const int64_t tiles = mb_double_wedge_tiles(size);
    return tiles < MB_DOUBLE_WEDGE_BLOCKS ? tiles : MB_DOUBLE_WEDGE_BLOCKS;
}

/* ---- trials ---- */

/* A shift in grains. */
static inline int64_t mb_double_wedge_shift(double center, int64_t width)
{
    return (int64_t)floor((2.0 * center - (double)(width - 1)) * MB_DOUBLE_WEDGE_GRAIN + 0.5);
}

static inline int64_t mb_double_wedge_whole(int64_t shift)
{
    return shift >> 20;
}

static inline int64_t mb_double_wedge_fraction(int64_t shift)
{
    return shift & ((1 << 20) - 1);
}

/* Is trial i the first one of its fraction? */
static inline bool mb_double_wedge_opens(const mb_vector *centers, int64_t i, int64_t width)
{
    const int64_t own = mb_double_wedge_fraction(mb_double_wedge_shift(centers->values[i], width));
    for (int64_t j = 0; j < i; j++)
        if (mb_double_wedge_fraction(mb_double_wedge_shift(centers->values[j], width)) == own)
            return false;
    return true;
}

/* Does a trial lie between columns? */
static inline bool mb_double_wedge_is_between(const mb_vector *centers, int64_t width)
{
    for (int64_t i = 0; i < centers->count; i++)
        if (mb_double_wedge_fraction(mb_double_wedge_shift(centers->values[i], width)) != 0)
            return true;
    return false;
}

/* ---- the mask ---- */

/* What a frequency counts: the mask is 1 at row q (-H ... H - 1) and columns -reach ... reach. */
typedef struct mb_double_wedge_mask {
    double rise; /* (2 H - 1) / (4 pi H) */
    double radius, column;
    int64_t height, width, drop, column_drop;
} mb_double_wedge_mask;

static inline mb_double_wedge_mask mb_double_wedge_mask_of(const mb_double_wedge_params *p,
                                                           const mb_double_wedge_size *size)
{
    const double pi = 3.14159265358979323846, rows = 2.0 * (double)size->height;
    mb_double_wedge_mask mask;
    const int64_t most = (int64_t)(0.05 * rows);
    mask.rise = (rows - 1.0) / (rows * 2.0 * pi);
    mask.radius = 0.5 * p->ratio * (double)size->width;
    mask.column = 1.0 / (double)size->width;
    mask.height = size->height;
    mask.width = size->width;
    mask.drop = p->drop < most ? p->drop : most;
    mask.column_drop = p->column_drop;
    return mask;
}

MB_BOTH static inline int64_t mb_double_wedge_reach(const mb_double_wedge_mask *mask, int64_t q)
{
    const double reach = ceil((double)q * mask->rise / mask->radius / mask->column);
    const double size = reach < 0 ? -reach : reach;
    return size < (double)mask->width ? (int64_t)size : mask->width;
}

/* What |E(q, k)| + |E(-q, k)|, 0 < q <= H, counts, for the conjugate half of the spectrum too.
** above, below: reach at q and at -q. */
MB_BOTH static inline float mb_double_wedge_weight(const mb_double_wedge_mask *mask, int64_t q,
                                                   int64_t k, int64_t above, int64_t below)
{
    if (q <= mask->drop || k <= mask->column_drop || 2 * k > mask->width)
        return 0.0f;
    const float both = (q < mask->height && k <= above ? 1.0f : 0.0f) + (k <= below ? 1.0f : 0.0f);
    return 2 * k == mask->width ? 0.5f * both : both;
}

/* ---- between columns ---- */

/* The cardinal cubic spline at the fraction: the weight of column x + j - TAPS / 2 + 1. Its
** coefficients are those of the recursive prefilter, a = sqrt(3) - 2 (Unser 1999, IEEE Signal
** Processing Magazine 16(6), 22). */
static inline void mb_double_wedge_taps(double fraction, float *taps)
{
    const double a = sqrt(3.0) - 2.0, f = fraction, g = 1 - f;
    const double pieces[4] = {g * g * g / 6, 2.0 / 3 - f * f * (2 - f) / 2,
                              2.0 / 3 - g * g * (2 - g) / 2, f * f * f / 6};
    for (int j = 0; j < MB_DOUBLE_WEDGE_TAPS; j++) {
        const int at = j - MB_DOUBLE_WEDGE_TAPS / 2 + 1;
        double sum = 0;
        for (int i = -1; i <= 2; i++) /* coefficient at x + i gets data at x + at */
            sum += pieces[i + 1] * sqrt(3.0) * pow(a, abs(at - i));
        taps[j] = (float)sum;
    }
}

/* Columns beyond the ends are mirrored about the first and the last one. */
MB_BOTH static inline int64_t mb_double_wedge_mirrored(int64_t x, int64_t width)
{
    const int64_t period = 2 * (width - 1);
    if (width == 1)
        return 0;
    x = x < 0 ? -x : x;
    x %= period;
    return x < width ? x : period - x;
}

#endif
