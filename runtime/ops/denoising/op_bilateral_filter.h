/*
** bilateral_filter: what the host and the CUDA kernel share. Arrays: a (in, f32), result (out, f32),
** rows at any stride. Slot: MB_BILATERAL_FILTER_ROWS, host: what each thread gathers.
**
** The weight of a neighbor is a product over the axes and the value: 2^(value (a - c)^2 + x(dx)) in a
** row, times a factor of the row. Sums are of a - c, so that a constant stays one to the bit.
*/
#ifndef MB_OPS_OP_BILATERAL_FILTER_H
#define MB_OPS_OP_BILATERAL_FILTER_H

#include "ops/filter/separable.h"

typedef struct mb_bilateral_filter_params {
    double sigma_value, sigma_spatial, value;
    int64_t radius, dimensions;
    int mode;
} mb_bilateral_filter_params;

#define MB_BILATERAL_MOST 40 /* radius */

enum { MB_BILATERAL_FILTER_A, MB_BILATERAL_FILTER_RESULT };
enum { MB_BILATERAL_FILTER_ROWS };

/* Slices, planes of each, rows, columns. */
typedef struct mb_bilateral_extents {
    int64_t slices, planes, rows, columns;
} mb_bilateral_extents;

static inline mb_bilateral_extents mb_bilateral_extents_of(const mb_bilateral_filter_params *p,
                                                           const mb_shape *shape)
{
    const int rank = shape->rank;
    const int64_t first = rank == 3 ? shape->dims[0] : 1;
    const bool volume = p->dimensions == 3;
    return (mb_bilateral_extents){volume ? 1 : first, volume ? first : 1, shape->dims[rank - 2],
                                  shape->dims[rank - 1]};
}

static inline int64_t mb_bilateral_radius(const mb_bilateral_filter_params *p)
{
    const int64_t radius = (int64_t)ceil(3 * p->sigma_spatial);
    return p->radius > 0 ? p->radius : radius < 2 ? 2 : radius;
}

/* Exponents of 2: of a squared difference of values, and of a squared distance. */
static inline float mb_bilateral_value(const mb_bilateral_filter_params *p)
{
    return (float)(-0.5 / log(2) / (p->sigma_value * p->sigma_value));
}

static inline double mb_bilateral_distance(const mb_bilateral_filter_params *p, int64_t d)
{
    return -0.5 / log(2) * (double)(d * d) / (p->sigma_spatial * p->sigma_spatial);
}

/* Host: weights below 2^-120 count as 0, and so does the weight of what is not finite. */
#define MB_BILATERAL_LEAST (-120.0f)

#endif
