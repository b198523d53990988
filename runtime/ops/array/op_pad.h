/*
** pad: what the host and the CUDA kernel share. Arrays: a (in), result (out). No scratch where
** every axis is index arithmetic (mb_pad_source); mode custom has two 1-D tables of 0-based source
** indices, int32, and nothing else.
*/
#ifndef MB_OPS_OP_PAD_H
#define MB_OPS_OP_PAD_H

#include "core/both.h"
#include "ops/array/margins.h"

typedef enum mb_pad_mode {
    MB_PAD_CONSTANT,
    MB_PAD_EDGE,
    MB_PAD_REFLECT,   /* d c b | a b c d | c b a */
    MB_PAD_SYMMETRIC, /* c b a | a b c d | d c b */
    MB_PAD_WRAP,      /* b c d | a b c d | a b c */
    MB_PAD_CUSTOM     /* whatever rows_index and cols_index say */
} mb_pad_mode;

typedef struct mb_pad_params {
    mb_margins margins;
    int mode;
    mb_vector value; /* one number, {before, after}, or such a pair for each axis; or absent (0) */
    mb_vector rows_index,
        cols_index; /* custom: 1-based sources along the last axis but one and the last */
} mb_pad_params;

enum { MB_PAD_A, MB_PAD_RESULT };
enum { MB_PAD_ROWS_TABLE, MB_PAD_COLS_TABLE }; /* slots; empty where the axis has no index array */

/* The index array of an axis, or NULL. */
static inline const mb_vector *mb_pad_index(const mb_pad_params *p, int axis, int rank)
{
    const mb_vector *index = axis == rank - 1   ? &p->cols_index
                             : axis == rank - 2 ? &p->rows_index
                                                : NULL;
    return index && index->count ? index : NULL;
}

/* The constant before (side 0) or behind (1) an axis. */
static inline double mb_pad_value(const mb_pad_params *p, int axis, int side)
{
    const int64_t count = p->value.count;
    if (count == 0)
        return 0;
    return p->value.values[count == 1 ? 0 : count == 2 ? side : 2 * axis + side];
}

/* Source index of position i (0 at the first source element, may be negative or >= n) on an axis of
** n >= 1 elements; -1: outside, take the constant. As numpy.pad, also for pads longer than the
** axis. */
MB_BOTH static inline int64_t mb_pad_source(int mode, int64_t i, int64_t n)
{
    int64_t period, r;
    if (i >= 0 && i < n)
        return i;
    switch (mode) {
    case MB_PAD_EDGE: return i < 0 ? 0 : n - 1;
    case MB_PAD_REFLECT:
        if (n == 1)
            return 0;
        period = 2 * (n - 1);
        r = i % period;
        r = r < 0 ? r + period : r;
        return r < n ? r : period - r;
    case MB_PAD_SYMMETRIC:
        period = 2 * n;
        r = i % period;
        r = r < 0 ? r + period : r;
        return r < n ? r : period - 1 - r;
    case MB_PAD_WRAP: r = i % n; return r < 0 ? r + n : r;
    default: return -1;
    }
}

#endif
