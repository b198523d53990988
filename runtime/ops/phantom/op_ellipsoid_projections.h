/*
** ellipsoid_projections: what the host and the CUDA kernel share. Arrays: result (out).
*/
#ifndef MB_OPS_OP_ELLIPSOID_PROJECTIONS_H
#define MB_OPS_OP_ELLIPSOID_PROJECTIONS_H

#include "ops/phantom/ellipsoids.h"

typedef struct mb_ellipsoid_projections_params {
    mb_vector ellipsoids, angles, heights, shifts;
    int64_t cols, subrays;
    double center; /* NAN = (cols - 1) / 2 */
} mb_ellipsoid_projections_params;

enum { MB_ELLIPSOID_PROJECTIONS_RESULT };
/* cuda: double[ellipsoids + angles + heights + angles]: the vectors in this order, shifts 0 where
** not given; host: empty. */
enum { MB_ELLIPSOID_PROJECTIONS_TABLE };

#endif
