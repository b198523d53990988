/*
** slice_axpy: dst = dst + f (other - less), or dst = other + f (dst - less), with a factor for each
** slice that is kept on the device. In place, f32.
*/
#include "ops/iterative/op_slice_axpy.h"
#include "core/multiversion.h"
#include "ops/iterative/slice_rows_host.h"
#include "ops/op_args.h"
#include <string.h>

#define PARAMS mb_slice_axpy_params

static const char *const factors_of[] = {"other", "dst", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("dst", MB_BIT(MB_F32), 2, 3, "slices (z, y, x), or one (y, x); rows dense"),
    MB_ARRAY_IN("other", MB_BIT(MB_F32), 2, 3, "like dst, and not dst itself"),
    MB_ARRAY_IN("growth", MB_BIT(MB_F64), 1, 1, "the factor, a number for each slice"),
    MB_ARRAY_IN_OPTION("over", MB_BIT(MB_F64), 1, 1,
                       "what growth is divided by; a factor over 0 is 0"),
    MB_ARRAY_IN_OPTION("less", MB_BIT(MB_F32), 2, 3,
                       "like dst, and not dst itself: subtracted from what the factor multiplies"),
    MB_FLOAT(scale, MB_ANY, 1, NULL, "one more factor, of all slices"),
    MB_ENUM(of, factors_of, MB_SLICE_AXPY_OTHER,
            "what it multiplies: other, dst + f other; dst, other + f dst"),
    MB_CIRCLE_ARG("what dst has outside stays")};

static const mb_op_split split[] = {
    MB_SPLIT_AXIS(0, .when = "there are three axes", .adapt = mb_stack_adapt,
                  .alike = 1u << MB_SLICE_AXPY_OTHER_ARRAY | 1u << MB_SLICE_AXPY_GROWTH |
                           1u << MB_SLICE_AXPY_OVER | 1u << MB_SLICE_AXPY_LESS),
    MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 9, 37}, {'f32', 3, 9, 37}, {'f64', 3}}, params = {scale = -1}}",
    "{inputs = {{'f32', 13, 7}, {'f32', 13, 7}, {'f64', 1}}, params = {of = 'dst', circle = 0.9}}",
    "{inputs = {dst = {'f32', 9, 30, 70}, other = {'f32', 9, 30, 70}, growth = {'f64', 9, low = "
    "-1}, over = {'f64', 9}}, params = {of = 'dst'}}",
    "{inputs = {dst = {'f32', 5, 23, 61}, other = {'f32', 5, 23, 61}, growth = {'f64', 5}, less = "
    "{'f32', 5, 23, 61}}, params = {scale = -0.5, circle = 1}}",
    "{inputs = {dst = {'f32', 2, 8, 64}, other = {'f32', 2, 8, 64}, growth = {'f64', 2}, less = "
    "{'f32', 2, 8, 64}}, params = {of = 'dst'}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_spec *dst = &arrays[MB_SLICE_AXPY_DST_ARRAY];
    (void)params;
    MB_TRY(mb_slice_check_shape("other", &arrays[MB_SLICE_AXPY_OTHER_ARRAY], "dst", dst));
    MB_TRY(mb_slice_check_shape("less", &arrays[MB_SLICE_AXPY_LESS], "dst", dst));
    MB_TRY(mb_slice_check_factor("growth", &arrays[MB_SLICE_AXPY_GROWTH], &dst->shape));
    return mb_slice_check_factor("over", &arrays[MB_SLICE_AXPY_OVER], &dst->shape);
}

typedef struct job {
    mb_slice_view dst, other, less; /* less: data NULL where there is none */
    mb_slice_factor factor;
    double scale;
    bool of_dst;
} job;

/* to = a + factor * b. Products are exact in double, whether the compiler fuses one with the sum or
** not. */
MB_MULTIVERSION
static void combine(float *to, const float *a, const float *b, int64_t n, float factor)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)((double)a[i] + (double)factor * (double)b[i]);
}

MB_MULTIVERSION
static void combine_less(float *to, const float *a, const float *b, const float *less, int64_t n,
                         float factor)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)((double)a[i] + (double)factor * ((double)b[i] - (double)less[i]));
}

static double change_row(const void *of, int64_t slice, int64_t y, mb_circle_run run)
{
    const job *j = of;
    const float factor = (float)(j->scale * (double)mb_slice_factor_at(&j->factor, slice));
    float *dst = mb_slice_row(&j->dst, slice, y) + run.first;
    const float *other = mb_slice_row(&j->other, slice, y) + run.first;
    const int64_t n = run.end - run.first;
    if (factor != 0 && j->less.data)
        combine_less(dst, j->of_dst ? other : dst, j->of_dst ? dst : other,
                     mb_slice_row(&j->less, slice, y) + run.first, n, factor);
    else if (factor != 0)
        combine(dst, j->of_dst ? other : dst, j->of_dst ? dst : other, n, factor);
    else if (j->of_dst)
        memcpy(dst, other, (size_t)n * sizeof *dst);
    return 0;
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_slice_axpy_params *p = call->params;
    const mb_array *dst = call->arrays[MB_SLICE_AXPY_DST_ARRAY];
    const mb_slices slices = mb_slices_of(&dst->shape, p->circle);
    const job j = {
        mb_slice_view_of(dst),
        mb_slice_view_of(call->arrays[MB_SLICE_AXPY_OTHER_ARRAY]),
        mb_slice_view_of(call->arrays[MB_SLICE_AXPY_LESS]),
        mb_slice_factor_of(call->arrays[MB_SLICE_AXPY_GROWTH], call->arrays[MB_SLICE_AXPY_OVER]),
        p->scale,
        p->of == MB_SLICE_AXPY_DST};
    mb_slice_rows(call, &slices, change_row, &j, NULL, NULL);
    return MB_STATUS_OK;
}

const mb_op mb_op_slice_axpy = {
    .name = "slice_axpy",
    .summary = "Adds a multiple of one stack to another in place, a factor for each slice.",
    .doc =
        "dst = dst + f other, or with of = \"dst\" dst = other + f dst, where f = scale * growth "
        "/ over of the slice; with less it multiplies other - less, or dst - less, in the same "
        "pass "
        "over memory. growth and over are arrays on the device (of slice_dot, "
        "normal_operator or cgls_update), so that no iteration of a solver waits for a number. "
        "f is 0 where over is 0, as for a slice that has converged; what a factor 0 multiplies "
        "is not read. f is rounded to single precision.",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 1e-6, /* fused or separate multiplication and addition */
};
