/*
** Medians of windows: what median_filter and dezinger share, on the host and in CUDA kernels.
**
** A window has an odd extent along each axis, and its element in the middle. What lies beyond an
** edge comes from mb_pad_source. Arrays of two axes are one plane of three.
**
** Values are compared as keys: 32-bit integers in the order of the values, in which -0 is below 0
** and every NaN is above infinity. So a median is always one of the values, a NaN only where more
** than half of the window is NaN, and a result of comparisons alone: all kernels agree to the bit.
*/
#ifndef MB_OPS_MEDIAN_WINDOW_H
#define MB_OPS_MEDIAN_WINDOW_H

#include "array/array.h"
#include "core/both.h"
#include "ops/array/op_pad.h"
#include "ops/op.h"
#include <string.h>

#define MB_MEDIAN_MOST_EXTENT 31
#define MB_MEDIAN_MOST_ELEMENTS 1023

typedef struct mb_median_window {
    int64_t n[3]; /* extents of the array */
    int k[3];     /* odd extents of the window */
    int count;    /* elements of the window */
    int mode;     /* mb_pad_mode */
} mb_median_window;

/* Names of mb_pad_mode from MB_PAD_EDGE on. */
extern const char *const mb_median_modes[];

/* The arguments that both operators have, in the order of their tables. */
#define MB_MEDIAN_DTYPES (MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_F32))
#define MB_MEDIAN_INPUT MB_ARRAY_IN("a", MB_MEDIAN_DTYPES, 2, 3, "image, stack of images or volume")
#define MB_MEDIAN_SIZE                                                                             \
    MB_VECTOR(size, 1, MB_MEDIAN_MOST_EXTENT, "px",                                                \
              "odd extents of the window: one number, or one for each axis; {1, 3, 3} filters "    \
              "each image of a stack")
#define MB_MEDIAN_MODE                                                                             \
    MB_ENUM(mode, mb_median_modes, MB_PAD_SYMMETRIC - MB_PAD_EDGE,                                 \
            "values beyond the edges, as in pad (scipy.ndimage calls symmetric reflect, reflect "  \
            "mirror, and edge nearest)")

/* The extents are odd and not too many. */
mb_status mb_median_check(const mb_vector *size, int rank);

static inline mb_median_window mb_median_window_of(const mb_vector *size, int mode,
                                                   const mb_shape *shape)
{
    mb_median_window w = {.count = 1, .mode = mode + MB_PAD_EDGE};
    for (int i = 0; i < 3; i++) {
        const int axis = i - (3 - shape->rank);
        w.n[i] = axis < 0 ? 1 : shape->dims[axis];
        w.k[i] = axis < 0 ? 1 : (int)size->values[size->count == 1 ? 0 : axis];
        w.count *= w.k[i];
    }
    return w;
}

/* Strides of a plane and of a row. */
static inline int64_t mb_median_plane(const mb_array *a)
{
    return a->shape.rank == 3 ? a->strides[0] : 0;
}
static inline int64_t mb_median_row(const mb_array *a)
{
    return a->strides[a->shape.rank - 2];
}

/* The rows of a piece; all of them where values come from the other end. */
static inline mb_rows mb_median_needs(const mb_vector *size, int mode, const mb_shape *shape,
                                      int axis, mb_rows rows)
{
    const mb_median_window w = mb_median_window_of(size, mode, shape);
    const int64_t half = w.k[axis + 3 - shape->rank] / 2, n = shape->dims[axis];
    if (w.mode == MB_PAD_WRAP && half > 0)
        return (mb_rows){rows.first - n, rows.end + n};
    return (mb_rows){rows.first - half, rows.end + half};
}

/* ---- the part of an array in which values are counted ---- */

#define MB_MEDIAN_COUNTED                                                                          \
    MB_VECTOR_OPTION(counted, MB_ANY, NULL,                                                        \
                     "{first, last} of each axis: where replaced values are counted; default "     \
                     "everywhere, for pieces of an array their own part")

typedef struct mb_median_part {
    int64_t first[3], end[3];
} mb_median_part;

mb_status mb_median_part_check(const mb_vector *counted, const mb_shape *shape);

static inline mb_median_part mb_median_part_of(const mb_vector *counted, const mb_shape *shape)
{
    mb_median_part part = {{0, 0, 0}, {1, 1, 1}};
    for (int i = 0; i < shape->rank; i++) {
        const int to = i + 3 - shape->rank;
        part.end[to] = shape->dims[i];
        if (counted->count == 0)
            continue;
        part.first[to] = (int64_t)counted->values[2 * i] - 1;
        if ((int64_t)counted->values[2 * i + 1] < part.end[to])
            part.end[to] = (int64_t)counted->values[2 * i + 1];
    }
    return part;
}

/* The part of a piece, in `room`. */
mb_vector mb_median_part_piece(const mb_vector *counted, const mb_shape *shape, int axis,
                               const mb_op_piece *piece, double *room);

/* ---- keys ---- */

MB_BOTH static inline int32_t mb_median_key(int32_t bits)
{
    return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : bits ^ (bits < 0 ? 0x7fffffff : 0);
}

/* The bits of the float that has this key. */
MB_BOTH static inline int32_t mb_median_bits(int32_t key)
{
    return key ^ (key < 0 ? 0x7fffffff : 0);
}

/* ---- the host's medians (median_host.c) ---- */

/* Columns that are worked on at a time, those beyond the window's middle included. */
#define MB_MEDIAN_COLUMNS 64

typedef struct mb_median_step mb_median_step;

typedef struct mb_median_job {
    mb_median_window window;
    const mb_array *a;
    const mb_median_step *steps;
    int count;    /* of the steps */
    int result;   /* row of keys that has the medians at the end */
    int32_t *own; /* the rows of keys of this thread */
} mb_median_job;

/* Declares the slots "steps" and "rows"; on CUDA they are empty. */
void mb_median_slots(const mb_median_window *w, mb_planner *planner);
uint64_t mb_median_rows_bytes(const mb_median_window *w); /* of a thread */
/* Threads for an array of this many elements. */
int mb_median_threads(const mb_median_window *w, int threads);
/* Writes the steps of the window. */
void mb_median_begin(mb_median_job *job, const mb_median_window *w, const mb_array *a, void *steps);
/* Results of a chunk: columns that one call of mb_median_chunk makes. */
static inline int64_t mb_median_chunk_columns(const mb_median_window *w)
{
    return MB_MEDIAN_COLUMNS + 1 - w->k[2];
}
/* The keys of the medians of (z, y, x) and the columns behind it; u8 and u16 are their own keys. */
const int32_t *mb_median_chunk(const mb_median_job *job, int64_t z, int64_t y, int64_t x);

#endif
