/*
** gaussian_filter: what the host and the CUDA kernel share. Arrays: a (in, u8, u16 or f32),
** result (out f32), rows at any stride. Slots: MB_GAUSSIAN_FILTER_WEIGHTS, the table of all axes'
** weights (separable.h); MB_GAUSSIAN_FILTER_SCRATCH as in op_box_filter.h.
*/
#ifndef MB_OPS_OP_GAUSSIAN_FILTER_H
#define MB_OPS_OP_GAUSSIAN_FILTER_H

#include "ops/filter/separable.h"

typedef struct mb_gaussian_filter_params {
    mb_vector sigma, axes;
    int mode;
    double value, truncate;
} mb_gaussian_filter_params;

enum { MB_GAUSSIAN_FILTER_A, MB_GAUSSIAN_FILTER_RESULT };
enum { MB_GAUSSIAN_FILTER_WEIGHTS, MB_GAUSSIAN_FILTER_SCRATCH };

static inline mb_separable mb_gaussian_filter_passes(const mb_gaussian_filter_params *p,
                                                     const mb_shape *shape)
{
    mb_separable s = {.mode = p->mode, .value = (float)p->value};
    for (int i = 0; i < shape->rank; i++)
        mb_separable_add_gaussian(
            &s, shape, i, mb_separable_number(&p->sigma, &p->axes, i, shape->rank, 0), p->truncate);
    mb_separable_end(&s, shape);
    return s;
}

#endif
