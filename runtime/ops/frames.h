/*
** Frames (frame, row, column) of f32, or one frame (row, column): an operator's array and the
** result that it makes of them. Strides are in elements; columns are dense.
*/
#ifndef MB_OPS_FRAMES_H
#define MB_OPS_FRAMES_H

#include "array/array.h"

typedef struct mb_frames {
    const float *from;
    float *to;
    int64_t count, rows, cols; /* of `from` */
    int64_t from_frame, from_pitch, to_frame, to_pitch;
} mb_frames;

static inline mb_frames mb_frames_of(const mb_array *from, const mb_array *to)
{
    const int rank = from->shape.rank;
    mb_frames f;
    f.from = (const float *)from->data;
    f.to = (float *)to->data;
    f.count = rank == 3 ? from->shape.dims[0] : 1;
    f.rows = from->shape.dims[rank - 2];
    f.cols = from->shape.dims[rank - 1];
    f.from_frame = rank == 3 ? from->strides[0] : 0;
    f.from_pitch = from->strides[rank - 2];
    f.to_frame = rank == 3 ? to->strides[0] : 0;
    f.to_pitch = to->strides[rank - 2];
    return f;
}

#endif
