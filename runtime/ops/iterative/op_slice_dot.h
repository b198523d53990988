/*
** slice_dot: what the host and the CUDA kernel share. Arrays: a, b (in), result (out). Slot:
** double[slices][mb_slice_segments], the sums of segments.
*/
#ifndef MB_OPS_OP_SLICE_DOT_H
#define MB_OPS_OP_SLICE_DOT_H

#include "ops/iterative/slice_rows.h"

typedef struct mb_slice_dot_params {
    double circle; /* half-width; 0: none */
} mb_slice_dot_params;

enum { MB_SLICE_DOT_A, MB_SLICE_DOT_B, MB_SLICE_DOT_RESULT };
enum { MB_SLICE_DOT_PARTIALS };

#endif
