/*
** resample: what the host and the CUDA kernel share. Arrays: a (in), result (out).
**
** Along an axis, element i of the n of the result covers [i, i + 1) s of the m pixels of the
** frame, s = m / n, counted from the edge of the first. box takes the mean over that, linear the
** value at its middle. Either is a weighted sum of neighbors, of which those between the first and
** the last have one weight.
*/
#ifndef MB_OPS_OP_RESAMPLE_H
#define MB_OPS_OP_RESAMPLE_H

#include "core/both.h"
#include "ops/op.h"
#include <math.h>

typedef struct mb_resample_params {
    mb_vector size; /* {rows, columns} */
    int method;
    mb_vector part; /* {first row, height}, rows from 1; absent: frames are whole */
    mb_vector rows; /* {first, last} of the result, from 1; absent: all */
} mb_resample_params;

enum { MB_RESAMPLE_BOX, MB_RESAMPLE_LINEAR };
enum { MB_RESAMPLE_A, MB_RESAMPLE_RESULT };

typedef struct mb_resample_taps {
    int64_t first;
    int64_t count;
    float low, middle, high; /* weights of the first, those between, and the last; count 1: low */
} mb_resample_taps;

MB_BOTH static inline mb_resample_taps mb_resample_at(int method, int64_t i, int64_t m, int64_t n)
{
    const double s = (double)m / (double)n;
    mb_resample_taps t;
    if (method == MB_RESAMPLE_LINEAR) {
        double c = ((double)i + 0.5) * s - 0.5;
        c = rint(c * 16777216.0) * (1 / 16777216.0);
        c = c > 0 ? c : 0;
        c = c < (double)(m - 1) ? c : (double)(m - 1);
        t.first = (int64_t)floor(c);
        t.high = (float)(c - (double)t.first);
        t.count = 1 + (t.high > 0);
        t.low = 1 - t.high;
        t.middle = 0;
        return t;
    }
    /* The ends are rounded, so that whole ones stay whole. */
    const double from = rint((double)i * s * 16777216.0) * (1 / 16777216.0),
                 to = rint((double)(i + 1) * s * 16777216.0) * (1 / 16777216.0);
    int64_t end = (int64_t)ceil(to);
    end = end < m ? end : m;
    t.first = (int64_t)floor(from);
    t.first = t.first < m ? t.first : m - 1;
    t.count = end - t.first > 1 ? end - t.first : 1;
    const double middle = 1 / (to - from);
    t.middle = (float)middle;
    t.low = t.count == 1 ? 1 : (float)(((double)(t.first + 1) - from) * middle);
    t.high = (float)((to - (double)(t.first + t.count - 1)) * middle);
    return t;
}

MB_BOTH static inline float mb_resample_weight(const mb_resample_taps *t, int64_t k)
{
    return k == 0 ? t->low : k < t->count - 1 ? t->middle : t->high;
}

typedef struct mb_resample_window {
    int64_t first, height; /* of `a` in the frame */
    int64_t from, count;   /* rows of the result */
    int64_t rows, cols;    /* of the whole result */
} mb_resample_window;

static inline mb_resample_window mb_resample_window_of(const mb_resample_params *p,
                                                       const mb_shape *shape)
{
    mb_resample_window w;
    w.first = 0;
    w.height = shape->dims[shape->rank - 2];
    if (p->part.count) {
        w.first = (int64_t)p->part.values[0] - 1;
        w.height = (int64_t)p->part.values[1];
    }
    w.rows = (int64_t)p->size.values[0];
    w.cols = (int64_t)p->size.values[1];
    w.from = 0;
    w.count = w.rows;
    if (p->rows.count) {
        w.from = (int64_t)p->rows.values[0] - 1;
        w.count = (int64_t)p->rows.values[1] - w.from;
    }
    return w;
}

#endif
