/*
** Factors of slices that are kept in arrays on the device (mb_slice_factor_of), so that a solver
** never waits for a number: growth / over, one for each slice, 0 where over is 0.
*/
#ifndef MB_OPS_SLICE_FACTOR_H
#define MB_OPS_SLICE_FACTOR_H

#include "core/both.h"
#include "ops/op_args.h"

/* The arrays, f64; `over` may be NULL, which is 1. */
typedef struct mb_slice_factor {
    const double *growth, *over;
    int64_t growth_step, over_step;
} mb_slice_factor;

/* `growth` may be NULL: every factor is then that of mb_slice_factor_at's caller. */
static inline mb_slice_factor mb_slice_factor_of(const mb_array *growth, const mb_array *over)
{
    mb_slice_factor factor = {NULL, NULL, 0, 0};
    if (growth) {
        factor.growth = (const double *)growth->data;
        factor.growth_step = growth->strides[0];
    }
    if (over) {
        factor.over = (const double *)over->data;
        factor.over_step = over->strides[0];
    }
    return factor;
}

MB_BOTH static inline float mb_slice_factor_at(const mb_slice_factor *f, int64_t slice)
{
    const double value = f->growth[slice * f->growth_step],
                 divisor = f->over ? f->over[slice * f->over_step] : 1.0;
    return divisor != 0 ? (float)(value / divisor) : 0.0f;
}

static inline int64_t mb_slice_count(const mb_shape *shape)
{
    return shape->rank == 3 ? shape->dims[0] : 1;
}

/* One number for each slice? */
static inline mb_status mb_slice_check_factor(const char *name, const mb_spec *factor,
                                              const mb_shape *shape)
{
    if (!factor->present || factor->shape.dims[0] == mb_slice_count(shape))
        return MB_STATUS_OK;
    return mb_fail(MB_STATUS_SHAPE, name, "%s has %lld numbers for %lld slices; give one for each",
                   name, (long long)factor->shape.dims[0], (long long)mb_slice_count(shape));
}

#endif
