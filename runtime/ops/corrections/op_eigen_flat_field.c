/*
** eigen_flat_field: raw frames to transmission, by a flat that is made for each frame out of images
** that a beam consists of, fitted where nothing is in the beam: strips at the left and the right
** edge. data (n, h, w), mean (h, w), basis (m, h, w), dark (h, w) or none -> result f32 (n, h, w),
** counts f64[3].
*/
#include "ops/corrections/op_eigen_flat_field.h"
#include "core/multiversion.h"
#include "ops/corrections/op_flat_field.h"
#include "ops/op_args.h"
#include <float.h>

#define PARAMS mb_eigen_flat_field_params

enum { BLOCK = 256, WIDEST = 1 << 24 };

#define ACCEPTED (MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_I32) | MB_BIT(MB_F16) | MB_BIT(MB_F32))

static const mb_op_arg args[] = {
    MB_ARRAY_IN("data", ACCEPTED, 3, 3, "raw frames (n, h, w): projection, row, column"),
    MB_ARRAY_IN("mean", MB_BIT(MB_F32), 2, 2, "mean of -ln(flat - dark) over flats (h, w)"),
    MB_ARRAY_IN("basis", MB_BIT(MB_F32), 3, 3,
                "what -ln of a flat consists of beside the mean (m, h, w), at most 24 images"),
    MB_VECTOR(inverse, MB_ANY, NULL,
              "inverse (m, m) of the inner products of the basis over both strips, row after row"),
    MB_ARRAY_IN_OPTION("dark", MB_BIT(MB_F32), 2, 2, "mean frame without beam (h, w); default 0"),
    MB_INT(width, 1, WIDEST, 1, "px", "columns of each strip, at most half of a frame"),
    MB_FLOAT(floor, FLT_MIN, FLT_MAX, 1e-7, "counts",
             "samples of the strips with data - dark below it are left out of the fit"),
    MB_FLOAT(nonfinite, -FLT_MAX, FLT_MAX, 1, NULL, "replaces results that are NaN or infinite"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 3, 3, "transmission (n, h, w); may be data"),
    MB_ARRAY_OUT("counts", MB_BIT(MB_F64), 1, 1, "{replaced samples, 0, samples <= 0}")};

static const mb_op_split split[] = {MB_SPLIT_AXIS(0, .combine = MB_COMBINE_SUM), MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'u16', 5, 3, 17}, {'f32', 3, 17}, {'f32', 2, 3, 17}, {'f32', 3, 17}}, params = "
    "{inverse = {0.02, 0, 0, 0.03}, width = 3}}",
    "{inputs = {{'f32', 3, 40, 130}, {'f32', 40, 130}, {'f32', 1, 40, 130}}, params = {inverse = "
    "{0.0002}, width = 60}}"};

static mb_status check_frame(const char *name, const mb_spec *frame, const mb_shape *data)
{
    const int rank = frame->shape.rank;
    char have[64], want[64];
    if (frame->present && (frame->shape.dims[rank - 2] != data->dims[1] ||
                           frame->shape.dims[rank - 1] != data->dims[2]))
        return mb_fail(MB_STATUS_SHAPE, name,
                       "%s is %s and data is %s: they must agree in rows and columns", name,
                       mb_shape_format(&frame->shape, have, sizeof have),
                       mb_shape_format(data, want, sizeof want));
    return MB_STATUS_OK;
}

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_eigen_flat_field_params *p = params;
    const mb_shape *data = &arrays[MB_EIGEN_DATA].shape;
    const int64_t m = arrays[MB_EIGEN_BASIS].shape.dims[0];
    MB_TRY(check_frame("mean", &arrays[MB_EIGEN_MEAN], data));
    MB_TRY(check_frame("basis", &arrays[MB_EIGEN_BASIS], data));
    MB_TRY(check_frame("dark", &arrays[MB_EIGEN_DARK], data));
    if (m < 1 || m > MB_EIGEN_MOST)
        return mb_fail(MB_STATUS_SHAPE, "basis", "basis has %lld images; give 1 to %d",
                       (long long)m, MB_EIGEN_MOST);
    if (p->inverse.count != m * m)
        return mb_fail(MB_STATUS_ARGUMENT, "inverse",
                       "inverse has %lld numbers; give %lld x %lld, for the images of the basis",
                       (long long)p->inverse.count, (long long)m, (long long)m);
    if (data->dims[2] > 0 && 2 * p->width > data->dims[2])
        return mb_fail(MB_STATUS_ARGUMENT, "width",
                       "two strips of %lld columns do not fit into %lld columns; give a width of "
                       "at most %lld",
                       (long long)p->width, (long long)data->dims[2],
                       (long long)(data->dims[2] / 2));
    arrays[MB_EIGEN_RESULT] = (mb_spec){true, MB_F32, *data};
    arrays[MB_EIGEN_COUNTS] = (mb_spec){true, MB_F64, {1, {3}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_eigen_flat_field_params *p = params;
    const mb_shape *data = &arrays[MB_EIGEN_DATA].shape;
    const uint64_t n = (uint64_t)data->dims[0], m = (uint64_t)arrays[MB_EIGEN_BASIS].shape.dims[0];
    const bool host = planner->device->facts.compute_capability == 0;
    const uint64_t segments =
        (uint64_t)mb_eigen_segments(mb_eigen_samples(data->dims[1], p->width));
    mb_planner_slot(planner, "factors", n * m * 4, 0, 1);
    mb_planner_slot(planner, "inverse", host ? 0 : m * m * 8, 0, 0);
    mb_planner_slot(planner, "partials", host ? 0 : mb_bytes_mul(n * m * 8, segments), 0, 0);
    mb_planner_slot(planner, "tally", host ? 0 : 2 * sizeof(uint64_t), 0, 1);
}

/* n samples from (frame, y, x) on, less the dark. */
static void read_samples(const mb_array *array, const mb_array *dark, int64_t frame, int64_t y,
                         int64_t x, int64_t n, float *to)
{
    mb_flat_field_read(array, frame, y, x, n, to);
    if (dark) {
        const float *less = (const float *)dark->data + y * dark->strides[0] + x;
        for (int64_t i = 0; i < n; i++)
            to[i] -= less[i];
    }
}

static const float *row_of(const mb_array *array, int64_t k, int64_t y)
{
    const int rank = array->shape.rank;
    return (const float *)array->data + (rank == 3 ? k * array->strides[0] : 0) +
           y * array->strides[rank - 2];
}

/* Adds n samples from (frame, y, x) on to the sums of the fit. */
static void add_samples(const mb_op_call *call, int64_t frame, int64_t y, int64_t x, int64_t n,
                        double *sums)
{
    const mb_eigen_flat_field_params *p = call->params;
    const mb_array *basis = call->arrays[MB_EIGEN_BASIS];
    const float *mean = row_of(call->arrays[MB_EIGEN_MEAN], 0, y) + x;
    float values[BLOCK];
    read_samples(call->arrays[MB_EIGEN_DATA], call->arrays[MB_EIGEN_DARK], frame, y, x, n, values);
    for (int64_t i = 0; i < n; i++) {
        const bool used = values[i] >= (float)p->floor && values[i] <= FLT_MAX;
        values[i] = used ? -logf(values[i]) - mean[i] : 0.0f;
    }
    for (int64_t k = 0; k < basis->shape.dims[0]; k++) {
        const float *image = row_of(basis, k, y) + x;
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += (double)image[i] * (double)values[i];
        sums[k] += sum;
    }
}

static void fit(const mb_op_call *call, int64_t frame, float *factors)
{
    const mb_eigen_flat_field_params *p = call->params;
    const mb_shape *shape = &call->arrays[MB_EIGEN_DATA]->shape;
    const int64_t m = call->arrays[MB_EIGEN_BASIS]->shape.dims[0], w = shape->dims[2];
    double sums[MB_EIGEN_MOST] = {0};
    for (int64_t y = 0; y < shape->dims[1] && !mb_cancelled(); y++)
        for (int64_t x = 0; x < p->width; x += BLOCK) {
            const int64_t n = p->width - x < BLOCK ? p->width - x : BLOCK;
            add_samples(call, frame, y, x, n, sums);
            add_samples(call, frame, y, w - p->width + x, n, sums);
        }
    for (int64_t k = 0; k < m; k++) {
        double factor = 0;
        for (int64_t l = 0; l < m; l++)
            factor += p->inverse.values[k * m + l] * sums[l];
        factors[k] = (float)factor;
    }
}

MB_MULTIVERSION
static void add_scaled(float *exponents, const float *image, float factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        exponents[i] += factor * image[i];
}

/* One row of a frame; returns how many results were replaced and, in *low, how many are <= 0. */
static int64_t correct_row(const mb_op_call *call, int64_t frame, int64_t y, const float *factors,
                           int64_t *low)
{
    const mb_eigen_flat_field_params *p = call->params;
    const mb_array *basis = call->arrays[MB_EIGEN_BASIS];
    mb_array *result = call->arrays[MB_EIGEN_RESULT];
    const int64_t w = result->shape.dims[2];
    float *to = (float *)result->data + frame * result->strides[0] + y * result->strides[1];
    int64_t bad = 0;
    for (int64_t x = 0; x < w; x += BLOCK) {
        const int64_t n = w - x < BLOCK ? w - x : BLOCK;
        const float *mean = row_of(call->arrays[MB_EIGEN_MEAN], 0, y) + x;
        float values[BLOCK], exponents[BLOCK];
        read_samples(call->arrays[MB_EIGEN_DATA], call->arrays[MB_EIGEN_DARK], frame, y, x, n,
                     values);
        for (int64_t i = 0; i < n; i++)
            exponents[i] = mean[i];
        for (int64_t k = 0; k < basis->shape.dims[0]; k++)
            add_scaled(exponents, row_of(basis, k, y) + x, factors[k], n);
        for (int64_t i = 0; i < n; i++) {
            const float value = values[i] * expf(exponents[i]);
            const bool finite = fabsf(value) <= FLT_MAX;
            bad += !finite;
            *low += finite && value <= 0;
            to[x + i] = finite ? value : (float)p->nonfinite;
        }
    }
    return bad;
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_shape *shape = &call->arrays[MB_EIGEN_DATA]->shape;
    const mb_array *counts = call->arrays[MB_EIGEN_COUNTS];
    const int64_t n = shape->dims[0], h = shape->dims[1];
    const int64_t m = call->arrays[MB_EIGEN_BASIS]->shape.dims[0];
    float *factors = call->slots[MB_EIGEN_FACTORS];
    int64_t bad = 0, low = 0;
    const int threads = call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t frame = 0; frame < n; frame++)
        fit(call, frame, factors + frame * m);
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : bad, low)
    for (int64_t row = 0; row < n * h; row++)
        if (!mb_cancelled())
            bad += correct_row(call, row / h, row % h, factors + row / h * m, &low);
    if (counts) {
        double *tally = counts->data;
        tally[MB_EIGEN_NONFINITE * counts->strides[0]] = (double)bad;
        tally[MB_EIGEN_CLAMPED * counts->strides[0]] = 0;
        tally[MB_EIGEN_NOT_POSITIVE * counts->strides[0]] = (double)low;
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_eigen_flat_field = {
    .name = "eigen_flat_field",
    .summary = "Raw frames to transmission, by a flat that is fitted to each frame.",
    .doc = "The beam of a frame is exp(-(mean + c1 basis1 + c2 basis2 + ...)). The factors c are "
           "those that fit the frame best, by least squares of -ln(data - dark) over two strips, "
           "width columns at the left and at the right edge, where nothing may be in the beam. The "
           "result is data - dark, divided by that beam.\n"
           "inverse is the inverse of the inner products of the basis over the strips. Samples of "
           "the strips that are NaN, or below floor, are left out: they count as if they were "
           "fitted. Results that are not finite are replaced by nonfinite.",
    .reference = "C. Jailin et al., J. Synchrotron Rad. 24 (2017) 220",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_EIGEN_DATA,
    .tolerance = 2e-5, /* logarithms and sums of two kinds in an exponent */
};
