/*
** Ellipsoids as operators take them, 8 numbers each in one vector, and their shadows and sections:
** shared by host and CUDA. Conventions: op_ellipsoid_projections.c.
*/
#ifndef MB_OPS_ELLIPSOIDS_H
#define MB_OPS_ELLIPSOIDS_H

#include "core/both.h"
#include "ops/op.h"
#include <math.h>
#include <string.h>

#define MB_ELLIPSOID_NUMBERS 8

#define MB_ELLIPSOIDS_ARG                                                                          \
    MB_VECTOR(ellipsoids, MB_ANY, "px, rad",                                                       \
              "8 numbers each: density per px, half axes a, b, c, center x, y, z, rotation phi "   \
              "about the vertical")

typedef struct mb_ellipsoid {
    double density, a, b, c, x, y, z, phi;
} mb_ellipsoid;

MB_BOTH static inline mb_ellipsoid mb_ellipsoid_at(const double *numbers, int64_t k)
{
    const double *v = numbers + k * MB_ELLIPSOID_NUMBERS;
    mb_ellipsoid e = {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
    return e;
}

static inline mb_status mb_ellipsoids_check(const mb_vector *vector)
{
    if (vector->count % MB_ELLIPSOID_NUMBERS)
        return mb_fail(MB_STATUS_ARGUMENT, "ellipsoids",
                       "ellipsoids has %lld numbers; each ellipsoid needs %d",
                       (long long)vector->count, MB_ELLIPSOID_NUMBERS);
    for (int64_t k = 0; vector->values && k < vector->count / MB_ELLIPSOID_NUMBERS; k++) {
        mb_ellipsoid e = mb_ellipsoid_at(vector->values, k);
        if (!(e.a > 0 && e.b > 0 && e.c > 0))
            return mb_fail(MB_STATUS_ARGUMENT, "ellipsoids",
                           "ellipsoid %lld has half axes %g, %g, %g; they must be positive",
                           (long long)k + 1, e.a, e.b, e.c);
    }
    return MB_STATUS_OK;
}

/* The pixels from..to, given as real numbers of any size, that lie in a line of `cols`; last <
** first where there is none. */
static inline void mb_ellipsoid_columns(double from, double to, int64_t cols, int64_t *first,
                                        int64_t *last)
{
    *first = (int64_t)fmin(fmax(0, floor(from)), (double)cols);
    *last = (int64_t)fmax(-1, fmin((double)cols - 1, ceil(to)));
}

/* Squared scale of the section at a height; 0 or less: the plane misses the ellipsoid. */
MB_BOTH static inline double mb_ellipsoid_section(const mb_ellipsoid *e, double height)
{
    double up = (height - e->z) / e->c;
    return 1 - up * up;
}

/* The shadow of one section at one angle: half width w about `middle` on the detector. */
typedef struct mb_ellipsoid_shadow {
    double w2, w, gain, middle;
} mb_ellipsoid_shadow;

MB_BOTH static inline mb_ellipsoid_shadow
mb_ellipsoid_shadow_of(const mb_ellipsoid *e, double s2, double angle, double axis, int64_t subrays)
{
    double ca = cos(angle - e->phi), sa = sin(angle - e->phi);
    mb_ellipsoid_shadow shadow;
    shadow.w2 = s2 * (e->a * e->a * ca * ca + e->b * e->b * sa * sa);
    shadow.w = sqrt(shadow.w2);
    shadow.gain = 2 * e->density * s2 * e->a * e->b / shadow.w2 / (double)subrays;
    shadow.middle = e->x * cos(angle) + e->y * sin(angle) + axis;
    return shadow;
}

/* What detector bin x gets of it, averaged over `subrays` rays. */
MB_BOTH static inline double mb_ellipsoid_bin(const mb_ellipsoid_shadow *shadow, int64_t x,
                                              int64_t subrays)
{
    double sum = 0;
    for (int64_t k = 0; k < subrays; k++) {
        double t = (double)x - 0.5 + ((double)k + 0.5) / (double)subrays - shadow->middle,
               rest = shadow->w2 - t * t;
        sum += rest > 0 ? sqrt(rest) : 0;
    }
    return shadow->gain * sum;
}

/* The part of the pixel around (x, y), relative to the center, that lies inside the section scaled
** by s. */
MB_BOTH static inline double mb_ellipsoid_coverage(const mb_ellipsoid *e, double s, double x,
                                                   double y, double cosine, double sine, int64_t n)
{
    double a = s * e->a, b = s * e->b;
    double u = (x * cosine + y * sine) / a, v = (y * cosine - x * sine) / b,
           r = sqrt(u * u + v * v);
    double reach =
        0.7072 / (a < b ? a : b); /* how far r can change within half a pixel's diagonal */
    if (r + reach <= 1)
        return 1;
    if (r - reach >= 1)
        return 0;
    int64_t inside = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            double dx = x - 0.5 + ((double)i + 0.5) / (double)n,
                   dy = y - 0.5 + ((double)j + 0.5) / (double)n;
            u = (dx * cosine + dy * sine) / a;
            v = (dy * cosine - dx * sine) / b;
            inside += u * u + v * v <= 1;
        }
    return (double)inside / (double)(n * n);
}

#endif
