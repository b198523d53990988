/*
** adaptive_threshold: what the host and the CUDA kernel share. Arrays: a (in, u8, u16 or f32),
** result (out u8), rows at any stride. Slots: MB_ADAPTIVE_THRESHOLD_WEIGHTS, the table of weights
** (method gaussian); MB_ADAPTIVE_THRESHOLD_LOCAL, the local level, f32 (on CUDA the last pass
** compares what it makes: none for one axis, and MB_ADAPTIVE_THRESHOLD_OTHER, a second one, from
** three axes on); MB_ADAPTIVE_THRESHOLD_BUFFERS, the host's line buffers.
*/
#ifndef MB_OPS_OP_ADAPTIVE_THRESHOLD_H
#define MB_OPS_OP_ADAPTIVE_THRESHOLD_H

#include "ops/filter/separable.h"

typedef struct mb_adaptive_threshold_params {
    mb_vector size, axes;
    int mode, method;
    double value, offset;
    int64_t foreground;
    bool invert;
} mb_adaptive_threshold_params;

enum { MB_ADAPTIVE_THRESHOLD_A, MB_ADAPTIVE_THRESHOLD_RESULT };
enum {
    MB_ADAPTIVE_THRESHOLD_WEIGHTS,
    MB_ADAPTIVE_THRESHOLD_LOCAL,
    MB_ADAPTIVE_THRESHOLD_OTHER,
    MB_ADAPTIVE_THRESHOLD_BUFFERS
};
enum { MB_ADAPTIVE_THRESHOLD_GAUSSIAN, MB_ADAPTIVE_THRESHOLD_MEAN };

/* The Gaussian whose window has this size, in the convention of skimage.filters.threshold_local;
** cut off at 4 sigma. */
#define MB_ADAPTIVE_THRESHOLD_TRUNCATE 4.0
static inline double mb_adaptive_threshold_sigma(double size)
{
    return (size - 1) / 6;
}

static inline mb_separable mb_adaptive_threshold_passes(const mb_adaptive_threshold_params *p,
                                                        const mb_shape *shape)
{
    mb_separable s = {.mode = p->mode, .value = (float)p->value};
    for (int i = 0; i < shape->rank; i++) {
        double size = mb_separable_number(&p->size, &p->axes, i, shape->rank, 1);
        if (p->method == MB_ADAPTIVE_THRESHOLD_GAUSSIAN)
            mb_separable_add_gaussian(&s, shape, i, mb_adaptive_threshold_sigma(size),
                                      MB_ADAPTIVE_THRESHOLD_TRUNCATE);
        else
            mb_separable_add_box(&s, shape, i, (int64_t)size);
    }
    mb_separable_end(&s, shape);
    return s;
}

#endif
