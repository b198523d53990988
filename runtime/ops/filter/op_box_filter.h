/*
** box_filter: what the host and the CUDA kernel share. Arrays: a (in, u8, u16 or f32), result
** (out f32), rows at any stride. Slot MB_BOX_FILTER_SCRATCH: on the host the threads' line
** buffers (separable.h), on CUDA an array like the result where two axes or more are filtered.
*/
#ifndef MB_OPS_OP_BOX_FILTER_H
#define MB_OPS_OP_BOX_FILTER_H

#include "ops/filter/separable.h"

typedef struct mb_box_filter_params {
    mb_vector size, axes;
    int mode;
    double value;
} mb_box_filter_params;

enum { MB_BOX_FILTER_A, MB_BOX_FILTER_RESULT };
enum { MB_BOX_FILTER_SCRATCH };

static inline mb_separable mb_box_filter_passes(const mb_box_filter_params *p,
                                                const mb_shape *shape)
{
    mb_separable s = {.mode = p->mode, .value = (float)p->value};
    for (int i = 0; i < shape->rank; i++)
        mb_separable_add_box(&s, shape, i,
                             (int64_t)mb_separable_number(&p->size, &p->axes, i, shape->rank, 1));
    mb_separable_end(&s, shape);
    return s;
}

#endif
