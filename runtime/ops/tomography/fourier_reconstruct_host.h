/*
** The host kernel of fourier_reconstruct, and the floats of its `rows` slot per thread.
*/
#ifndef MB_OPS_FOURIER_RECONSTRUCT_HOST_H
#define MB_OPS_FOURIER_RECONSTRUCT_HOST_H

#include "ops/tomography/op_fourier_reconstruct.h"

/* A row of max(P, N) complex numbers and a table of N, whole cache lines. */
static inline int64_t mb_fourier_host_row(int64_t padded, int64_t samples)
{
    return ((padded > samples ? padded : samples) + 7) / 8 * 16;
}

/* Columns of the grid that are transformed together: whole cache lines of the image. */
#define MB_FOURIER_HOST_COLUMNS 16

/* Floats between them: not a power of two, or all would meet in one set of the cache. */
static inline int64_t mb_fourier_host_column(int64_t grid)
{
    return ((grid + 7) / 8 * 8 + 8) * 2;
}

static inline int64_t mb_fourier_host_pitch(int64_t padded, int64_t samples, int64_t grid)
{
    int64_t rows = mb_fourier_host_row(padded, samples) + (samples + 7) / 8 * 16,
            columns = MB_FOURIER_HOST_COLUMNS * mb_fourier_host_column(grid);
    return rows > columns ? rows : columns;
}

mb_status mb_fourier_reconstruct_host(const mb_op_call *call);

#endif
