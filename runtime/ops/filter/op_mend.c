/*
** mend: values that are not finite, and pixels of a mask, become the median or the mean of their
** valid neighbors.
*/
#include "ops/filter/op_mend.h"
#include "core/kth_smallest.h"
#include "ops/op_args.h"

#define PARAMS mb_mend_params

static const char *const methods[] = {"median", "mean", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_MEDIAN_DTYPES, 2, 3, "image or stack of images"),
    MB_ARRAY_IN_OPTION("mask", MB_BIT(MB_U8), 2, 2,
                       "pixels to replace in each image: not 0 where (row, column) is bad"),
    MB_ENUM(method, methods, MB_MEND_MEDIAN,
            "median or mean of the valid neighbors; the median of an even number is the mean of "
            "the middle two"),
    MB_INT(reach, 1, MB_MEND_MOST_REACH, 5, "px",
           "how far valid neighbors may be along rows and columns"),
    MB_BOOL(nonfinite, true, "replace NaN and infinities, too"),
    MB_MEDIAN_COUNTED,
    MB_ARRAY_OUT("result", MB_MEDIAN_DTYPES, 2, 3, "same shape and type; may be a"),
    MB_ARRAY_OUT("counts", MB_BIT(MB_F64), 1, 1,
                 "{values replaced, values left because no neighbor in reach is valid}")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 9, 70}, {'u8', 9, 70}}}",
    "{inputs = {{'u16', 4, 11, 33}, {'u8', 11, 33}}, params = {method = 'mean', reach = 1}}",
    "{inputs = {{'f32', 7, 40}}, params = {reach = 2}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_mend_params *p = params;
    const mb_spec *a = &arrays[MB_MEND_A], *mask = &arrays[MB_MEND_MASK];
    const int64_t *frame = a->shape.dims + a->shape.rank - 2;
    if (mask->present && (mask->shape.dims[0] != frame[0] || mask->shape.dims[1] != frame[1]))
        return mb_fail(MB_STATUS_SHAPE, "mask",
                       "mask has %lld x %lld pixels and the images of a have %lld x %lld: they "
                       "must agree",
                       (long long)mask->shape.dims[0], (long long)mask->shape.dims[1],
                       (long long)frame[0], (long long)frame[1]);
    MB_TRY(mb_median_part_check(&p->counted, &a->shape));
    arrays[MB_MEND_RESULT] = (mb_spec){true, a->dtype, a->shape};
    arrays[MB_MEND_COUNTS] = (mb_spec){true, MB_F64, {1, {2}}};
    return MB_STATUS_OK;
}

/* Rows and columns of the mask are those of the images. */
static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    const int image = cut->split->axis - (arrays[MB_MEND_A].shape.rank - 2);
    (void)params;
    cut->axes[MB_MEND_MASK] = image >= 0 ? image : -1;
    return true;
}

static mb_rows needs(const void *params, const mb_spec *arrays, int axis, mb_rows rows)
{
    const mb_mend_params *p = params;
    const bool image = axis >= arrays[MB_MEND_A].shape.rank - 2;
    const int64_t reach = image ? p->reach : 0;
    return (mb_rows){rows.first - reach, rows.end + reach};
}

static void piece(const mb_spec *arrays, int axis, mb_op_piece *part, void *params, double *room)
{
    mb_mend_params *p = params;
    p->counted = mb_median_part_piece(&p->counted, &arrays[MB_MEND_A].shape, axis, part, room);
}

#define PARTS .needs = needs, .adapt = adapt, .piece = piece, .combine = MB_COMBINE_SUM
static const mb_op_split split[] = {MB_SPLIT_AXIS(0, PARTS), MB_SPLIT_AXIS(1, PARTS),
                                    MB_SPLIT_AXIS(2, PARTS), MB_SPLIT_END};

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_shape *shape = &arrays[MB_MEND_A].shape;
    const bool host = planner->device->facts.compute_capability == 0;
    uint64_t words = (uint64_t)mb_mend_words(shape->dims[shape->rank - 1]);
    (void)params;
    for (int i = 0; i < shape->rank - 1; i++)
        words = mb_bytes_mul(words, (uint64_t)shape->dims[i]);
    mb_planner_slot(planner, "broken", mb_bytes_mul(words, sizeof(uint32_t)), 0, 0);
    mb_planner_slot(planner, "tally", host ? 0 : 2 * sizeof(uint64_t), 0, 0);
}

/* An array and the bits of its broken values. */
typedef struct job {
    int64_t n[3], words;
    const mb_array *a, *to;
    const uint8_t *mask;
    int64_t mask_row;
    uint32_t *broken;
    const mb_mend_params *p;
    bool in_place;
} job;

static float value_at(const mb_array *a, int64_t at)
{
    switch (a->dtype) {
    case MB_U8: return ((const uint8_t *)a->data)[at];
    case MB_U16: return ((const uint16_t *)a->data)[at];
    default: return ((const float *)a->data)[at];
    }
}

static void set_value(const mb_array *a, int64_t at, double value)
{
    switch (a->dtype) {
    case MB_U8: ((uint8_t *)a->data)[at] = (uint8_t)rint(value); break;
    case MB_U16: ((uint16_t *)a->data)[at] = (uint16_t)rint(value); break;
    default: ((float *)a->data)[at] = (float)value; break;
    }
}

/* The bits of a row. */
static void mark_row(const job *j, int64_t z, int64_t y)
{
    uint32_t *bits = j->broken + (z * j->n[1] + y) * j->words;
    const float *values =
        (const float *)j->a->data + z * mb_median_plane(j->a) + y * mb_median_row(j->a);
    const uint8_t *mask = j->mask ? j->mask + y * j->mask_row : NULL;
    const bool nonfinite = j->p->nonfinite && j->a->dtype == MB_F32;
    for (int64_t word = 0; word < j->words; word++) {
        const int64_t x = word * 32;
        const int many = j->n[2] - x < 32 ? (int)(j->n[2] - x) : 32;
        uint32_t found = 0;
        for (int i = 0; mask && i < many; i++)
            found |= (uint32_t)(mask[x + i] != 0) << i;
        for (int i = 0; nonfinite && i < many; i++)
            found |= (uint32_t) !(fabsf(values[x + i]) <= 3.402823466e38f) << i;
        bits[word] = found;
    }
}

static bool is_broken(const job *j, int64_t z, int64_t y, int64_t x)
{
    return j->broken[(z * j->n[1] + y) * j->words + x / 32] >> (x % 32) & 1;
}

/* The middle of the values; of the middle two their mean. */
static double median(float *values, int64_t n)
{
    const float upper = mb_kth_smallest(values, n, n / 2);
    float lower = values[0];
    if (n % 2)
        return (double)upper;
    for (int64_t i = 1; i < n / 2; i++)
        lower = values[i] > lower ? values[i] : lower;
    return 0.5 * ((double)lower + (double)upper);
}

/* What a value becomes, from the smallest square around it that has a valid value. false: there is
** none in reach. */
static bool mended(const job *j, int64_t z, int64_t y, int64_t x, double *result)
{
    float values[(2 * MB_MEND_MOST_REACH + 1) * (2 * MB_MEND_MOST_REACH + 1)];
    int64_t n = 0;
    double sum = 0;
    for (int64_t reach = 1; reach <= j->p->reach && n == 0; reach++) {
        const int64_t y1 = y + reach < j->n[1] ? y + reach : j->n[1] - 1,
                      x1 = x + reach < j->n[2] ? x + reach : j->n[2] - 1;
        for (int64_t v = y > reach ? y - reach : 0; v <= y1; v++)
            for (int64_t u = x > reach ? x - reach : 0; u <= x1; u++)
                if (!is_broken(j, z, v, u)) {
                    values[n] =
                        value_at(j->a, z * mb_median_plane(j->a) + v * mb_median_row(j->a) + u);
                    sum += (double)values[n++];
                }
    }
    if (n > 0)
        *result = j->p->method == MB_MEND_MEAN ? sum / (double)n : median(values, n);
    return n > 0;
}

/* Writes a row of the result; adds to the counts. */
static void mend_row(const job *j, const mb_median_part *part, int64_t z, int64_t y, int64_t *done,
                     int64_t *left)
{
    const int64_t from = z * mb_median_plane(j->a) + y * mb_median_row(j->a),
                  to = z * mb_median_plane(j->to) + y * mb_median_row(j->to);
    const size_t bytes = mb_dtype_bytes(j->a->dtype);
    const bool here =
        z >= part->first[0] && z < part->end[0] && y >= part->first[1] && y < part->end[1];
    if (!j->in_place)
        memcpy((char *)j->to->data + (size_t)to * bytes,
               (const char *)j->a->data + (size_t)from * bytes, (size_t)j->n[2] * bytes);
    for (int64_t word = 0; word < j->words; word++)
        for (uint32_t bits = j->broken[(z * j->n[1] + y) * j->words + word]; bits;
             bits &= bits - 1) {
            const int64_t x = word * 32 + __builtin_ctz(bits);
            const bool count = here && x >= part->first[2] && x < part->end[2];
            double value;
            if (mended(j, z, y, x, &value)) {
                set_value(j->to, to + x, value);
                *done += count;
            } else {
                *left += count;
            }
        }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_MEND_A], *mask = call->arrays[MB_MEND_MASK];
    const mb_array *to = call->arrays[MB_MEND_RESULT];
    const int rank = a->shape.rank, threads = call->device->facts.threads;
    const job j = {
        {rank == 3 ? a->shape.dims[0] : 1, a->shape.dims[rank - 2], a->shape.dims[rank - 1]},
        mb_mend_words(a->shape.dims[rank - 1]),
        a,
        to,
        mask ? mask->data : NULL,
        mask ? mask->strides[0] : 0,
        call->slots[MB_MEND_BROKEN],
        call->params,
        to->data == a->data};
    const mb_median_part part = mb_median_part_of(&j.p->counted, &a->shape);
    double *counts = call->arrays[MB_MEND_COUNTS]->data;
    int64_t done = 0, left = 0;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < j.n[0] * j.n[1]; row++)
        if (!mb_cancelled())
            mark_row(&j, row / j.n[1], row % j.n[1]);
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : done, left)
    for (int64_t row = 0; row < j.n[0] * j.n[1]; row++)
        if (!mb_cancelled())
            mend_row(&j, &part, row / j.n[1], row % j.n[1], &done, &left);
    counts[MB_MEND_MENDED * call->arrays[MB_MEND_COUNTS]->strides[0]] = (double)done;
    counts[MB_MEND_LEFT * call->arrays[MB_MEND_COUNTS]->strides[0]] = (double)left;
    return MB_STATUS_OK;
}

const mb_op mb_op_mend = {
    .name = "mend",
    .summary = "Replaces values that are not finite, and the pixels of a mask, by their neighbors.",
    .doc = "A value becomes the median or the mean of the valid values in the smallest square "
           "around it, of 3 x 3 pixels and more, that has any; squares end at the edges of the "
           "image. Images of a stack are mended one by one. Where nothing within reach is valid "
           "the value stays. Integers are rounded to the nearest, halves to even.\n"
           "counts is {values replaced, values left}. May run in place.",
    .reference = "median or mean of valid neighbors",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_MEND_A,
};
