/*
** normalize_background: what the host and the CUDA kernel share. Arrays: a (in), result (out; may
** be the same array). No scratch.
**
** The background of a row of n columns is c0 + c1 u + c2 (3 u^2 - m) with u = (2 x + 1 - n) / n and
** m the mean of 3 u^2: orthogonal over the columns, so that each factor is a sum of its own.
*/
#ifndef MB_OPS_OP_NORMALIZE_BACKGROUND_H
#define MB_OPS_OP_NORMALIZE_BACKGROUND_H

#include "core/both.h"
#include "ops/op.h"

typedef enum mb_background_method {
    MB_BACKGROUND_EDGES,    /* a line through the means of both edges */
    MB_BACKGROUND_CHEBYSHEV /* a parabola, least squares over the row */
} mb_background_method;

typedef enum mb_background_operation {
    MB_BACKGROUND_DIVIDE,
    MB_BACKGROUND_SUBTRACT
} mb_background_operation;

typedef struct mb_normalize_background_params {
    int method, operation;
    int64_t width; /* of an edge */
    double floor;  /* least divisor */
} mb_normalize_background_params;

enum { MB_NORMALIZE_BACKGROUND_A, MB_NORMALIZE_BACKGROUND_RESULT };

typedef struct mb_background {
    float c0, c1, c2;
} mb_background;

/* What depends on the number of columns alone. */
typedef struct mb_background_basis {
    double columns, mean;         /* m */
    double square_sum, shape_sum; /* of u^2 and of (3 u^2 - m)^2 */
} mb_background_basis;

static inline mb_background_basis mb_background_basis_of(int64_t columns)
{
    const double n = (double)columns, second = (n * n - 1) / (3 * n);
    const double fourth = (n * n - 1) * (3 * n * n - 7) / (15 * n * n * n);
    const double mean = 3 * second / n;
    return (mb_background_basis){n, mean, second, 9 * fourth - n * mean * mean};
}

/* From the means of the edges, which lie in the middle of their columns. */
MB_BOTH static inline mb_background mb_background_of_edges(const mb_background_basis *b,
                                                           int64_t width, double left, double right)
{
    const double half =
        (b->columns - (double)width) / b->columns; /* u of the right edge's middle */
    return (mb_background){(float)(0.5 * (left + right)), (float)(0.5 * (right - left) / half), 0};
}

/* From the sums of v, u v and (3 u^2 - m) v over a row. */
MB_BOTH static inline mb_background mb_background_of_sums(const mb_background_basis *b, double sum,
                                                          double first, double second)
{
    return (mb_background){(float)(sum / b->columns),
                           b->square_sum > 0 ? (float)(first / b->square_sum) : 0.0f,
                           b->shape_sum > 1e-9 ? (float)(second / b->shape_sum) : 0.0f};
}

MB_BOTH static inline float mb_background_at(const mb_background *c, float u, float mean)
{
    return c->c0 + c->c1 * u + c->c2 * (3 * u * u - mean);
}

#endif
