/*
** fill: what the host and the CUDA kernel share. Arrays: a (inout). No scratch.
*/
#ifndef MB_OPS_OP_FILL_H
#define MB_OPS_OP_FILL_H

#include "ops/op.h"

typedef struct mb_fill_params {
    double value, imag; /* imag: complex arrays only */
} mb_fill_params;

enum { MB_FILL_A };

#endif
