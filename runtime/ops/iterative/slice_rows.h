/*
** Slices whose rows are shared out among threads, for operators that keep a sum in double for each
** slice: a segment of rows has a sum of its own, and those of a slice are added in order. Segments
** depend on the slices' extents alone, so the bits do not depend on threads, nor on how many
** slices a call has.
*/
#ifndef MB_OPS_SLICE_ROWS_H
#define MB_OPS_SLICE_ROWS_H

#include "ops/iterative/circle_row.h"
#include "ops/iterative/slice_factor.h"

#define MB_SLICE_SEGMENTS 256

/* Segments of a slice of so many rows, and the first row of one. */
static inline int64_t mb_slice_segments(int64_t rows)
{
    return rows < MB_SLICE_SEGMENTS ? rows : MB_SLICE_SEGMENTS;
}
MB_BOTH static inline int64_t mb_slice_first(int64_t segment, int64_t segments, int64_t rows)
{
    return segment * rows / segments;
}

/* Where the slices of an array begin, and their rows; data NULL where there is no array. */
typedef struct mb_slice_view {
    float *data;
    int64_t slice, row; /* strides */
} mb_slice_view;

static inline mb_slice_view mb_slice_view_of(const mb_array *array)
{
    mb_slice_view view = {NULL, 0, 0};
    if (array) {
        view.data = (float *)array->data;
        view.slice = array->shape.rank == 3 ? array->strides[0] : 0;
        view.row = array->strides[array->shape.rank - 2];
    }
    return view;
}
MB_BOTH static inline float *mb_slice_row(const mb_slice_view *view, int64_t slice, int64_t y)
{
    return view->data + slice * view->slice + y * view->row;
}

/* Extents of slices, (z, y, x) or (y, x). */
typedef struct mb_slices {
    int64_t count, ny, nx, segments;
    mb_circle circle;
} mb_slices;

static inline mb_slices mb_slices_of(const mb_shape *shape, double circle)
{
    mb_slices s;
    s.count = mb_slice_count(shape);
    s.ny = shape->dims[shape->rank - 2];
    s.nx = shape->dims[shape->rank - 1];
    s.segments = mb_slice_segments(s.ny);
    s.circle = mb_circle_of(circle, s.ny, s.nx);
    return s;
}

/* Bytes of the sums of all segments. */
static inline uint64_t mb_slice_sums(const mb_slices *s)
{
    return mb_bytes_mul(8 * (uint64_t)s->segments, (uint64_t)s->count);
}

/* Must other arrays of slices have the shape of the first? */
static inline mb_status mb_slice_check_shape(const char *name, const mb_spec *other,
                                             const char *first_name, const mb_spec *first)
{
    char text[128];
    if (!other->present || mb_shape_equal(&other->shape, &first->shape))
        return MB_STATUS_OK;
    return mb_fail(MB_STATUS_SHAPE, name, "%s must have the shape of %s, %s", name, first_name,
                   mb_shape_format(&first->shape, text, sizeof text));
}

#endif
