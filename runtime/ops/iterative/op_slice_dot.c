/*
** slice_dot: the sum of products of two stacks, slice by slice, in double.
*/
#include "ops/iterative/op_slice_dot.h"
#include "ops/iterative/slice_rows_host.h"
#include "ops/lane_dot.h"
#include "ops/op_args.h"

#define PARAMS mb_slice_dot_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 2, 3, "slices (z, y, x), or one (y, x); rows dense"),
    MB_ARRAY_IN("b", MB_BIT(MB_F32), 2, 3, "like a; may be a: sums of squares"),
    MB_CIRCLE_ARG("what is outside is left out"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F64), 1, 1, "a sum for each slice")};

static const mb_op_split split[] = {
    MB_SPLIT_AXIS(0, .when = "there are three axes", .adapt = mb_stack_adapt,
                  .alike = 1u << MB_SLICE_DOT_B | 1u << MB_SLICE_DOT_RESULT),
    MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 9, 37, low = -1}, {'f32', 3, 9, 37}}}",
    "{inputs = {{'f32', 13, 7}, {'f32', 13, 7}}, params = {circle = 0.9}}",
    "{inputs = {{'f32', 9, 300, 70}, {'f32', 9, 300, 70, low = -1}}, params = {circle = 1}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_spec *a = &arrays[MB_SLICE_DOT_A];
    (void)params;
    MB_TRY(mb_slice_check_shape("b", &arrays[MB_SLICE_DOT_B], "a", a));
    arrays[MB_SLICE_DOT_RESULT] = (mb_spec){true, MB_F64, {1, {mb_slice_count(&a->shape)}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_slice_dot_params *p = params;
    const mb_slices slices = mb_slices_of(&arrays[MB_SLICE_DOT_A].shape, p->circle);
    mb_planner_slot(planner, "partials", mb_slice_sums(&slices), 0, 0);
}

typedef struct job {
    mb_slice_view a, b;
} job;

static double add_row(const void *of, int64_t slice, int64_t y, mb_circle_run run)
{
    const job *j = of;
    return mb_lane_dot(mb_slice_row(&j->a, slice, y) + run.first,
                       mb_slice_row(&j->b, slice, y) + run.first, run.end - run.first);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_slice_dot_params *p = call->params;
    const mb_array *a = call->arrays[MB_SLICE_DOT_A], *b = call->arrays[MB_SLICE_DOT_B];
    const mb_slices slices = mb_slices_of(&a->shape, p->circle);
    const job j = {mb_slice_view_of(a), mb_slice_view_of(b)};
    mb_slice_rows(call, &slices, add_row, &j, call->slots[MB_SLICE_DOT_PARTIALS],
                  call->arrays[MB_SLICE_DOT_RESULT]);
    return MB_STATUS_OK;
}

const mb_op mb_op_slice_dot = {
    .name = "slice_dot",
    .summary = "Dot products of two stacks, slice by slice.",
    .doc = "A sum of products for each slice, in double precision and in an order that depends on "
           "the slice alone: the bits are the same for any blocks and threads. The sums stay on "
           "the device, where slice_axpy, cgls_update and normal_operator take them.",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 1e-9, /* sums of products in another order */
};
