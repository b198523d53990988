/*
** The host kernel of fourier_reconstruct, the floats of its `rows` slot per thread, and what it
** shares with that of fourier_project.
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

/* Fills the slots before MB_FOURIER_TABLES. */
void mb_fourier_host_tables(const mb_op_call *call, const mb_fourier_reconstruct_params *p,
                            const mb_parallel_geometry *g, const mb_gridding *gridding);

/* weight * exp(2 pi i k axis / N) for k = -N/2 ... N/2 - 1. */
void mb_fourier_host_phases(const mb_fourier_angle *angle, int64_t samples, float *phase);

/* Work that threads share: each has `pitch` floats of its own from `scratch` on. */
typedef struct mb_fourier_host_threads {
    const mb_op_call *call;
    const void *job;
    float *scratch;
    int64_t pitch;
} mb_fourier_host_threads;

typedef mb_status (*mb_fourier_host_body)(const void *job, int64_t item, float *scratch);

/* body(job, 0 ... count - 1, the thread's scratch), until one fails or the work is cancelled. */
mb_status mb_fourier_host_parallel(const mb_fourier_host_threads *threads, int64_t count,
                                   mb_fourier_host_body body);

mb_status mb_fourier_reconstruct_host(const mb_op_call *call);

#endif
