/*
** cgls_update: what the host and the CUDA kernel share. Arrays: x, r (inout), p, q, growth, over
** (in), result (out). Slot: double[slices][mb_slice_segments], the sums of segments.
*/
#ifndef MB_OPS_OP_CGLS_UPDATE_H
#define MB_OPS_OP_CGLS_UPDATE_H

#include "ops/iterative/slice_rows.h"

typedef struct mb_cgls_update_params {
    double circle; /* half-width; 0: none */
} mb_cgls_update_params;

enum {
    MB_CGLS_UPDATE_X,
    MB_CGLS_UPDATE_R,
    MB_CGLS_UPDATE_P,
    MB_CGLS_UPDATE_Q,
    MB_CGLS_UPDATE_GROWTH,
    MB_CGLS_UPDATE_OVER,
    MB_CGLS_UPDATE_SQUARES
};
enum { MB_CGLS_UPDATE_PARTIALS };

#endif
