/*
** The sum of products of two rows, in double precision.
*/
#ifndef MB_OPS_LANE_DOT_H
#define MB_OPS_LANE_DOT_H

#include <stdint.h>

/* Sums in lanes of their own, so that their order is always the same. */
double mb_lane_dot(const float *a, const float *b, int64_t n);

#endif
