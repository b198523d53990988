/*
** bin: means of blocks of elements. a, of one to three axes and any real type -> f32. Sums are
** made in double, in the order of the elements, so that those of whole numbers are exact.
*/
#include "core/multiversion.h"
#include "ops/geometry/op_bin.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"
#include <string.h>

#define PARAMS mb_bin_params

enum { TILE = 512 };

static const char *const rests[] = {"drop", "keep", NULL};

#define ACCEPTED (MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_I32) | MB_BIT(MB_F16) | MB_BIT(MB_F32))

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", ACCEPTED, 1, 3, "frames (frame, row, column), one frame, or a line"),
    MB_VECTOR(sizes, 1, 1e9, "px", "elements that become one: a whole number for each axis"),
    MB_ENUM(rest, rests, MB_BIN_DROP,
            "what becomes of the elements at the end of an axis that do not fill a bin: they are "
            "left out, or are a smaller bin"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 1, 3, "means of the bins")};

static mb_rows needs(const void *params, const mb_spec *arrays, int axis, mb_rows rows)
{
    const int64_t size = (int64_t)((const mb_bin_params *)params)->sizes.values[axis];
    (void)arrays;
    return (mb_rows){rows.first * size, rows.end * size};
}

static void piece(const mb_spec *arrays, int axis, mb_op_piece *piece, void *params, double *room)
{
    (void)arrays, (void)axis, (void)params, (void)room;
    piece->skip = 0;
}

static const mb_op_split split[] = {MB_SPLIT_AXIS(0, .needs = needs, .piece = piece),
                                    MB_SPLIT_AXIS(1, .needs = needs, .piece = piece),
                                    MB_SPLIT_AXIS(2, .needs = needs, .piece = piece), MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'u16', 7, 13, 29}}, params = {sizes = {2, 3, 4}, rest = 'keep'}}",
    "{inputs = {{'f32', 3, 8, 1100}}, params = {sizes = {1, 2, 2}}}",
    "{inputs = {{'u8', 9, 31}}, params = {sizes = {4, 1}}}",
    "{inputs = {{'f16', 20}}, params = {sizes = {3}, rest = 'keep'}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_bin_params *p = params;
    mb_spec result = arrays[MB_BIN_A];
    MB_TRY(mb_check_axes("sizes", &p->sizes, result.shape.rank, false));
    MB_TRY(mb_check_whole("sizes", &p->sizes));
    result.dtype = MB_F32;
    for (int i = 0; i < result.shape.rank; i++) {
        const int64_t size = (int64_t)p->sizes.values[i], n = result.shape.dims[i];
        result.shape.dims[i] = n / size + (p->rest == MB_BIN_KEEP && n % size != 0);
        if (n > 0 && result.shape.dims[i] == 0)
            return mb_fail(
                MB_STATUS_ARGUMENT, "sizes",
                "axis %d has %lld elements, fewer than a bin of %lld; rest = 'keep' makes "
                "one of them",
                i + 1, (long long)n, (long long)size);
    }
    arrays[MB_BIN_RESULT] = result;
    return MB_STATUS_OK;
}

/* sums[i] += the sum of n elements of the line from element i n on, the last from fewer. */
#define ADD(name, type, load)                                                                      \
    MB_MULTIVERSION                                                                                \
    static void name(const type *line, int64_t size, int64_t bins, int64_t last, double *sums)     \
    {                                                                                              \
        if (size == 1) {                                                                           \
            for (int64_t i = 0; i < bins; i++)                                                     \
                sums[i] += load(line[i]);                                                          \
        } else if (size == 2 && last == 2) {                                                       \
            for (int64_t i = 0; i < bins; i++)                                                     \
                sums[i] = sums[i] + load(line[2 * i]) + load(line[2 * i + 1]);                     \
        } else {                                                                                   \
            for (int64_t i = 0; i < bins; i++) {                                                   \
                const int64_t count = i < bins - 1 ? size : last;                                  \
                for (int64_t k = 0; k < count; k++)                                                \
                    sums[i] += load(line[i * size + k]);                                           \
            }                                                                                      \
        }                                                                                          \
    }
#define PLAIN(v) ((double)(v))
#define HALF(v) ((double)mb_half_to_float(v))
ADD(add_u8, uint8_t, PLAIN)
ADD(add_u16, uint16_t, PLAIN)
ADD(add_i32, int32_t, PLAIN)
ADD(add_f16, uint16_t, HALF)
ADD(add_f32, float, PLAIN)

static void add_line(const mb_array *a, int64_t at, int64_t size, int64_t bins, int64_t last,
                     double *sums)
{
    switch (a->dtype) {
    case MB_U8: add_u8((const uint8_t *)a->data + at, size, bins, last, sums); break;
    case MB_U16: add_u16((const uint16_t *)a->data + at, size, bins, last, sums); break;
    case MB_I32: add_i32((const int32_t *)a->data + at, size, bins, last, sums); break;
    case MB_F16: add_f16((const uint16_t *)a->data + at, size, bins, last, sums); break;
    default: add_f32((const float *)a->data + at, size, bins, last, sums);
    }
}

/* Bins [x0, x0 + n) of one row of the result. */
static void bin_row(const mb_array *a, const mb_bin_axes *x, int64_t z, int64_t y, int64_t x0,
                    int64_t n, float *to)
{
    const int64_t frames = mb_bin_count(x, 0, z), rows = mb_bin_count(x, 1, y);
    const int64_t last = mb_bin_count(x, 2, x0 + n - 1);
    const double count = (double)(frames * rows);
    double sums[TILE];
    memset(sums, 0, (size_t)n * sizeof *sums);
    for (int64_t f = 0; f < frames; f++)
        for (int64_t r = 0; r < rows; r++)
            add_line(a,
                     (z * x->size[0] + f) * x->from[0] + (y * x->size[1] + r) * x->from[1] +
                         x0 * x->size[2],
                     x->size[2], n, last, sums);
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)(sums[i] / (count * (double)(i < n - 1 ? x->size[2] : last)));
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_BIN_A];
    mb_array *result = call->arrays[MB_BIN_RESULT];
    const mb_bin_axes x = mb_bin_axes_of(call->params, a, result);
    const int64_t rows = x.output[0] * x.output[1], cols = x.output[2];
    const int threads =
        x.input[0] * x.input[1] * x.input[2] < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < rows; row++) {
        const int64_t z = row / x.output[1], y = row % x.output[1];
        float *to = (float *)result->data + z * x.to[0] + y * x.to[1];
        if (mb_cancelled())
            continue;
        for (int64_t x0 = 0; x0 < cols; x0 += TILE)
            bin_row(a, &x, z, y, x0, cols - x0 < TILE ? cols - x0 : TILE, to + x0);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_bin = {
    .name = "bin",
    .summary = "Means of blocks of elements.",
    .doc =
        "Element i along an axis is the mean of elements size (i - 1) + 1 to size i, in float32 "
        "whatever the type of a. Sums are made in double. A NaN makes its bin NaN. Elements at the "
        "end that do not fill a bin are left out, or with rest = \"keep\" are a smaller bin.",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 1e-6,
};
