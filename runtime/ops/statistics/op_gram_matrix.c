/*
** gram_matrix: inner products of all pairs of frames of a stack, in double precision. a (n, row,
** column), f32, rows anywhere -> result f64 (n, n).
*/
#include "ops/lane_dot.h"
#include "ops/op_args.h"
#include "ops/statistics/op_gram_matrix.h"

#define PARAMS mb_gram_matrix_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 3, 3, "frames (n, row, column), at most 512; rows anywhere"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F64), 2, 2, "inner products (n, n), symmetric")};

static const char *const samples[] = {"{inputs = {{'f32', 5, 3, 17}}}",
                                      "{inputs = {{'f32', 9, 70, 9}}}",
                                      "{inputs = {{'f32', 1, 1, 300}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_shape *shape = &arrays[MB_GRAM_MATRIX_A].shape;
    (void)params;
    if (shape->dims[0] > MB_GRAM_MATRIX_MOST)
        return mb_fail(MB_STATUS_SHAPE, "a", "a has %lld frames; at most %d have inner products",
                       (long long)shape->dims[0], MB_GRAM_MATRIX_MOST);
    arrays[MB_GRAM_MATRIX_RESULT] = (mb_spec){true, MB_F64, {2, {shape->dims[0], shape->dims[0]}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_shape *shape = &arrays[MB_GRAM_MATRIX_A].shape;
    const uint64_t n = (uint64_t)shape->dims[0];
    (void)params;
    mb_planner_slot(planner, "partials",
                    n * n * 8 * (uint64_t)mb_gram_matrix_segments(shape->dims[0], shape->dims[1]),
                    0, 0);
}

static void add_rows(const mb_array *a, int64_t first, int64_t end, double *sums)
{
    const int64_t n = a->shape.dims[0];
    for (int64_t i = 0; i < n * n; i++)
        sums[i] = 0;
    for (int64_t y = first; y < end && !mb_cancelled(); y++) {
        const float *row = (const float *)a->data + y * a->strides[1];
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++)
                sums[i * n + j] +=
                    mb_lane_dot(row + i * a->strides[0], row + j * a->strides[0], a->shape.dims[2]);
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_GRAM_MATRIX_A];
    mb_array *result = call->arrays[MB_GRAM_MATRIX_RESULT];
    const int64_t n = a->shape.dims[0], rows = a->shape.dims[1];
    const int64_t segments = mb_gram_matrix_segments(n, rows);
    double *partials = call->slots[MB_GRAM_MATRIX_PARTIALS];
    const int threads = call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t s = 0; s < segments; s++)
        add_rows(a, mb_gram_matrix_first(s, segments, rows),
                 mb_gram_matrix_first(s + 1, segments, rows), partials + s * n * n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0;
            for (int64_t s = 0; s < segments; s++)
                sum += partials[(s * n + i) * n + j];
            ((double *)result->data)[i * result->strides[0] + j * result->strides[1]] = sum;
            ((double *)result->data)[j * result->strides[0] + i * result->strides[1]] = sum;
        }
    return MB_STATUS_OK;
}

const mb_op mb_op_gram_matrix = {
    .name = "gram_matrix",
    .summary = "Inner products of all pairs of frames.",
    .doc = "Element (i, j) is the sum over all pixels of frame i times frame j, in double "
           "precision: of frames less their mean, n times their covariance. A NaN makes the row "
           "and the column of its frame NaN.",
    MB_OP_PLANNED_PARTS,
    .strides = MB_STRIDES_ROWS,
    .uncut = "its sums are over all pixels, in floating point",
    .tolerance = 1e-9, /* sums of products in another order */
};
