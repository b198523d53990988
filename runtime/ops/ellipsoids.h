/*
** Ellipsoids as operators take them: 8 numbers each in one vector.
*/
#ifndef MB_OPS_ELLIPSOIDS_H
#define MB_OPS_ELLIPSOIDS_H

#include "ops/op.h"
#include <math.h>
#include <string.h>

#define MB_ELLIPSOID_NUMBERS 8

typedef struct mb_ellipsoid {
    double density, a, b, c, x, y, z, phi;
} mb_ellipsoid;

static inline mb_ellipsoid mb_ellipsoid_at(const mb_vector *vector, int64_t k) {
    const double *v = vector->values + k * MB_ELLIPSOID_NUMBERS;
    return (mb_ellipsoid){v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
}

static inline mb_status mb_ellipsoids_check(const mb_vector *vector) {
    if (vector->count % MB_ELLIPSOID_NUMBERS)
        return mb_fail(MB_STATUS_ARGUMENT, "ellipsoids", "%lld numbers; each ellipsoid has %d", (long long)vector->count,
                       MB_ELLIPSOID_NUMBERS);
    for (int64_t k = 0; vector->values && k < vector->count / MB_ELLIPSOID_NUMBERS; k++) {
        mb_ellipsoid e = mb_ellipsoid_at(vector, k);
        if (!(e.a > 0 && e.b > 0 && e.c > 0))
            return mb_fail(MB_STATUS_ARGUMENT, "ellipsoids", "ellipsoid %lld has half axes %g, %g, %g; they must be positive",
                           (long long)k + 1, e.a, e.b, e.c);
    }
    return MB_STATUS_OK;
}

#endif
