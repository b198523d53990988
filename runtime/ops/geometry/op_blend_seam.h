/*
** blend_seam: what the host and the CUDA kernel share. Arrays: a (in), result (out).
*/
#ifndef MB_OPS_OP_BLEND_SEAM_H
#define MB_OPS_OP_BLEND_SEAM_H

#include "core/both.h"
#include "ops/op.h"

typedef struct mb_blend_seam_params {
    int64_t seam;    /* columns of the left image */
    int64_t overlap; /* its last columns, which are the first ones of the right image */
} mb_blend_seam_params;

enum { MB_BLEND_SEAM_A, MB_BLEND_SEAM_RESULT };

/* Column x of the result from a row of both images side by side. */
MB_BOTH static inline float mb_blend_seam_at(const float *row, int64_t seam, int64_t overlap,
                                             int64_t x)
{
    const int64_t i = x - (seam - overlap);
    if (i < 0)
        return row[x];
    if (i >= overlap)
        return row[x + overlap];
    const float w = overlap > 1 ? (float)((double)i / (double)(overlap - 1)) : 0.5f;
    return w > 0 ? w < 1 ? row[x] + w * (row[x + overlap] - row[x]) : row[x + overlap] : row[x];
}

#endif
