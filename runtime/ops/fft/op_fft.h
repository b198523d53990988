/*
** fft: what the host and the CUDA kernel share. Arrays: a (in c64), result (out c64; may be the
** same array). Shapes do not say whether the call is in place, so both plans are declared, in steps
** that do not overlap: their work areas share bytes. CUDA plans serve both ways: only FFT
** MB_FFT_OP_IN_PLACE exists there, use it for both. After an inverse with `normalize`, multiply by
** 1/N.
*/
#ifndef MB_OPS_OP_FFT_H
#define MB_OPS_OP_FFT_H

#include "ops/op.h"

typedef struct mb_fft_params {
    int64_t axes; /* trailing axes, 1 to 3 */
    bool inverse;
    bool normalize; /* inverse: times 1/N */
} mb_fft_params;

enum { MB_FFT_OP_A, MB_FFT_OP_RESULT };
enum { MB_FFT_OP_IN_PLACE, MB_FFT_OP_APART };           /* FFTs */
enum { MB_FFT_OP_IN_PLACE_WORK, MB_FFT_OP_APART_WORK }; /* slots, same numbers */

/* Points of one transform over the trailing axes. */
static inline int64_t mb_fft_op_points(const mb_shape *shape, int64_t axes)
{
    int64_t points = 1;
    for (int64_t i = shape->rank - axes; i < shape->rank; i++)
        points *= shape->dims[i];
    return points;
}

#endif
