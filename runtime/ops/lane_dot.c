/* See lane_dot.h. */
#include "ops/lane_dot.h"
#include "core/multiversion.h"

enum { LANES = 16 };

MB_MULTIVERSION
double mb_lane_dot(const float *a, const float *b, int64_t n)
{
    double lanes[LANES] = {0}, sum = 0;
    int64_t x = 0;
    for (; x + LANES <= n; x += LANES)
        for (int k = 0; k < LANES; k++)
            lanes[k] += (double)a[x + k] * (double)b[x + k];
    for (int k = 0; x + k < n; k++)
        lanes[k] += (double)a[x + k] * (double)b[x + k];
    for (int k = 0; k < LANES; k++)
        sum += lanes[k];
    return sum;
}
