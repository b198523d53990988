/*
** eigen_flats: what the host and the CUDA kernel share. Arrays: a (in), result (out).
*/
#ifndef MB_OPS_OP_EIGEN_FLATS_H
#define MB_OPS_OP_EIGEN_FLATS_H

#include "core/both.h"
#include "ops/op.h"

typedef struct mb_eigen_flats_params {
    mb_vector weights; /* components x n, row-major */
} mb_eigen_flats_params;

enum { MB_EIGEN_FLATS_A, MB_EIGEN_FLATS_RESULT };
enum { MB_EIGEN_FLATS_WEIGHTS };   /* cuda: the weights; host: 0 bytes */
enum { MB_EIGEN_FLATS_EXTRA = 3 }; /* a constant and two gradients, after the components */

/* From -1 at the first of n elements to 1 at the last. */
MB_BOTH static inline float mb_eigen_flats_ramp(int64_t i, int64_t n)
{
    return n > 1 ? (float)(2 * (double)i / (double)(n - 1) - 1) : 0.0f;
}

#endif
