/*
** ellipsoid_volume: what the host and the CUDA kernel share. Arrays: result (out).
*/
#ifndef MB_OPS_OP_ELLIPSOID_VOLUME_H
#define MB_OPS_OP_ELLIPSOID_VOLUME_H

#include "ops/ellipsoids.h"

typedef struct mb_ellipsoid_volume_params {
    mb_vector ellipsoids, heights, size;
    int64_t subsamples;
} mb_ellipsoid_volume_params;

enum { MB_ELLIPSOID_VOLUME_RESULT };
enum { MB_ELLIPSOID_VOLUME_TABLE }; /* cuda: double[ellipsoids + heights]; host: empty */

#endif
