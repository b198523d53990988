/*
** What pad adds around an array, and crop takes off: amounts for each axis, or the extents that
** shall result and where the array is in them.
*/
#ifndef MB_OPS_MARGINS_H
#define MB_OPS_MARGINS_H

#include "ops/op_args.h"

enum { MB_WHERE_START, MB_WHERE_CENTER, MB_WHERE_END };

typedef struct mb_margins {
    mb_vector before, after; /* one number per axis, or one for all, or absent (0) */
    mb_vector shape;         /* extents that shall result, instead of both; or absent */
    int where;               /* of the smaller array in the larger one */
} mb_margins;

/* The arguments of both; PARAMS has the member `margins`. `verb` is what the operator does with
** elements. */
#define MB_MARGIN_ARG(member, doc)                                                                 \
    MB_VECTOR_NAMED(#member, false, margins.member, 0, 1e12, "elements", doc)
#define MB_MARGIN_ARGS(verb)                                                                       \
    MB_MARGIN_ARG(before, "elements to " verb                                                      \
                          " in front: one number per axis, or one for all; default 0"),            \
        MB_MARGIN_ARG(after, "elements to " verb                                                   \
                             " behind: one number per axis, or one for all; default 0"),           \
        MB_MARGIN_ARG(shape, "extents of the result, instead of before and after"),                \
        MB_ENUM_ARG("where", false, margins.where,                                                 \
                    ((const char *const[]){"start", "center", "end", NULL}), MB_WHERE_START,       \
                    "with shape: position of the smaller array in the larger one; center: the "    \
                    "elements (n - 1) / 2, rounded down, coincide")

/* The amount for one axis. */
static inline int64_t mb_margin_amount(const mb_vector *amounts, int axis)
{
    if (amounts->count == 0)
        return 0;
    return (int64_t)amounts->values[amounts->count == 1 ? 0 : axis];
}

/* Elements in front, on an axis where the smaller array has `small` and the larger one `large`. */
static inline int64_t mb_margin_front(const mb_margins *m, int axis, int64_t small, int64_t large)
{
    if (m->shape.count == 0)
        return mb_margin_amount(&m->before, axis);
    switch (m->where) {
    case MB_WHERE_START: return 0;
    case MB_WHERE_END: return large - small;
    default: return (large > 0 ? (large - 1) / 2 : 0) - (small > 0 ? (small - 1) / 2 : 0);
    }
}

static inline mb_status mb_margin_check(const char *name, const mb_vector *amounts, int rank)
{
    if (amounts->count)
        MB_TRY(mb_check_axes(name, amounts, rank, true));
    return mb_check_whole(name, amounts);
}

static inline mb_status mb_margins_check(const mb_margins *m, int rank)
{
    MB_TRY(mb_margin_check("before", &m->before, rank));
    MB_TRY(mb_margin_check("after", &m->after, rank));
    MB_TRY(mb_margin_check("shape", &m->shape, rank));
    if (m->shape.count && (m->before.count || m->after.count))
        return mb_fail(MB_STATUS_ARGUMENT, "shape", "give either shape, or before and after");
    if (!m->shape.count && m->where != MB_WHERE_START)
        return mb_fail(MB_STATUS_ARGUMENT, "where",
                       "where needs shape; give shape or leave out where");
    return MB_STATUS_OK;
}

/* Makes the margins of a piece: those of the whole from `a` to `result`, but `before` and `after`
** on the axis that is cut. `room` has two numbers for each axis. `pad`: the result is the larger
** one. */
static inline void mb_margins_of_piece(mb_margins *m, const mb_shape *a, const mb_shape *result,
                                       bool pad, double *room)
{
    for (int i = 0; i < a->rank; i++) {
        const int64_t small = pad ? a->dims[i] : result->dims[i],
                      large = pad ? result->dims[i] : a->dims[i];
        const int64_t front = mb_margin_front(m, i, small, large);
        room[i] = (double)front;
        room[a->rank + i] = (double)(large - small - front);
    }
    *m = (mb_margins){.before = {room, a->rank}, .after = {room + a->rank, a->rank}};
}

/* The same for an array that grows by constants or copies of its edges: `start` is where the first
** row of the piece lies in the array. */
static inline void mb_grow_piece(mb_op_piece *piece, int64_t start, double *before, double *after)
{
    const int64_t end = start + piece->rows.end - piece->rows.first;
    *before = (double)(piece->input.first > start ? piece->input.first - start : 0);
    *after = (double)(end > piece->input.end ? end - piece->input.end : 0);
    piece->skip = start > piece->input.first ? start - piece->input.first : 0;
}

#endif
