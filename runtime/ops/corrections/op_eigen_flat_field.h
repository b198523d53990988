/*
** eigen_flat_field: what the host and the CUDA kernel share. Arrays: data (in), mean (in), basis
** (in), dark (in or NULL), result (out f32), counts (out f64[3]).
**
** Step 0: for each frame, the sums over the strips of basis times P - mean, with P = -ln(data -
** dark), and from them, by `inverse`, the factors of the basis: slot MB_EIGEN_FACTORS[n * m].
** Step 1: result = (data - dark) exp(mean + the sum of factors times basis).
*/
#ifndef MB_OPS_OP_EIGEN_FLAT_FIELD_H
#define MB_OPS_OP_EIGEN_FLAT_FIELD_H

#include "ops/op.h"

enum { MB_EIGEN_MOST = 24, MB_EIGEN_SEGMENT = 4096 }; /* images of a basis; samples of a sum */

typedef struct mb_eigen_flat_field_params {
    mb_vector inverse; /* m x m */
    int64_t width;     /* of a strip */
    double floor, nonfinite;
} mb_eigen_flat_field_params;

enum {
    MB_EIGEN_DATA,
    MB_EIGEN_MEAN,
    MB_EIGEN_BASIS,
    MB_EIGEN_DARK,
    MB_EIGEN_RESULT,
    MB_EIGEN_COUNTS
};

enum {
    MB_EIGEN_FACTORS,  /* float[n * m] */
    MB_EIGEN_INVERSE,  /* cuda: double[m * m]; host: 0 bytes */
    MB_EIGEN_PARTIALS, /* cuda: double[n * segments * m]; host: 0 bytes */
    MB_EIGEN_TALLY     /* cuda: uint64_t[2]; host: 0 bytes */
};

enum { MB_EIGEN_NONFINITE, MB_EIGEN_CLAMPED, MB_EIGEN_NOT_POSITIVE }; /* counts; the 2nd is 0 */

/* Samples of both strips of a frame, and the segments that they are cut into. */
static inline int64_t mb_eigen_samples(int64_t height, int64_t width)
{
    return 2 * height * width;
}

static inline int64_t mb_eigen_segments(int64_t samples)
{
    return (samples + MB_EIGEN_SEGMENT - 1) / MB_EIGEN_SEGMENT;
}

#endif
