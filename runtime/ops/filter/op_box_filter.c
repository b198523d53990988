/*
** box_filter: the mean over a box around every element, by running sums: the cost does not depend
** on the size.
*/
#include "ops/filter/op_box_filter.h"
#include "ops/op_args.h"

#define PARAMS mb_box_filter_params

static const mb_op_arg args[] = {
    MB_SEPARABLE_INPUT,
    MB_VECTOR(
        size, 1, 1e9, "px",
        "extents of the box: one number, or one per filtered axis; 1 leaves an axis unfiltered"),
    MB_SEPARABLE_ARGS, MB_ARRAY_OUT("result", MB_BIT(MB_F32), 1, MB_MAX_RANK, "means, same shape")};

static const char *const samples[] = {
    "{inputs = {{'f32', 5, 19, 37}}, params = {size = {3, 4, 7}}}",
    "{inputs = {{'u16', 3, 40, 33}}, params = {size = {5, 8}, axes = {2, -1}, mode = 'wrap'}}",
    "{inputs = {{'u8', 300}}, params = {size = 9, mode = 'constant', value = 3.5}}",
    "{inputs = {{'f32', 2, 1, 2, 9, 2, 11}}, params = {size = {3, 5}, axes = {4, 6}}}",
    "{inputs = {{'f32', 140, 3, 5}}, params = {size = {7, 1, 3}}}",
    "{inputs = {{'f32', 2, 200, 7}}, params = {size = {40, 1}, axes = {2, 3}, mode = 'edge'}}",
    "{inputs = {{'f32', 3, 2100}}, params = {size = {2, 9}, mode = 'reflect'}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_box_filter_params *p = params;
    const mb_shape *shape = &arrays[MB_BOX_FILTER_A].shape;
    MB_TRY(mb_separable_check("size", &p->size, &p->axes, shape->rank));
    MB_TRY(mb_check_whole("size", &p->size));
    arrays[MB_BOX_FILTER_RESULT] = (mb_spec){true, MB_F32, *shape};
    return MB_STATUS_OK;
}

static int64_t window(const mb_box_filter_params *p, int axis, int rank)
{
    return (int64_t)mb_separable_number(&p->size, &p->axes, axis, rank, 1);
}

static bool means(const mb_box_filter_params *p)
{
    (void)p;
    return true;
}

MB_SEPARABLE_SPLIT(mb_box_filter_params, window, means);

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_shape *shape = &arrays[MB_BOX_FILTER_A].shape;
    const mb_device_facts *facts = &planner->device->facts;
    mb_separable s = mb_box_filter_passes(params, shape);
    mb_planner_slot(planner, "scratch", mb_separable_scratch_bytes(&s, shape, facts), 0, 0);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_BOX_FILTER_A];
    mb_separable s = mb_box_filter_passes(call->params, &a->shape);
    mb_array *result = call->arrays[MB_BOX_FILTER_RESULT];
    mb_separable_run(&s, a, result->data, result->strides, NULL,
                     call->slots[MB_BOX_FILTER_SCRATCH]);
    return MB_STATUS_OK;
}

const mb_op mb_op_box_filter = {
    .name = "box_filter",
    .summary = "Mean over a box around every element; any axes, any size at the same cost.",
    .doc = "The box of n elements along an axis begins n/2 elements (rounded down) before the "
           "element, as in scipy.ndimage.uniform_filter. Sums are double precision; values between "
           "axes are f32.\n"
           "Use axes = {2, 3} for a stack of images.",
    .reference = "running sums along one axis after the other; scipy.ndimage.uniform_filter",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 1e-6,
};
