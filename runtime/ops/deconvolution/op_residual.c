/*
** residual: the first pointwise step of a least-squares iteration, fused: image - blurred in place
** of the blurred estimate, 0 outside the image, and on demand the sum of its squares in the same
** pass. Integer images stay what they are.
*/
#include "ops/deconvolution/op_residual.h"
#include "ops/op_args.h"
#include <string.h>

#define PARAMS mb_residual_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("blurred", MB_BIT(MB_F32), 1, 3,
                   "blurred estimate on the grid, padded rows; becomes the residual"),
    MB_GRID_IMAGE_ARG("measured image"), MB_GRID_WEIGHTS_ARG("the residual"),
    MB_GRID_METRIC_ARGS("return the sum of squares",
                        "with metrics: weighted sum of (image - blurred)^2")};

static const char *const samples[] = {
    "{inputs = {{'f32', 4, 6, 10}, {'f32', 3, 5, 7}}, params = {metrics = true}}",
    "{inputs = {{'f32', 6, 10}, {'u16', 5, 9}, {'f32', 5, 9}}}",
    "{inputs = {{'f32', 12}, {'u8', 11}, {'f32', 11}}, params = {metrics = true}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_residual_params *p = params;
    MB_TRY(mb_grid_check_image(&arrays[MB_RESIDUAL_BLURRED].shape, &arrays[MB_RESIDUAL_IMAGE],
                               &arrays[MB_RESIDUAL_WEIGHTS]));
    if (p->metrics)
        arrays[MB_RESIDUAL_METRIC] = (mb_spec){true, MB_F64, {1, {1}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_residual_params *p = params;
    (void)arrays;
    mb_grid_plan(planner, p->metrics ? sizeof(double) : 0);
}

#define SUBTRACT(type)                                                                             \
    for (int64_t i = 0; i < n; i++)                                                                \
    row[i] = (float)((const type *)image)[i] - row[i]
/* Returns the sum of squares. */
static double subtract_row(mb_dtype dtype, float *row, const void *image, const float *weights,
                           int64_t n, bool measure)
{
    double sum = 0;
    if (dtype == MB_U8)
        SUBTRACT(uint8_t);
    else if (dtype == MB_U16)
        SUBTRACT(uint16_t);
    else
        SUBTRACT(float);
    for (int64_t i = 0; measure && i < n; i++)
        sum += (weights ? (double)weights[i] : 1) * (double)row[i] * (double)row[i];
    for (int64_t i = 0; weights && i < n; i++)
        row[i] *= weights[i];
    return sum;
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_array *grid = call->arrays[MB_RESIDUAL_BLURRED];
    const mb_array *image = call->arrays[MB_RESIDUAL_IMAGE];
    const mb_array *weights = call->arrays[MB_RESIDUAL_WEIGHTS];
    double *partials = call->slots[MB_RESIDUAL_PARTIALS];
    int64_t g[3], n[3], bytes = (int64_t)mb_dtype_bytes(image->dtype);
    mb_grid_dims(&grid->shape, g);
    mb_grid_dims(&image->shape, n);
    int64_t rows = g[0] * g[1];
    int threads = rows * g[2] < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t block = 0; block < MB_GRID_BLOCKS; block++) {
        if (mb_cancelled())
            continue;
        double sum = 0;
        for (int64_t row = rows * block / MB_GRID_BLOCKS; row < rows * (block + 1) / MB_GRID_BLOCKS;
             row++) {
            int64_t z = row / g[1], y = row % g[1], at = (z * n[1] + y) * n[2];
            int64_t taken = z < n[0] && y < n[1] ? n[2] : 0;
            float *line = (float *)grid->data + row * g[2];
            if (taken)
                sum += subtract_row(image->dtype, line, (const char *)image->data + at * bytes,
                                    weights ? (const float *)weights->data + at : NULL, taken,
                                    partials != NULL);
            memset(line + taken, 0, (size_t)(g[2] - taken) * sizeof *line);
        }
        if (partials)
            partials[block] = sum;
    }
    mb_grid_fold(partials, sizeof *partials, call->arrays[MB_RESIDUAL_METRIC]);
    return MB_STATUS_OK;
}

const mb_op mb_op_residual = {
    .name = "residual",
    .summary = "Least squares: measured image minus blurred estimate, in place, with its square.",
    .doc = "blurred is the estimate after the transfer function, on the padded rows of the inverse "
           "transform. Where the grid exceeds the image, the residual is 0: values that wrapped "
           "around do not count.",
    .reference = "L. Landweber, Am. J. Math. 73, 615 (1951)",
    MB_OP_PLANNED_PARTS,
    .uncut = "it is a step over the grid of an iteration, at whose start the image lies",
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 1e-6,
};
