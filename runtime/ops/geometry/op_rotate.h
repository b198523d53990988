/*
** rotate: what the host and the CUDA kernel share. Arrays: a (in), result (out).
*/
#ifndef MB_OPS_OP_ROTATE_H
#define MB_OPS_OP_ROTATE_H

#include "ops/geometry/warp.h"

typedef struct mb_rotate_params {
    double angle;     /* rad */
    mb_vector center; /* {row, column}; absent: the middle of the frame */
    mb_warp_params warp;
} mb_rotate_params;

enum { MB_ROTATE_A, MB_ROTATE_RESULT };

/* What is added to a pixel: cos - 1 without cancellation. */
static inline mb_warp_map mb_rotate_map(const mb_rotate_params *p, const mb_shape *shape)
{
    const mb_warp_window w = mb_warp_window_of(&p->warp, shape);
    const double half = sin(p->angle / 2);
    mb_warp_map map = {.kind = MB_WARP_AFFINE};
    map.row = p->center.count ? p->center.values[0] : 0.5 * (double)(w.height - 1);
    map.column = p->center.count ? p->center.values[1] : 0.5 * (double)(w.cols - 1);
    map.yy = map.xx = -2 * half * half;
    map.yx = sin(p->angle);
    map.xy = -map.yx;
    return map;
}

#endif
