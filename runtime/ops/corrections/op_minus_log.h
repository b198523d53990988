/*
** minus_log: what the host and the CUDA kernel share. Arrays: a (in), result (out; may be the same
** array). No scratch.
*/
#ifndef MB_OPS_OP_MINUS_LOG_H
#define MB_OPS_OP_MINUS_LOG_H

#include "ops/op.h"

typedef struct mb_minus_log_params {
    double min, max; /* clip bounds */
} mb_minus_log_params;

enum { MB_MINUS_LOG_A, MB_MINUS_LOG_RESULT };

#endif
