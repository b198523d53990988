/*
** complex_multiply: what the host and the CUDA kernel share. Arrays: a (inout c64), b (in c64, the trailing axes of a).
** No scratch. a[i] = a[i] * b[i modulo the elements of b] (or its conjugate) * scale.
*/
#ifndef MB_OPS_OP_COMPLEX_MULTIPLY_H
#define MB_OPS_OP_COMPLEX_MULTIPLY_H

#include "ops/op.h"

typedef struct mb_complex_multiply_params {
    bool conj;
    double scale;
} mb_complex_multiply_params;

enum { MB_COMPLEX_MULTIPLY_A, MB_COMPLEX_MULTIPLY_B };

#endif
