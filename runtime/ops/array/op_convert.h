/*
** convert: what the host and the CUDA kernel share. Arrays: a (in), result (out). No scratch.
*/
#ifndef MB_OPS_OP_CONVERT_H
#define MB_OPS_OP_CONVERT_H

#include "ops/op.h"

typedef struct mb_convert_params {
    int dtype; /* an mb_dtype: the choices are listed in its order */
    double scale, offset;
} mb_convert_params;

enum { MB_CONVERT_A, MB_CONVERT_RESULT };

#endif
