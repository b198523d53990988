/*
** stitch_half_acquisition: what the host and the CUDA kernel share. Arrays: sino (in), result
** (out). No scratch. Geometry: half_acquisition.h.
*/
#ifndef MB_OPS_OP_STITCH_HALF_ACQUISITION_H
#define MB_OPS_OP_STITCH_HALF_ACQUISITION_H

#include "ops/corrections/half_acquisition.h"

typedef struct mb_stitch_half_acquisition_params {
    double center; /* px */
    int64_t half;  /* angles of half a turn; 0 = auto */
} mb_stitch_half_acquisition_params;

enum { MB_STITCH_HALF_ACQUISITION_SINO, MB_STITCH_HALF_ACQUISITION_RESULT };

/* Rows of the result: angles from one ray to the same ray from behind. */
static inline int64_t mb_stitch_half(const mb_stitch_half_acquisition_params *p, int64_t angles)
{
    return p->half > 0 ? p->half : (angles + 1) / 2;
}

/* Column x of the result, from row k (`own`) and row k + half (`other`, NULL: a row of zeros). */
MB_BOTH static inline float mb_stitch_at(const mb_half_acquisition *h, const float *own,
                                         const float *other, int64_t x)
{
    int64_t last = h->cols - 1;
    /* t counts from the far edge of `own`: the result's columns are those of an axis at `axis`, or
    ** mirrored */
    int64_t t = h->left ? h->extended - 1 - x : x;
    double back = 2.0 * h->axis - (double)t, w = 1.0; /* the same ray from behind, in [0, 2a] */
    float value = 0.0f;
    if (t <= last) {
        int64_t u = h->left ? last - t : t;
        w = (double)mb_half_acquisition_weight_at(h, u);
        value = own[u] * (float)w;
    } else {
        w = 0.0;
    }
    if (w < 1.0 && other) {
        double low = floor(back);
        int64_t b = (int64_t)low;
        float f = (float)(back - low), near = 0.0f, far = 0.0f;
        if (b >= 0 && b <= last)
            near = other[h->left ? last - b : b];
        if (f > 0 && b + 1 >= 0 && b + 1 <= last)
            far = other[h->left ? last - b - 1 : b + 1];
        value += (float)(1.0 - w) * (near + f * (far - near));
    }
    return value;
}

#endif
