/*
** mean_projection: what the host and the CUDA kernel share. Arrays: a (in), result (out).
*/
#ifndef MB_OPS_OP_MEAN_PROJECTION_H
#define MB_OPS_OP_MEAN_PROJECTION_H

#include "ops/op.h"

typedef struct mb_mean_projection_params {
    bool transmission; /* the mean of exp(-a) */
} mb_mean_projection_params;

enum { MB_MEAN_PROJECTION_A, MB_MEAN_PROJECTION_RESULT };

/* cuda: double[segments * pixels], sums of MB_MEAN_PROJECTION_SEGMENT frames each, where there are
** several; else 0 bytes */
enum { MB_MEAN_PROJECTION_PARTIALS };

#define MB_MEAN_PROJECTION_SEGMENT 256

static inline int64_t mb_mean_projection_segments(int64_t frames)
{
    return frames / MB_MEAN_PROJECTION_SEGMENT + (frames % MB_MEAN_PROJECTION_SEGMENT != 0);
}

#endif
