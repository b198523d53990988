/*
** gradient_step: what the host and the CUDA kernel share. Arrays: estimate (inout f32, dense grid),
** gradient (inout f32, padded rows), metric (out f64 (3), absent without `metrics`). Slot
** MB_GRADIENT_STEP_PARTIALS (0 bytes without metrics): mb_grid_change[MB_GRID_BLOCKS].
*/
#ifndef MB_OPS_OP_GRADIENT_STEP_H
#define MB_OPS_OP_GRADIENT_STEP_H

#include "ops/array/padded_grid.h"
#include <math.h>

typedef struct mb_gradient_step_params {
    double step, min; /* min: NAN without */
    bool metrics;
} mb_gradient_step_params;

enum { MB_GRADIENT_STEP_ESTIMATE, MB_GRADIENT_STEP_GRADIENT, MB_GRADIENT_STEP_METRIC };
enum { MB_GRADIENT_STEP_PARTIALS };

#endif
