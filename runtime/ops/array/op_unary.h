/*
** unary: what the host and the CUDA kernel share. Arrays: a (in), result (out; may be the same
** array). No scratch.
*/
#ifndef MB_OPS_OP_UNARY_H
#define MB_OPS_OP_UNARY_H

#include "ops/op.h"

typedef enum mb_unary_fn {
    MB_UNARY_NEG,
    MB_UNARY_ABS, /* of complex: the magnitude, f32 or f64 */
    MB_UNARY_EXP, /* exp, log, sqrt, reciprocal: f32 and f64 only */
    MB_UNARY_LOG,
    MB_UNARY_SQRT,
    MB_UNARY_SQUARE, /* of complex: z * z */
    MB_UNARY_RECIPROCAL
} mb_unary_fn;

typedef struct mb_unary_params {
    int fn;
} mb_unary_params;

enum { MB_UNARY_A, MB_UNARY_RESULT };

#endif
