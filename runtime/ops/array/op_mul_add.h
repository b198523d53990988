/*
** mul_add: what the host and the CUDA kernel share. Arrays: dst (in and out), other (in). No
** scratch. Regions are {y0, y1, x0, x1}, 0-based, ends excluded; absent: the whole array.
*/
#ifndef MB_OPS_OP_MUL_ADD_H
#define MB_OPS_OP_MUL_ADD_H

#include "ops/op.h"

typedef struct mb_mul_add_params {
    double a, b;
    mb_vector region, other_region;
} mb_mul_add_params;

enum { MB_MUL_ADD_DST, MB_MUL_ADD_OTHER };

typedef struct mb_mul_add_region {
    int64_t y0, y1, x0, x1;
} mb_mul_add_region;

static inline mb_mul_add_region mb_mul_add_region_of(const mb_vector *region, const mb_shape *shape)
{
    mb_mul_add_region r = {0, shape->dims[0], 0, shape->dims[1]};
    if (region->count == 4) {
        r.y0 = (int64_t)region->values[0];
        r.y1 = (int64_t)region->values[1];
        r.x0 = (int64_t)region->values[2];
        r.x1 = (int64_t)region->values[3];
    }
    return r;
}

#endif
