/*
** complex_multiply: what the host and the CUDA kernel share. Arrays: a (inout c64), b (in c64, the
** trailing axes of a). No scratch. a[i] = a[i] * b[i modulo the elements of b] (or its conjugate) *
** scale.
*/
#ifndef MB_OPS_OP_COMPLEX_MULTIPLY_H
#define MB_OPS_OP_COMPLEX_MULTIPLY_H

#include "ops/op.h"

typedef struct mb_complex_multiply_params {
    bool conj;
    double scale;
} mb_complex_multiply_params;

enum { MB_COMPLEX_MULTIPLY_A, MB_COMPLEX_MULTIPLY_B };

/* The host kernel: a, `count` complex numbers, times b (its `period` ones, repeated) or its
** conjugate, times scale. */
void mb_complex_multiply_host(mb_device *device, float *a, const float *b, int64_t count,
                              int64_t period, double scale, bool conj);

#endif
