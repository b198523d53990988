/*
** overlap_metric: how well one end of an image matches every window of another one
** (op_overlap_metric.h). A thread of the host takes a window; sums are of doubles.
*/
#include "ops/axis/op_overlap_metric.h"
#include "core/multiversion.h"
#include "ops/op_args.h"

#define PARAMS mb_overlap_metric_params

static const char *const sides[] = {"left", "right", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("first", MB_BIT(MB_F32), 2, 2, "image or sinogram"),
    MB_ARRAY_IN("second", MB_BIT(MB_F32), 2, 2, "image or sinogram of as many rows"),
    MB_INT(window, 2, 1 << 24, 10, "px", "columns that are compared"),
    MB_ENUM(side, sides, MB_OVERLAP_RIGHT,
            "the side of the first image on which the second one meets it"),
    MB_BOOL(mirror, false, "take the second image mirrored, its last column first"),
    MB_BOOL(normalize, false,
            "scale each row of the first image's window to the mean magnitude of the second one's"),
    MB_BOOL(blend, false, "compare both with their blend, too"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 1, 1,
                 "1 - correlation, for windows from each column on: columns - window + 1 numbers")};

static const char *const samples[] = {
    "{inputs = {{'f32', 7, 23}, {'f32', 7, 19}}, params = {window = 6}}",
    "{inputs = {{'f32', 5, 40}, {'f32', 5, 40}}, params = {window = 7, side = 'left', mirror = "
    "true, normalize = true, blend = true}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_overlap_metric_params *p = params;
    const mb_shape *first = &arrays[MB_OVERLAP_METRIC_FIRST].shape;
    const mb_shape *second = &arrays[MB_OVERLAP_METRIC_SECOND].shape;
    if (first->dims[0] != second->dims[0] || first->dims[0] < 1)
        return mb_fail(MB_STATUS_SHAPE, "second",
                       "second has %lld rows and first has %lld; give images of as many rows, one "
                       "at least",
                       (long long)second->dims[0], (long long)first->dims[0]);
    if (p->window > first->dims[1] || p->window > second->dims[1])
        return mb_fail(MB_STATUS_ARGUMENT, "window",
                       "window is %lld columns; first has %lld and second %lld: give fewer",
                       (long long)p->window, (long long)first->dims[1], (long long)second->dims[1]);
    arrays[MB_OVERLAP_METRIC_RESULT] =
        (mb_spec){true, MB_F32, {1, {first->dims[1] - p->window + 1}}};
    return MB_STATUS_OK;
}

/* Sums in LANES of their own, so that a vector may hold them. */
#define LANES 8

static double total(const double *lanes)
{
    double sum = 0;
    for (int l = 0; l < LANES; l++)
        sum += lanes[l];
    return sum;
}

/* The factor of a row of the first image's window. */
MB_MULTIVERSION
static double factor_of(const float *a, const float *b, int64_t step, int64_t window)
{
    double la[LANES] = {0}, lb[LANES] = {0};
    for (int64_t i = 0; i < window; i++) {
        la[i % LANES] += fabsf(a[i]);
        lb[i % LANES] += fabsf(b[i * step]);
    }
    return total(lb) / total(la);
}

MB_MULTIVERSION
static void add_row(mb_overlap_sums *s, const float *a, const float *b, int64_t step,
                    int64_t window, double factor)
{
    double la[LANES] = {0}, lb[LANES] = {0}, laa[LANES] = {0}, lbb[LANES] = {0}, lab[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= window; i += LANES)
        for (int l = 0; l < LANES; l++) {
            const double x = a[i + l], y = b[(i + l) * step];
            la[l] += x;
            lb[l] += y;
            laa[l] += x * x;
            lbb[l] += y * y;
            lab[l] += x * y;
        }
    for (int l = 0; i < window; i++, l++) {
        const double x = a[i], y = b[i * step];
        la[l] += x;
        lb[l] += y;
        laa[l] += x * x;
        lbb[l] += y * y;
        lab[l] += x * y;
    }
    s->a += factor * total(la);
    s->b += total(lb);
    s->aa += factor * factor * total(laa);
    s->bb += total(lbb);
    s->ab += factor * total(lab);
}

static void add_blend(mb_overlap_sums *s, const float *a, const float *b, int64_t step,
                      const mb_overlap_metric_params *p, double factor)
{
    for (int64_t i = 0; i < p->window; i++) {
        const double x = factor * a[i], y = b[i * step];
        const double ramp = mb_overlap_metric_ramp(i, p->window, p->side);
        const double c = ramp * x + (1 - ramp) * y;
        s->c += c;
        s->cc += c * c;
        s->ac += x * c;
        s->bc += y * c;
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_overlap_metric_params *p = call->params;
    const mb_array *first = call->arrays[MB_OVERLAP_METRIC_FIRST];
    const mb_array *second = call->arrays[MB_OVERLAP_METRIC_SECOND];
    const mb_array *result = call->arrays[MB_OVERLAP_METRIC_RESULT];
    const int64_t rows = first->shape.dims[0];
    const mb_overlap_window w = mb_overlap_metric_window(p, second->shape.dims[1]);
#pragma omp parallel for schedule(static) num_threads(call->device->facts.threads)
    for (int64_t x = 0; x < result->shape.dims[0]; x++) {
        mb_overlap_sums s = {0};
        if (mb_cancelled())
            continue;
        for (int64_t y = 0; y < rows; y++) {
            const float *a = (const float *)first->data + y * first->strides[0] + x;
            const float *b = (const float *)second->data + y * second->strides[0] + w.start;
            const double factor = p->normalize ? factor_of(a, b, w.step, p->window) : 1;
            add_row(&s, a, b, w.step, p->window, factor);
            if (p->blend)
                add_blend(&s, a, b, w.step, p, factor);
        }
        ((float *)result->data)[x * result->strides[0]] =
            mb_overlap_metric_of(&s, (double)(rows * p->window), p->blend);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_overlap_metric = {
    .name = "overlap_metric",
    .summary = "How well the end of an image matches each window of another one.",
    .doc = "Finds by how much two images overlap. The window is the columns of the second image at "
           "the end that meets the first one: its first columns where it lies on the right, its "
           "last ones on the left. The result for column x is 1 - r, where r is the correlation of "
           "the window with columns x ... x + window - 1 of the first image, over all rows: 0 for "
           "equal images, but for a factor and an offset.\n"
           "With blend, the metric is the mean of three: of the two windows, and of either one and "
           "their blend, which goes linearly from the first to the second image. Values are those "
           "of algotom.prep.calculation.search_overlap before it divides them by the least one.\n"
           "A window without contrast, or with values that are not finite, gives NaN.",
    .reference = "N. T. Vo et al., Opt. Express 29 (2021) 17849",
    MB_OP_PARTS,
    .uncut = "every number of the result takes all rows and a window of columns",
    .strides = MB_STRIDES_ROWS,
    .tolerance = 1e-6,
};
