/*
** gaussian_filter: a sampled, truncated Gaussian along one axis after the other.
*/
#include "ops/filter/op_gaussian_filter.h"
#include "ops/op_args.h"

#define PARAMS mb_gaussian_filter_params

static const mb_op_arg args[] = {
    MB_SEPARABLE_INPUT,
    MB_VECTOR(
        sigma, 0, 1e6, "px",
        "standard deviations: one number, or one per filtered axis; 0 leaves an axis unfiltered"),
    MB_SEPARABLE_ARGS,
    MB_FLOAT(truncate, 0, 100, 4, "sigma",
             "where the Gaussian is cut off; the radius is truncate * sigma, rounded"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 1, MB_MAX_RANK, "smoothed array, same shape")};

static const char *const samples[] = {
    "{inputs = {{'f32', 5, 19, 37}}, params = {sigma = {0.6, 2, 1.3}}}",
    "{inputs = {{'u16', 3, 40, 33}}, params = {sigma = 1.5, axes = {2, 3}, mode = 'wrap'}}",
    "{inputs = {{'u8', 300}}, params = {sigma = 3, truncate = 2.5, mode = 'reflect'}}",
    "{inputs = {{'f32', 2, 1, 2, 9, 2, 11}}, params = {sigma = {1.5, 1}, axes = {4, 6}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_gaussian_filter_params *p = params;
    const mb_shape *shape = &arrays[MB_GAUSSIAN_FILTER_A].shape;
    MB_TRY(mb_separable_check("sigma", &p->sigma, &p->axes, shape->rank));
    arrays[MB_GAUSSIAN_FILTER_RESULT] = (mb_spec){true, MB_F32, *shape};
    return MB_STATUS_OK;
}

static int64_t window(const mb_gaussian_filter_params *p, int axis, int rank)
{
    const double sigma = mb_separable_number(&p->sigma, &p->axes, axis, rank, 0);
    return 2 * mb_separable_radius(sigma, p->truncate) + 1;
}

static bool means(const mb_gaussian_filter_params *p)
{
    (void)p;
    return false;
}

MB_SEPARABLE_SPLIT(mb_gaussian_filter_params, window, means);

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_shape *shape = &arrays[MB_GAUSSIAN_FILTER_A].shape;
    const mb_device_facts *facts = &planner->device->facts;
    mb_separable s = mb_gaussian_filter_passes(params, shape);
    mb_planner_slot(planner, "weights", mb_bytes_mul((uint64_t)s.weights, sizeof(float)), 0, 0);
    mb_planner_slot(planner, "scratch", mb_separable_scratch_bytes(&s, shape, facts), 0, 0);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_GAUSSIAN_FILTER_A];
    float *weights = call->slots[MB_GAUSSIAN_FILTER_WEIGHTS];
    mb_separable s = mb_gaussian_filter_passes(call->params, &a->shape);
    mb_separable_table(&s, weights);
    mb_array *result = call->arrays[MB_GAUSSIAN_FILTER_RESULT];
    mb_separable_run(&s, a, result->data, result->strides, weights,
                     call->slots[MB_GAUSSIAN_FILTER_SCRATCH]);
    return MB_STATUS_OK;
}

const mb_op mb_op_gaussian_filter = {
    .name = "gaussian_filter",
    .summary = "Gaussian smoothing with a width for each axis.",
    .doc =
        "The weights are the samples of exp(-(k / sigma)^2 / 2) for k = -r ... r, divided by their "
        "sum; r is truncate * sigma, rounded. The result is that of scipy.ndimage.gaussian_filter "
        "(order 0), in single precision.\n"
        "Use axes = {2, 3} for a stack of images.",
    .reference = "scipy.ndimage.gaussian_filter",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 1e-6,
};
