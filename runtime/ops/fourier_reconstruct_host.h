/*
** The host kernel of fourier_reconstruct, and the floats of its `rows` slot per thread.
*/
#ifndef MB_OPS_FOURIER_RECONSTRUCT_HOST_H
#define MB_OPS_FOURIER_RECONSTRUCT_HOST_H

#include "ops/op_fourier_reconstruct.h"

/* A row of max(P, N) complex numbers and a table of N, whole cache lines. */
static inline int64_t mb_fourier_host_row(int64_t padded, int64_t samples)
{
    return ((padded > samples ? padded : samples) + 7) / 8 * 16;
}

static inline int64_t mb_fourier_host_pitch(int64_t padded, int64_t samples)
{
    return mb_fourier_host_row(padded, samples) + (samples + 7) / 8 * 16;
}

mb_status mb_fourier_reconstruct_host(const mb_op_call *call);

#endif
