/*
** irfft: what the host and the CUDA kernel share. Arrays: a (in c64, consumed: its contents are lost), result (out f32,
** last axis n). One FFT, one slot (its work area). With in_place the rows of result have a pitch of 2 * (n/2 + 1) reals
** in the memory of a. With `normalise`, multiply by 1/N afterwards (N = points of the real side).
*/
#ifndef MB_OPS_OP_IRFFT_H
#define MB_OPS_OP_IRFFT_H

#include "ops/op.h"

typedef struct mb_irfft_params {
    int64_t axes; /* trailing axes, 1 to 3 */
    int64_t n;    /* last extent of the result; 0 = 2 * (m - 1) */
    bool in_place;
    bool normalise;
} mb_irfft_params;

enum { MB_IRFFT_A, MB_IRFFT_RESULT };
enum { MB_IRFFT_FFT };
enum { MB_IRFFT_WORK };

static inline int64_t mb_irfft_extent(const mb_irfft_params *params, int64_t m)
{
    return params->n > 0 ? params->n : 2 * (m - 1);
}

#endif
