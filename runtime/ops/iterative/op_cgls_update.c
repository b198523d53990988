/*
** cgls_update: the step of conjugate gradients, fused: x += f p, r -= f q, and the sums of r
** squared, with a factor for each slice that is kept on the device. In place, f32.
*/
#include "ops/iterative/op_cgls_update.h"
#include "core/multiversion.h"
#include "ops/iterative/slice_rows_host.h"
#include "ops/op_args.h"

#define PARAMS mb_cgls_update_params

enum { LANES = 16 };

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("x", MB_BIT(MB_F32), 2, 3, "slices (z, y, x), or one (y, x); rows dense"),
    MB_ARRAY_INOUT("r", MB_BIT(MB_F32), 2, 3, "residual of the normal equations, like x"),
    MB_ARRAY_IN("p", MB_BIT(MB_F32), 2, 3, "direction, like x"),
    MB_ARRAY_IN("q", MB_BIT(MB_F32), 2, 3, "normal operator of p, like x"),
    MB_ARRAY_IN("growth", MB_BIT(MB_F64), 1, 1, "the step, a number for each slice"),
    MB_ARRAY_IN_OPTION("over", MB_BIT(MB_F64), 1, 1,
                       "what growth is divided by; a step over 0 is 0"),
    MB_CIRCLE_ARG("what x and r have outside stays"),
    MB_ARRAY_OUT("squares", MB_BIT(MB_F64), 1, 1, "the sum of r squared of each slice")};

static const mb_op_split split[] = {
    MB_SPLIT_AXIS(0, .when = "there are three axes", .adapt = mb_stack_adapt,
                  .alike = 1u << MB_CGLS_UPDATE_R | 1u << MB_CGLS_UPDATE_P |
                           1u << MB_CGLS_UPDATE_Q | 1u << MB_CGLS_UPDATE_GROWTH |
                           1u << MB_CGLS_UPDATE_OVER | 1u << MB_CGLS_UPDATE_SQUARES),
    MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 9, 37}, {'f32', 3, 9, 37}, {'f32', 3, 9, 37}, {'f32', 3, 9, 37}, "
    "{'f64', 3}}}",
    "{inputs = {x = {'f32', 13, 7}, r = {'f32', 13, 7}, p = {'f32', 13, 7}, q = {'f32', 13, 7}, "
    "growth = {'f64', 1}, over = {'f64', 1}}, params = {circle = 0.9}}",
    "{inputs = {{'f32', 9, 300, 70}, {'f32', 9, 300, 70}, {'f32', 9, 300, 70}, {'f32', 9, 300, "
    "70}, {'f64', 9}}, params = {circle = 1}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    static const char *const names[] = {"r", "p", "q"};
    const mb_spec *x = &arrays[MB_CGLS_UPDATE_X];
    (void)params;
    for (int i = 0; i < 3; i++)
        MB_TRY(mb_slice_check_shape(names[i], &arrays[MB_CGLS_UPDATE_R + i], "x", x));
    MB_TRY(mb_slice_check_factor("growth", &arrays[MB_CGLS_UPDATE_GROWTH], &x->shape));
    MB_TRY(mb_slice_check_factor("over", &arrays[MB_CGLS_UPDATE_OVER], &x->shape));
    arrays[MB_CGLS_UPDATE_SQUARES] = (mb_spec){true, MB_F64, {1, {mb_slice_count(&x->shape)}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_cgls_update_params *p = params;
    const mb_slices slices = mb_slices_of(&arrays[MB_CGLS_UPDATE_X].shape, p->circle);
    mb_planner_slot(planner, "partials", mb_slice_sums(&slices), 0, 0);
}

typedef struct job {
    mb_slice_view x, r, p, q;
    mb_slice_factor factor;
} job;

/* Products are exact in double, whether the compiler fuses one with the sum or not; each lane has
** its own sum, so that the order is always the same. */
MB_MULTIVERSION
static double step(float *restrict x, float *restrict r, const float *restrict p,
                   const float *restrict q, int64_t n, float factor)
{
    double lanes[LANES] = {0}, sum = 0;
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((double)x[i] + (double)factor * (double)p[i]);
    for (int64_t i = 0; i < n; i++)
        r[i] = (float)((double)r[i] - (double)factor * (double)q[i]);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lanes[k] += (double)r[i + k] * (double)r[i + k];
    for (int k = 0; i + k < n; k++)
        lanes[k] += (double)r[i + k] * (double)r[i + k];
    for (int k = 0; k < LANES; k++)
        sum += lanes[k];
    return sum;
}

static double step_row(const void *of, int64_t slice, int64_t y, mb_circle_run run)
{
    const job *j = of;
    return step(
        mb_slice_row(&j->x, slice, y) + run.first, mb_slice_row(&j->r, slice, y) + run.first,
        mb_slice_row(&j->p, slice, y) + run.first, mb_slice_row(&j->q, slice, y) + run.first,
        run.end - run.first, mb_slice_factor_at(&j->factor, slice));
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_cgls_update_params *p = call->params;
    const mb_slices slices = mb_slices_of(&call->arrays[MB_CGLS_UPDATE_X]->shape, p->circle);
    const job j = {
        mb_slice_view_of(call->arrays[MB_CGLS_UPDATE_X]),
        mb_slice_view_of(call->arrays[MB_CGLS_UPDATE_R]),
        mb_slice_view_of(call->arrays[MB_CGLS_UPDATE_P]),
        mb_slice_view_of(call->arrays[MB_CGLS_UPDATE_Q]),
        mb_slice_factor_of(call->arrays[MB_CGLS_UPDATE_GROWTH], call->arrays[MB_CGLS_UPDATE_OVER])};
    mb_slice_rows(call, &slices, step_row, &j, call->slots[MB_CGLS_UPDATE_PARTIALS],
                  call->arrays[MB_CGLS_UPDATE_SQUARES]);
    return MB_STATUS_OK;
}

const mb_op mb_op_cgls_update = {
    .name = "cgls_update",
    .summary = "The step of conjugate gradients in place: x += f p, r -= f q, and r squared.",
    .doc =
        "f = growth / over of the slice, in single precision, and 0 where over is 0, as for a "
        "slice that has converged. growth is the r squared of the step before (or the product "
        "of r and the preconditioned r), over the dots of normal_operator. Returns x, r and the "
        "new sum of r squared of each slice, in double precision and in an order that depends on "
        "the slice alone; the next direction takes it as its growth, over the old one:\n"
        "q, dots, p = mb.normal_operator(r, kernel, {direction = p, growth = new, over = old, "
        "dot = true}), then x, r, newer = mb.cgls_update(x, r, p, q, new, {over = dots}).",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 1e-6, /* fused or separate multiplication and addition */
};
