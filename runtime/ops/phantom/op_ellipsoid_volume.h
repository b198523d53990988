/*
** ellipsoid_volume: what the host and the CUDA kernel share. Arrays: result (out).
*/
#ifndef MB_OPS_OP_ELLIPSOID_VOLUME_H
#define MB_OPS_OP_ELLIPSOID_VOLUME_H

#include "ops/phantom/ellipsoids.h"

typedef struct mb_ellipsoid_volume_params {
    mb_vector ellipsoids, heights, size;
    int64_t subsamples, subslices;
} mb_ellipsoid_volume_params;

enum { MB_ELLIPSOID_VOLUME_RESULT };
enum { MB_ELLIPSOID_VOLUME_TABLE }; /* cuda: double[ellipsoids + heights]; host: empty */

/* How far from its axis an ellipsoid can touch a pixel. */
MB_BOTH static inline double mb_ellipsoid_reach(const mb_ellipsoid *e)
{
    return fmax(e->a, e->b) + 1;
}

/* The part of the voxel that lies inside: sections averaged over 1 px around `height`. (x, y)
** relative to the center. */
MB_BOTH static inline double mb_ellipsoid_part(const mb_ellipsoid *e, double height, double x,
                                               double y, double cosine, double sine,
                                               int64_t subsamples, int64_t subslices)
{
    double sum = 0;
    for (int64_t j = 0; j < subslices; j++) {
        double at = height + ((double)j + 0.5) / (double)subslices - 0.5;
        double s2 = mb_ellipsoid_section(e, at);
        if (s2 > 0)
            sum += mb_ellipsoid_coverage(e, sqrt(s2), x, y, cosine, sine, subsamples);
    }
    return sum / (double)subslices;
}

#endif
