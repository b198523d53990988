/*
** What pad adds around an array, and crop takes off: amounts for each axis, or the extents that
** shall result and where the array is in them.
*/
#ifndef MB_OPS_MARGINS_H
#define MB_OPS_MARGINS_H

#include "ops/op.h"
#include <math.h>

enum { MB_WHERE_START, MB_WHERE_CENTER, MB_WHERE_END };

typedef struct mb_margins {
    mb_vector before, after; /* one number per axis, or one for all, or absent (0) */
    mb_vector shape;         /* extents that shall result, instead of both; or absent */
    int where;               /* of the smaller array in the larger one */
} mb_margins;

/* The arguments of both, in this order; `member` is the mb_margins of the parameter structure
** `type`. */
#define MB_MARGIN_ARG(type, member, name_, unit_, doc_)                                            \
    {                                                                                              \
        .name = #name_, .kind = MB_ARG_VECTOR, .min = 0, .max = 1e12,                              \
        .offset = offsetof(type, member.name_), .unit = unit_, .doc = doc_                         \
    }
#define MB_WHERE_ARG(type, member)                                                                 \
    {                                                                                              \
        .name = "where", .kind = MB_ARG_ENUM, .initial = MB_WHERE_START,                           \
        .choices = (const char *const[]){"start", "center", "end", NULL},                          \
        .offset = offsetof(type, member.where),                                                    \
        .doc = "with shape, where the smaller array is in the larger one; center: its middle, "    \
               "(n - 1) / 2 rounded down, is the other's"                                          \
    }

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
    if (amounts->count != 0 && amounts->count != 1 && amounts->count != rank)
        return mb_fail(MB_STATUS_ARGUMENT, name,
                       "%s has %lld numbers; give one, or one for each of the %d axes", name,
                       (long long)amounts->count, rank);
    for (int64_t i = 0; i < amounts->count; i++)
        if (amounts->values[i] != floor(amounts->values[i]))
            return mb_fail(MB_STATUS_ARGUMENT, name,
                           "element %lld of %s is %g; it must be a whole number", (long long)i + 1,
                           name, amounts->values[i]);
    return MB_STATUS_OK;
}

static inline mb_status mb_margins_check(const mb_margins *m, int rank)
{
    MB_TRY(mb_margin_check("before", &m->before, rank));
    MB_TRY(mb_margin_check("after", &m->after, rank));
    MB_TRY(mb_margin_check("shape", &m->shape, rank));
    if (m->shape.count && (m->before.count || m->after.count))
        return mb_fail(MB_STATUS_ARGUMENT, "shape",
                       "shape says what results, before and after what changes: give one or the "
                       "other");
    if (!m->shape.count && m->where != MB_WHERE_START)
        return mb_fail(MB_STATUS_ARGUMENT, "where", "where goes with shape");
    return MB_STATUS_OK;
}

#endif
