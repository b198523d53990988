/*
** vertical_shift: what the host and the CUDA kernel share. Arrays: a (in), result (out; may be the
** same array). No scratch.
**
** In place, every column is walked in the direction in which its sources lie: row z needs rows z +
** whole and z + whole + 1, so for whole >= 0 rows are made from the first to the last, else from
** the last to the first, and no source is overwritten before it is read.
*/
#ifndef MB_OPS_OP_VERTICAL_SHIFT_H
#define MB_OPS_OP_VERTICAL_SHIFT_H

#include "ops/op_args.h"
#include <math.h>

typedef struct mb_vertical_shift_params {
    mb_vector shifts;  /* rows; one per frame, or those that `indices` name */
    mb_vector indices; /* 1-based: frame j is shifted by shifts[indices[j]]; absent: by shifts[j] */
} mb_vertical_shift_params;

enum { MB_VERTICAL_SHIFT_A, MB_VERTICAL_SHIFT_RESULT };

/* result[z] = near * a[z + whole] + far * a[z + whole + 1], 0 outside. far = 0: the second row is
** not read. */
typedef struct mb_vertical_shift_frame {
    int64_t whole;
    float near, far;
} mb_vertical_shift_frame;

/* For frame `j` (0-based) of `rows` rows. */
static inline mb_vertical_shift_frame mb_vertical_shift_at(const mb_vertical_shift_params *p,
                                                           int64_t j, int64_t rows)
{
    mb_vertical_shift_frame frame;
    int64_t k = p->indices.count ? (int64_t)p->indices.values[j] - 1 : j;
    double shift = p->shifts.values[k], whole = floor(shift), far = shift - whole;
    double most = (double)rows + 1; /* beyond it everything is outside */
    frame.whole = (int64_t)(whole > most ? most : whole < -most ? -most : whole);
    frame.near = (float)(1.0 - far);
    frame.far = (float)far;
    return frame;
}

/* The shifts of a stack of frames, or of one frame; its result is like it. */
static inline mb_status mb_vertical_shift_infer(const mb_vertical_shift_params *p, mb_spec *arrays)
{
    const mb_shape *shape = &arrays[MB_VERTICAL_SHIFT_A].shape;
    const int64_t frames = shape->rank == 3 ? shape->dims[0] : 1;
    if (p->indices.count == 0 && p->shifts.count != frames)
        return mb_fail(MB_STATUS_ARGUMENT, "shifts",
                       "%lld shifts were given for %lld projections; give one each, or indices",
                       (long long)p->shifts.count, (long long)frames);
    if (p->indices.count != 0 && p->indices.count != frames)
        return mb_fail(MB_STATUS_ARGUMENT, "indices",
                       "%lld indices were given for %lld projections; give one each",
                       (long long)p->indices.count, (long long)frames);
    for (int64_t j = 0; j < p->indices.count; j++) {
        const double k = p->indices.values[j];
        if (k != floor(k) || k > (double)p->shifts.count)
            return mb_fail(MB_STATUS_ARGUMENT, "indices",
                           "element %lld of indices is %g; it must be a whole number of 1 to %lld, "
                           "the number of shifts",
                           (long long)j + 1, k, (long long)p->shifts.count);
    }
    arrays[MB_VERTICAL_SHIFT_RESULT] = arrays[MB_VERTICAL_SHIFT_A];
    return MB_STATUS_OK;
}

/* A piece along the axis of the frames: these have their numbers with them. */
static inline void mb_vertical_shift_piece(const mb_spec *arrays, int axis,
                                           const mb_op_piece *piece, mb_vertical_shift_params *p)
{
    mb_vector *own = p->indices.count ? &p->indices : &p->shifts;
    if (axis == arrays[MB_VERTICAL_SHIFT_A].shape.rank - 3)
        *own = mb_vector_part(own, piece->input);
}

#endif
