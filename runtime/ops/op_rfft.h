/*
** rfft: what the host and the CUDA kernel share. Arrays: a (in f32), result (out c64, last axis n/2 + 1).
** One FFT, one slot (its work area). With in_place the rows of a have a pitch of 2 * (n/2 + 1) reals and result is the
** same memory; the plan is then an in-place one.
*/
#ifndef MB_OPS_OP_RFFT_H
#define MB_OPS_OP_RFFT_H

#include "ops/op.h"

typedef struct mb_rfft_params {
    int64_t axes; /* trailing axes, 1 to 3 */
    bool in_place;
} mb_rfft_params;

enum { MB_RFFT_A, MB_RFFT_RESULT };
enum { MB_RFFT_FFT };
enum { MB_RFFT_WORK };

#endif
