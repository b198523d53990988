/*
** half_acquisition_weight: what the host and the CUDA kernel share. Arrays: sino (in), result (out;
** may be the same array where it is no wider). No scratch. Geometry: half_acquisition.h.
*/
#ifndef MB_OPS_OP_HALF_ACQUISITION_WEIGHT_H
#define MB_OPS_OP_HALF_ACQUISITION_WEIGHT_H

#include "ops/corrections/half_acquisition.h"

typedef struct mb_half_acquisition_weight_params {
    double center; /* px */
    bool extend;
} mb_half_acquisition_weight_params;

enum { MB_HALF_ACQUISITION_WEIGHT_SINO, MB_HALF_ACQUISITION_WEIGHT_RESULT };

/* Columns of zeros in front of the detector's: with extend, those that a left axis adds. */
static inline int64_t mb_half_acquisition_front(const mb_half_acquisition *h, bool extend)
{
    return extend && h->left ? h->extended - h->cols : 0;
}

#endif
