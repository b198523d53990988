/*
** slice_axpy: what the host and the CUDA kernel share. Arrays: dst (inout), other, growth, over,
** less (in; the last two optional). No scratch.
*/
#ifndef MB_OPS_OP_SLICE_AXPY_H
#define MB_OPS_OP_SLICE_AXPY_H

#include "ops/iterative/slice_rows.h"

typedef enum mb_slice_axpy_of { MB_SLICE_AXPY_OTHER, MB_SLICE_AXPY_DST } mb_slice_axpy_of;

typedef struct mb_slice_axpy_params {
    double scale;
    int of;        /* what the factor multiplies */
    double circle; /* half-width; 0: none */
} mb_slice_axpy_params;

enum {
    MB_SLICE_AXPY_DST_ARRAY,
    MB_SLICE_AXPY_OTHER_ARRAY,
    MB_SLICE_AXPY_GROWTH,
    MB_SLICE_AXPY_OVER,
    MB_SLICE_AXPY_LESS
};

#endif
