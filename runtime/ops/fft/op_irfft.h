/*
** irfft: what the host and the CUDA kernel share. Arrays: a (in c64), result (out f32, last axis
** n), both dense. One FFT, two slots. C2R destroys its input, so a is first copied to slot
** MB_IRFFT_COPY and transformed from there; that slot is empty with `consume` and with in_place:
** then transform from a itself. With in_place the last extent of result is 2 * (n/2 + 1), n samples
** and rubbish, in the memory of a. With `normalize`, multiply by 1/mb_irfft_points afterwards.
*/
#ifndef MB_OPS_OP_IRFFT_H
#define MB_OPS_OP_IRFFT_H

#include "ops/op.h"

typedef struct mb_irfft_params {
    int64_t axes; /* trailing axes, 1 to 3 */
    int64_t n;    /* samples per row; 0 = 2 * (m - 1) */
    bool in_place;
    bool consume; /* the contents of a may be lost */
    bool normalize;
} mb_irfft_params;

enum { MB_IRFFT_A, MB_IRFFT_RESULT };
enum { MB_IRFFT_FFT };
enum { MB_IRFFT_WORK, MB_IRFFT_COPY };

/* Samples per row: the logical last extent. */
static inline int64_t mb_irfft_extent(const mb_irfft_params *params, int64_t m)
{
    return params->n > 0 ? params->n : 2 * (m - 1);
}

/* Samples of one transform; `shape` is that of a. */
static inline int64_t mb_irfft_points(const mb_irfft_params *params, const mb_shape *shape)
{
    int64_t points = mb_irfft_extent(params, shape->dims[shape->rank - 1]);
    for (int64_t i = shape->rank - params->axes; i < shape->rank - 1; i++)
        points *= shape->dims[i];
    return points;
}

#endif
