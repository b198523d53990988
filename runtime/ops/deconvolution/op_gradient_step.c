/*
** gradient_step: the second pointwise step of a least-squares iteration, fused: estimate + step *
** gradient with a lower bound, written to the estimate and, ready for the next transform, over the
** gradient; on demand with sums.
*/
#include "ops/deconvolution/op_gradient_step.h"
#include "ops/op_args.h"

#define PARAMS mb_gradient_step_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("estimate", MB_BIT(MB_F32), 1, 3, "estimate on the grid"),
    MB_ARRAY_INOUT("gradient", MB_BIT(MB_F32), 1, 3,
                   "back-projected residual, padded rows; becomes the new estimate"),
    MB_FLOAT(step, MB_ANY, 1, NULL, "factor of the gradient"),
    MB_FLOAT(min, MB_ANY, NAN, NULL, "lower bound of the estimate; default none"),
    MB_GRID_METRIC_ARGS(
        "return sums of the estimate and its change",
        "with metrics: sums of the new estimate, its squared change, and its square")};

static const char *const samples[] = {
    "{inputs = {{'f32', 4, 6, 9}, {'f32', 4, 6, 10, low = -1}}, params = {metrics = true, min = "
    "0}}",
    "{inputs = {{'f32', 8, 9}, {'f32', 8, 10, low = -1}}, params = {step = 1.5}}",
    "{inputs = {{'f32', 3, 8, 13}, {'f32', 3, 8, 14, low = -1}}, params = {step = 0.3, min = "
    "0.1}}"};

static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    const mb_gradient_step_params *p = params;
    return !p->metrics && cut->split->axis < arrays[MB_GRADIENT_STEP_ESTIMATE].shape.rank - 1;
}

#define ROWS                                                                                       \
    .alike = 1u << MB_GRADIENT_STEP_GRADIENT,                                                      \
    .when = "the axis is not the last and there are no metrics", .adapt = adapt
static const mb_op_split split[] = {MB_SPLIT_AXIS(0, ROWS), MB_SPLIT_AXIS(1, ROWS), MB_SPLIT_END};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_gradient_step_params *p = params;
    mb_shape padded = arrays[MB_GRADIENT_STEP_ESTIMATE].shape;
    char text[128];
    padded.dims[padded.rank - 1] = mb_grid_pitch(padded.dims[padded.rank - 1]);
    if (!mb_shape_equal(&arrays[MB_GRADIENT_STEP_GRADIENT].shape, &padded))
        return mb_fail(MB_STATUS_SHAPE, "gradient",
                       "gradient must have the padded rows of the estimate's grid, %s",
                       mb_shape_format(&padded, text, sizeof text));
    if (p->metrics)
        arrays[MB_GRADIENT_STEP_METRIC] = (mb_spec){true, MB_F64, {1, {3}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_gradient_step_params *p = params;
    (void)arrays;
    mb_grid_plan(planner, p->metrics ? sizeof(mb_grid_change) : 0);
}

static void step_row(float step, float least, int64_t n, float *estimate, float *gradient,
                     mb_grid_change *cell)
{
    for (int64_t x = 0; x < n; x++) {
        float old = estimate[x], value = old + step * gradient[x];
        value = value < least ? least : value;
        estimate[x] = gradient[x] = value;
        if (cell)
            mb_grid_change_add(cell, old, value);
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_gradient_step_params *p = call->params;
    const mb_array *estimate = call->arrays[MB_GRADIENT_STEP_ESTIMATE];
    float *gradient = call->arrays[MB_GRADIENT_STEP_GRADIENT]->data;
    float least = isnan(p->min) ? -INFINITY : (float)p->min;
    mb_grid_change *partials = call->slots[MB_GRADIENT_STEP_PARTIALS];
    int64_t g[3];
    mb_grid_dims(&estimate->shape, g);
    int64_t rows = g[0] * g[1], pitch = mb_grid_pitch(g[2]);
    int threads = rows * pitch < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t block = 0; block < MB_GRID_BLOCKS; block++) {
        if (mb_cancelled())
            continue;
        mb_grid_change cell = {0, 0, 0};
        for (int64_t row = rows * block / MB_GRID_BLOCKS; row < rows * (block + 1) / MB_GRID_BLOCKS;
             row++)
            step_row((float)p->step, least, g[2], (float *)estimate->data + row * g[2],
                     gradient + row * pitch, partials ? &cell : NULL);
        if (partials)
            partials[block] = cell;
    }
    mb_grid_fold(partials, sizeof *partials, call->arrays[MB_GRADIENT_STEP_METRIC]);
    return MB_STATUS_OK;
}

const mb_op mb_op_gradient_step = {
    .name = "gradient_step",
    .summary = "Least squares: a step along the gradient, bounded below, in place, with sums.",
    .doc = "Both arrays become max(estimate + step * gradient, min). gradient has the padded rows "
           "of the next transform.",
    .reference = "L. Landweber, Am. J. Math. 73, 615 (1951)",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 1e-6,
};
