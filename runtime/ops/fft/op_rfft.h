/*
** rfft: what the host and the CUDA kernel share. Arrays: a (in f32), result (out c64, last axis n/2
** + 1), both dense. One FFT, one slot (its work area): run it from a to result, the layout is in
** the plan. With in_place the last extent of a is 2 * (n/2 + 1), n samples and the room for the
** spectrum, and result is the same memory.
*/
#ifndef MB_OPS_OP_RFFT_H
#define MB_OPS_OP_RFFT_H

#include "ops/op.h"

typedef struct mb_rfft_params {
    int64_t axes; /* trailing axes, 1 to 3 */
    int64_t n;    /* in_place: samples per row; 0 = the last extent of a less 2 */
    bool in_place;
} mb_rfft_params;

enum { MB_RFFT_A, MB_RFFT_RESULT };
enum { MB_RFFT_FFT };
enum { MB_RFFT_WORK };

/* Samples per row: the logical last extent. */
static inline int64_t mb_rfft_samples(const mb_rfft_params *params, int64_t last)
{
    if (!params->in_place)
        return last;
    return params->n > 0 ? params->n : last - 2;
}

#endif
