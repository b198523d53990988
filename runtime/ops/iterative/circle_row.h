/*
** The pixels of a row of a slice that lie in the circle of the option `circle`, the mask of
** circular_mask and backproject, on every backend. Pure functions.
*/
#ifndef MB_OPS_CIRCLE_ROW_H
#define MB_OPS_CIRCLE_ROW_H

#include "ops/corrections/op_circular_mask.h"
#include <math.h>

#define MB_CIRCLE_ARG(doc)                                                                         \
    MB_FLOAT(circle, 0, 10, 0, "half-width",                                                       \
             "radius of the circle as a fraction of half the smaller side; 0: no circle; " doc)

/* The circle in pixels of a slice; radius2 is negative where there is none. */
static inline mb_circle mb_circle_of(double fraction, int64_t ny, int64_t nx)
{
    const double radius = 0.5 * fraction * (double)(nx < ny ? nx : ny);
    mb_circle circle = {0.5 * (double)(ny - 1), 0.5 * (double)(nx - 1),
                        fraction > 0 ? radius * radius : -1.0};
    return circle;
}

/* Pixels first ... end - 1 of row y, of nx, are inside. */
typedef struct mb_circle_run {
    int first, end;
} mb_circle_run;

MB_BOTH static inline mb_circle_run mb_circle_row(const mb_circle *circle, int64_t y, int64_t nx)
{
    const double dy = (double)y - circle->y, half2 = circle->radius2 - dy * dy;
    mb_circle_run run = {0, (int)nx};
    if (circle->radius2 < 0)
        return run;
    run.end = 0;
    if (half2 < 0)
        return run;
    /* To the pixel by the root, and exact by the comparison that the masks make. */
    const double half = sqrt(half2), left = ceil(circle->x - half), right = floor(circle->x + half);
    run.first = left < 0 ? 0 : (int)left;
    run.end = right > (double)(nx - 1) ? (int)nx : (int)right + 1;
    while (run.first > 0 && mb_circle_has(circle, y, run.first - 1))
        run.first--;
    while (run.first < run.end && !mb_circle_has(circle, y, run.first))
        run.first++;
    while (run.end < nx && mb_circle_has(circle, y, run.end))
        run.end++;
    while (run.end > run.first && !mb_circle_has(circle, y, run.end - 1))
        run.end--;
    if (run.end < run.first)
        run.end = run.first;
    return run;
}

#endif
