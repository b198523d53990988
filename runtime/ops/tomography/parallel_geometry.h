/*
** Parallel-beam geometry, shared by project and backproject on every backend. Pure functions over
** plain numbers.
**
** Pixel (y, x) of the full ny x nx slice, row 0 on top, lies at X = x - (nx - 1)/2 (to the right)
** and Y = (ny - 1)/2 - y (upwards), in pixel units. At angle t its shadow falls on the 0-based
** detector coordinate
**     u = X cos t + Y sin t + center + shift(t)  =  offset(t) + x cos t - y sin t.
** This is the convention of ASTRA (vol/proj "parallel") and of scikit-image (radon, iradon): images
** come out upright. center is a pixel-center coordinate: (cols - 1)/2 in the middle.
*/
#ifndef MB_OPS_PARALLEL_GEOMETRY_H
#define MB_OPS_PARALLEL_GEOMETRY_H

#include "core/both.h"
#include <math.h>
#include <stdint.h>

/* Centers and shifts are at most this far from column 0: positions are integers of 32 bits in
** places. */
#define MB_FARTHEST_PX 1e6

typedef struct mb_parallel_geometry {
    int64_t rows, angles, cols; /* of the sinograms */
    int64_t ny, nx;             /* the full slice */
    int64_t y0, y1, x0, x1;     /* the region of it, half-open */
    double center;              /* px */
    double scale;
    double radius2; /* px^2 of the circular mask; negative: no mask */
} mb_parallel_geometry;

typedef struct mb_parallel_angle {
    double offset, cosine, sine; /* u = offset + x * cosine - y * sine */
} mb_parallel_angle;

MB_BOTH static inline mb_parallel_angle mb_parallel_angle_at(const mb_parallel_geometry *g,
                                                             double angle_rad, double shift_px)
{
    mb_parallel_angle a;
    a.cosine = cos(angle_rad);
    a.sine = sin(angle_rad);
    a.offset = g->center + shift_px - a.cosine * 0.5 * (double)(g->nx - 1) +
               a.sine * 0.5 * (double)(g->ny - 1);
    return a;
}

/* How pixels share their value among the two bins beside u: linearly, or as the overlap of the bin
** with the shadow of the pixel, a box of the larger of |cosine| and |sine| (De Man and Basu). */
typedef enum mb_parallel_method { MB_PARALLEL_PIXEL, MB_PARALLEL_DISTANCE } mb_parallel_method;

typedef struct mb_parallel_shadow {
    float lead, inverse; /* half of what the box lacks to a bin; 1 / its width */
} mb_parallel_shadow;

MB_BOTH static inline mb_parallel_shadow mb_parallel_shadow_of(float cosine, float sine)
{
    const float width = fmaxf(fabsf(cosine), fabsf(sine));
    mb_parallel_shadow shadow;
    shadow.lead = 0.5f - 0.5f * width;
    shadow.inverse = 1.0f / width;
    return shadow;
}

/* The part of the second bin, where u lies `fraction` behind the first. */
MB_BOTH static inline float mb_parallel_share(float fraction, mb_parallel_shadow shadow)
{
    const float part = (fraction - shadow.lead) * shadow.inverse, least = part > 0.0f ? part : 0.0f;
    return least < 1.0f ? least : 1.0f;
}

/* Is pixel (y, x) of the full slice inside the circular mask? */
MB_BOTH static inline int mb_parallel_inside(const mb_parallel_geometry *g, int64_t y, int64_t x)
{
    double dx = (double)x - 0.5 * (double)(g->nx - 1), dy = (double)y - 0.5 * (double)(g->ny - 1);
    return g->radius2 < 0 || dx * dx + dy * dy <= g->radius2;
}

/* Squared radius for the `circle` option: a fraction of the half-width of the smaller side; 0 or
** less: no mask. */
static inline double mb_parallel_radius2(double circle, int64_t ny, int64_t nx)
{
    double radius = 0.5 * circle * (double)(nx < ny ? nx : ny);
    return circle > 0 ? radius * radius : -1.0;
}

#endif
