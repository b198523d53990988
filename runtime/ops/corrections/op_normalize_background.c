/*
** normalize_background: takes the background of each row of projections or sinograms out: what its
** edges have, where there is air, or its slow part. f32, two or three axes, rows anywhere; in place
** if wanted.
*/
#include "core/multiversion.h"
#include "ops/corrections/op_normalize_background.h"
#include "ops/frames.h"
#include "ops/op_args.h"
#include <float.h>

#define PARAMS mb_normalize_background_params

enum { WIDEST = 1 << 24, LANES = 8 };

static const char *const methods[] = {"edges", "chebyshev", NULL};
static const char *const operations[] = {"divide", "subtract", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 2, 3,
                "rows (..., row, column): projections or sinograms; rows anywhere"),
    MB_ENUM(method, methods, MB_BACKGROUND_EDGES,
            "edges: a line through the means of both edges; chebyshev: the parabola that fits the "
            "whole row best"),
    MB_ENUM(operation, operations, MB_BACKGROUND_DIVIDE,
            "divide: for transmission; subtract: for line integrals"),
    MB_INT(width, 1, WIDEST, 10, "px", "columns of each edge, at most half of the row"),
    MB_FLOAT(floor, FLT_MIN, FLT_MAX, 1e-6, NULL, "least divisor; a smaller one is raised to it"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "same shape; may be a")};

static bool columns_stay(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    (void)params;
    return cut->split->axis < arrays[MB_NORMALIZE_BACKGROUND_A].shape.rank - 1;
}

static const mb_op_split split[] = {
    MB_SPLIT_AXIS(0, .adapt = columns_stay),
    MB_SPLIT_AXIS(1, .when = "there are three axes", .adapt = columns_stay), MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 37}}, params = {width = 4}}",
    "{inputs = {{'f32', 4, 300}}, params = {operation = 'subtract', width = 150}}",
    "{inputs = {{'f32', 2, 3, 65}}, params = {method = 'chebyshev', operation = 'subtract'}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_normalize_background_params *p = params;
    const mb_shape *shape = &arrays[MB_NORMALIZE_BACKGROUND_A].shape;
    const int64_t columns = shape->dims[shape->rank - 1];
    if (p->method == MB_BACKGROUND_EDGES && columns > 0 && 2 * p->width > columns)
        return mb_fail(MB_STATUS_ARGUMENT, "width",
                       "two edges of %lld columns do not fit into %lld columns; give a width of "
                       "at most %lld",
                       (long long)p->width, (long long)columns, (long long)(columns / 2));
    arrays[MB_NORMALIZE_BACKGROUND_RESULT] = arrays[MB_NORMALIZE_BACKGROUND_A];
    return MB_STATUS_OK;
}

static double mean_of(const float *from, int64_t n)
{
    double sum = 0;
    for (int64_t x = 0; x < n; x++)
        sum += (double)from[x];
    return sum / (double)n;
}

/* Sums in lanes of their own, so that their order is always the same. */
MB_MULTIVERSION
static void sum_row(const float *from, int64_t n, const mb_background_basis *b, double *sums)
{
    double s0[LANES] = {0}, s1[LANES] = {0}, s2[LANES] = {0};
    const double scale = 2 / b->columns, offset = 1 / b->columns - 1;
    for (int64_t x = 0; x < n; x += LANES) {
        float v[LANES] = {0};
        for (int64_t k = 0; k < LANES && x + k < n; k++)
            v[k] = from[x + k];
        for (int k = 0; k < LANES; k++) {
            const double u = (double)(int32_t)(x + k) * scale + offset;
            s0[k] += (double)v[k];
            s1[k] += u * (double)v[k];
            s2[k] += (3 * u * u - b->mean) * (double)v[k];
        }
    }
    for (int k = 0; k < LANES; k++) {
        sums[0] += s0[k];
        sums[1] += s1[k];
        sums[2] += s2[k];
    }
}

MB_MULTIVERSION
static void apply(float *to, const float *from, int64_t n, const mb_background_basis *b,
                  mb_background c, bool subtract, float floor_value)
{
    const float scale = (float)(2 / b->columns), mean = (float)b->mean;
    const float first = (float)(1 - b->columns) * 0.5f;
    if (subtract)
        for (int32_t x = 0; x < (int32_t)n; x++)
            to[x] = from[x] - mb_background_at(&c, ((float)x + first) * scale, mean);
    else
        for (int32_t x = 0; x < (int32_t)n; x++) {
            const float divisor = mb_background_at(&c, ((float)x + first) * scale, mean);
            to[x] = from[x] / (divisor < floor_value ? floor_value : divisor);
        }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_normalize_background_params *p = call->params;
    const mb_frames s = mb_frames_of(call->arrays[MB_NORMALIZE_BACKGROUND_A],
                                     call->arrays[MB_NORMALIZE_BACKGROUND_RESULT]);
    const int64_t n = s.cols, rows = n > 0 ? s.count * s.rows : 0;
    const mb_background_basis basis = mb_background_basis_of(n > 0 ? n : 1);
    const int threads = rows * n < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < rows; row++) {
        const int64_t z = row / s.rows, y = row % s.rows;
        const float *from = s.from + z * s.from_frame + y * s.from_pitch;
        float *to = s.to + z * s.to_frame + y * s.to_pitch;
        mb_background c;
        double sums[3] = {0};
        if (mb_cancelled())
            continue;
        if (p->method == MB_BACKGROUND_EDGES)
            c = mb_background_of_edges(&basis, p->width, mean_of(from, p->width),
                                       mean_of(from + n - p->width, p->width));
        else {
            sum_row(from, n, &basis, sums);
            c = mb_background_of_sums(&basis, sums[0], sums[1], sums[2]);
        }
        apply(to, from, n, &basis, c, p->operation == MB_BACKGROUND_SUBTRACT, (float)p->floor);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_normalize_background = {
    .name = "normalize_background",
    .summary = "Takes the background of each row out: what its edges have, or its slow part.",
    .doc = "edges: the means of width columns at the left and at the right, each in the middle of "
           "its columns, and a line through them over the whole row. For rows with air at both "
           "edges: what is divided by it becomes 1 there, what it is subtracted from, 0.\n"
           "chebyshev: the parabola that fits the whole row best, by orthogonal polynomials; for "
           "rows without air, usually subtracted.\n"
           "Divisors below floor are raised to it. A NaN among the columns that are used makes the "
           "whole row NaN. out = a works in place.",
    .reference = "normalize_bg of TomoPy, whose line begins and ends at the outermost columns; the "
                 "sinogram normalization of nabu",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_NORMALIZE_BACKGROUND_A,
    .tolerance = 2e-6, /* sums in another order, then a few float operations */
};
