/*
** horizontal_shift: what the host and the CUDA kernel share. Arrays: a (in), result (out; may be
** the same array). A row is made from its first column on if its sources lie at or right of it,
** else from the last, so that in place no source is overwritten before it is read.
*/
#ifndef MB_OPS_OP_HORIZONTAL_SHIFT_H
#define MB_OPS_OP_HORIZONTAL_SHIFT_H

#include "core/both.h"
#include "ops/corrections/op_vertical_shift.h"

typedef struct mb_horizontal_shift_params {
    mb_vertical_shift_params list; /* shifts and indices */
    int mode;
    double value;
} mb_horizontal_shift_params;

enum { MB_HORIZONTAL_CONSTANT, MB_HORIZONTAL_EDGE };
enum { MB_HORIZONTAL_SHIFT_A, MB_HORIZONTAL_SHIFT_RESULT };

/* Column x of a row; `edge`: columns beyond are those at the edges, otherwise `value`. */
MB_BOTH static inline float mb_horizontal_at(const float *row, int64_t cols, int64_t x,
                                             int64_t whole, float far, bool edge, float value)
{
    int64_t low = x + whole, high = low + 1;
    if (edge) {
        low = low < 0 ? 0 : low < cols ? low : cols - 1;
        high = high < 0 ? 0 : high < cols ? high : cols - 1;
    }
    const float a = low >= 0 && low < cols ? row[low] : value;
    if (!(far > 0))
        return a;
    const float b = high >= 0 && high < cols ? row[high] : value;
    return a + far * (b - a);
}

#endif
