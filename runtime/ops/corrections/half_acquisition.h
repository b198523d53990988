/*
** Half acquisition: a whole turn with the rotation axis near one edge of the detector, so that the
** scan sees the field of view in two halves. Pure functions, shared by half_acquisition_weight and
** stitch_half_acquisition on every backend.
**
** Columns are counted from the far edge, the one away from the axis: t = u for an axis right of the
** middle, t = W - 1 - u for one left of it, and the axis lies at t = a with a > (W - 1)/2. A ray at
** t of angle theta is the ray at 2a - t of theta + pi. Together the two reach from t = 0 to t = 2a,
** that is E = floor(2a) + 1 columns, W <= E < 2W. Columns with 2a - (W - 1) <= t <= W - 1 are seen
** twice: overlap = 2W - E of them, within one. (Published codes use int(2 (W - 1 - a)) for the
** overlap, which is one less, and so join the halves one pixel apart.) Weight: 1 below the overlap,
** then falling linearly to 0 at the near edge; w(t) + w(2a - t) = 1.
*/
#ifndef MB_OPS_HALF_ACQUISITION_H
#define MB_OPS_HALF_ACQUISITION_H

#include "core/both.h"
#include "ops/op.h"
#include <math.h>

#define MB_HALF_ACQUISITION_CENTER_ARG                                                             \
    MB_FLOAT_REQUIRED(center, MB_ANY, 0, "px",                                                     \
                      "rotation axis, 0-based, at least a pixel from the middle of the detector")

typedef struct mb_half_acquisition {
    int64_t cols;     /* W */
    int64_t extended; /* E */
    double axis;      /* a */
    int left;         /* the axis is left of the middle: columns are mirrored */
} mb_half_acquisition;

/* For an axis that mb_half_acquisition_check has accepted. */
static inline mb_half_acquisition mb_half_acquisition_of(double center, int64_t cols)
{
    mb_half_acquisition h;
    double last = (double)(cols - 1);
    h.cols = cols;
    h.left = center < 0.5 * last;
    h.axis = h.left ? last - center : center;
    h.extended = (int64_t)floor(2.0 * h.axis) + 1;
    return h;
}

/* NULL when the axis will do, else what is wrong with it, as a printf format for (center, cols). */
static inline const char *mb_half_acquisition_problem(double center, int64_t cols)
{
    double last = (double)(cols - 1);
    if (!(center >= 0 && center <= last))
        return "center %g lies outside the detector of %lld columns; give a column of it, from 0";
    if (fabs(center - 0.5 * last) < 1)
        return "center %g is within a pixel of the middle of the detector (%lld columns); this is "
               "not a half acquisition: reconstruct it without that option";
    return NULL;
}

/* Weight of column u, 0 <= u < W. */
MB_BOTH static inline float mb_half_acquisition_weight_at(const mb_half_acquisition *h, int64_t u)
{
    double last = (double)(h->cols - 1), t = h->left ? last - (double)u : (double)u;
    double half = last - h->axis, w;
    if (half <= 0) /* the axis is the last column, and that is the overlap */
        return t < last ? 1.0f : 0.5f;
    w = 0.5 - 0.5 * (t - h->axis) / half;
    return (float)(w < 0 ? 0 : w > 1 ? 1 : w);
}

#endif
