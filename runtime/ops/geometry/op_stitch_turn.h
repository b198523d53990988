/*
** stitch_turn: what the host and the CUDA kernel share. Arrays: a (in), result (out).
**
** Columns are counted from the edge of the detector away from the axis: t = 0 to W - 1, the axis
** is at t = a = W - (overlap + 1) / 2. A ray at t of angle theta is the ray at 2a - t of theta +
** pi.
*/
#ifndef MB_OPS_OP_STITCH_TURN_H
#define MB_OPS_OP_STITCH_TURN_H

#include "core/both.h"
#include "ops/op.h"
#include <math.h>

typedef struct mb_stitch_turn_params {
    double overlap; /* columns seen twice; negative: columns that nobody sees */
    int side;
    int64_t half; /* frames of half a turn */
    int gap;
    int64_t before, after; /* columns added */
} mb_stitch_turn_params;

enum { MB_STITCH_LEFT, MB_STITCH_RIGHT };
enum { MB_STITCH_LINEAR, MB_STITCH_EDGE };
enum { MB_STITCH_TURN_A, MB_STITCH_TURN_RESULT };

typedef struct mb_stitch_turn {
    double axis;          /* a */
    int64_t cols, joined; /* W; columns without the added ones */
    int64_t before;
    int64_t twice;     /* 2 a, rounded down */
    int64_t few, many; /* t < few: seen by one frame alone; t >= many: by the other one */
    bool left, edge;
    bool whole; /* 2 a is a whole number: the other frame has no places between pixels */
} mb_stitch_turn;

static inline mb_stitch_turn mb_stitch_turn_of(const mb_stitch_turn_params *p, int64_t cols)
{
    mb_stitch_turn s;
    s.cols = cols;
    s.axis = (double)cols - 0.5 * (p->overlap + 1);
    s.joined = (int64_t)floor(2 * s.axis + 1e-9) + 1;
    s.before = p->before;
    s.twice = (int64_t)(2 * s.axis);
    s.whole = 2 * s.axis == (double)s.twice;
    s.few = s.twice - cols + 1 < cols ? s.twice - cols + 1 : cols;
    s.many = s.twice - cols + 2 > cols ? s.twice - cols + 2 : cols;
    s.left = p->side == MB_STITCH_LEFT;
    s.edge = p->gap == MB_STITCH_EDGE;
    return s;
}

/* Of a row, the element t columns from the far edge. */
MB_BOTH static inline float mb_stitch_from(const mb_stitch_turn *s, const float *row, int64_t t)
{
    return row[s->left ? s->cols - 1 - t : t];
}

/* The row half a turn later, at its place `back`, not beyond W - 1. */
MB_BOTH static inline float mb_stitch_other(const mb_stitch_turn *s, const float *row, double back)
{
    const double low = floor(back);
    const int64_t b = (int64_t)low;
    const float f = (float)(back - low), near = mb_stitch_from(s, row, b);
    return f > 0 ? near + f * (mb_stitch_from(s, row, b + 1) - near) : near;
}

/* The place t of column x of the result; added columns repeat the edges. */
MB_BOTH static inline int64_t mb_stitch_place(const mb_stitch_turn *s, int64_t x)
{
    int64_t t = x - s->before;
    t = t < 0 ? 0 : t < s->joined ? t : s->joined - 1;
    return s->left ? s->joined - 1 - t : t;
}

/* Column x of the result, from a row and the row half a turn later. */
MB_BOTH static inline float mb_stitch_turn_at(const mb_stitch_turn *s, const float *own,
                                              const float *other, int64_t x)
{
    const double last = (double)(s->cols - 1);
    const int64_t t = mb_stitch_place(s, x);
    if (t < s->few)
        return mb_stitch_from(s, own, t);
    if (s->whole && t >= s->many)
        return mb_stitch_from(s, other, s->twice - t);
    double back = 2 * s->axis - (double)t;
    back = back > 0 ? back : 0;
    const bool seen = (double)t <= last, behind = back <= last;
    if (seen && behind) {
        const double both = last - s->axis;
        double w = both > 0 ? 0.5 - 0.5 * ((double)t - s->axis) / both : 0.5;
        w = w < 0 ? 0 : w > 1 ? 1 : w;
        const float a = mb_stitch_from(s, own, t);
        return w >= 1 ? a : a * (float)w + (float)(1 - w) * mb_stitch_other(s, other, back);
    }
    if (seen)
        return mb_stitch_from(s, own, t);
    if (behind)
        return mb_stitch_other(s, other, back);
    /* a gap, between the edges of both; what lies left of it is `own` unless the axis is there */
    const float a = mb_stitch_from(s, own, s->cols - 1), b = mb_stitch_from(s, other, s->cols - 1);
    if (s->edge)
        return s->left ? b : a;
    const double f = ((double)t - last) / (2 * (s->axis - last));
    return a + (float)f * (b - a);
}

#endif
