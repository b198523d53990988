/*
** circular_mask: what the host and the CUDA kernel share. Arrays: a (in), result (out; may be the
** same array). No scratch.
*/
#ifndef MB_OPS_OP_CIRCULAR_MASK_H
#define MB_OPS_OP_CIRCULAR_MASK_H

#include "core/both.h"
#include "ops/op.h"

typedef struct mb_circular_mask_params {
    double radius; /* as a fraction of half the smaller side of the whole slice */
    double value;
    mb_vector size, origin; /* of the whole slice; where a begins in it */
} mb_circular_mask_params;

enum { MB_CIRCULAR_MASK_A, MB_CIRCULAR_MASK_RESULT };

/* The circle in pixels of a. */
typedef struct mb_circle {
    double y, x, radius2;
} mb_circle;

static inline mb_circle mb_circular_mask_circle(const mb_circular_mask_params *p,
                                                const mb_shape *shape)
{
    const mb_vector *size = &p->size, *origin = &p->origin;
    const double ny = size->count ? size->values[0] : (double)shape->dims[shape->rank - 2];
    const double nx =
        size->count ? size->values[size->count - 1] : (double)shape->dims[shape->rank - 1];
    const double radius = 0.5 * p->radius * (nx < ny ? nx : ny);
    return (mb_circle){0.5 * (ny - 1) - (origin->count ? origin->values[0] : 0),
                       0.5 * (nx - 1) - (origin->count ? origin->values[1] : 0), radius * radius};
}

/* The same comparison as that of the mask of backproject, in the same arithmetic. */
MB_BOTH static inline int mb_circle_has(const mb_circle *c, int64_t y, int64_t x)
{
    const double dx = (double)x - c->x, dy = (double)y - c->y;
    return dx * dx + dy * dy <= c->radius2;
}

#endif
