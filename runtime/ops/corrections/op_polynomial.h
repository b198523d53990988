/*
** polynomial: what the host and the CUDA kernel share. Arrays: a (in), result (out; may be the same
** array). No scratch.
*/
#ifndef MB_OPS_OP_POLYNOMIAL_H
#define MB_OPS_OP_POLYNOMIAL_H

#include "ops/op.h"

enum { MB_POLYNOMIAL_MOST = 16 }; /* coefficients */

typedef struct mb_polynomial_params {
    mb_vector coefficients; /* of the powers 0, 1, 2, ... */
} mb_polynomial_params;

enum { MB_POLYNOMIAL_A, MB_POLYNOMIAL_RESULT };

#endif
