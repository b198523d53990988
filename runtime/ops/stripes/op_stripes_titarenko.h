/*
** stripes_titarenko: what the host and the CUDA kernel share. Arrays: sino (in), result (out; may
** be sino). Slots: those of angle_modes.h, the taps, and on the host two rows a thread.
**
** One mode: the mean over the angles, v, minus its first column. The correction is v minus v
** filtered with beta ((1 - beta) / (1 + beta))^|d|, whose sum over all d is 1. The period is even:
** a last odd column is repeated once.
*/
#ifndef MB_OPS_OP_STRIPES_TITARENKO_H
#define MB_OPS_OP_STRIPES_TITARENKO_H

#include "ops/stripes/profile_filter.h"
#include <math.h>

typedef struct mb_stripes_titarenko_params {
    double beta;
} mb_stripes_titarenko_params;

enum { MB_STRIPES_TITARENKO_SINO, MB_STRIPES_TITARENKO_RESULT };
enum { MB_STRIPES_TITARENKO_TAPS = MB_MODES_SLOTS, MB_STRIPES_TITARENKO_ROWS };

MB_BOTH static inline double mb_stripes_titarenko_tap(double beta, int64_t d)
{
    return beta * pow((1 - beta) / (1 + beta), (double)d);
}

/* Taps of less than 1e-9 of the first are left out. */
static inline mb_profile_filter mb_stripes_titarenko_filter(double beta, int64_t columns)
{
    mb_profile_filter f = {columns, columns + columns % 2, 0, 0};
    double far = beta < 1 ? ceil(log(1e-9) / log((1 - beta) / (1 + beta))) : 0;
    const int64_t half = f.period / 2;
    f.reach = far < (double)half ? (int64_t)far : half;
    return f;
}

#endif
