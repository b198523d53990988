/*
** undistort: what the host and the CUDA kernel share. Arrays: a (in), result (out).
*/
#ifndef MB_OPS_OP_UNDISTORT_H
#define MB_OPS_OP_UNDISTORT_H

#include "ops/geometry/warp.h"

typedef struct mb_undistort_params {
    mb_vector center;  /* {row, column} */
    mb_vector factors; /* of the polynomial */
    mb_vector scale;   /* {row, column}: of a pixel; absent: 1 */
    bool inverse;
    mb_warp_params warp;
} mb_undistort_params;

enum { MB_UNDISTORT_A, MB_UNDISTORT_RESULT };

static inline mb_warp_map mb_undistort_map(const mb_undistort_params *p)
{
    mb_warp_map map = {.kind = p->inverse ? MB_WARP_INVERSE : MB_WARP_RADIAL};
    map.row = p->center.values[0];
    map.column = p->center.values[1];
    map.row_scale = p->scale.count ? p->scale.values[0] : 1;
    map.column_scale = p->scale.count ? p->scale.values[1] : 1;
    map.count = (int)p->factors.count;
    for (int i = 0; i < map.count; i++)
        map.g[i] = p->factors.values[i] - (i == 0);
    return map;
}

#endif
