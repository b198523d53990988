/*
** gram_matrix: what the host and the CUDA kernel share. Arrays: a (in), result (out f64 (n, n)).
** Rows are cut into segments, whose number depends on the array alone; slot
** MB_GRAM_MATRIX_PARTIALS[segments][n][n] has the sums of each, of which only j <= i are used.
*/
#ifndef MB_OPS_OP_GRAM_MATRIX_H
#define MB_OPS_OP_GRAM_MATRIX_H

#include "ops/op.h"

typedef struct mb_gram_matrix_params {
    int unused;
} mb_gram_matrix_params;

enum { MB_GRAM_MATRIX_A, MB_GRAM_MATRIX_RESULT };
enum { MB_GRAM_MATRIX_PARTIALS };
enum { MB_GRAM_MATRIX_MOST = 512 };

/* Many where their sums are few. */
static inline int64_t mb_gram_matrix_segments(int64_t frames, int64_t rows)
{
    const int64_t most = frames <= 64 ? 256 : 32;
    return rows < most ? rows : most;
}

/* The first row of a segment. */
static inline int64_t mb_gram_matrix_first(int64_t segment, int64_t segments, int64_t rows)
{
    return segment * rows / segments;
}

#endif
