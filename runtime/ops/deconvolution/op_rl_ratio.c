/*
** rl_ratio: the first pointwise step of a Richardson-Lucy iteration, fused: image / max(blurred,
** eps) in place of the blurred estimate, 0 outside the image, and on demand the I-divergence of the
** two in the same pass.
*/
#include "ops/deconvolution/op_rl_ratio.h"
#include "ops/op_args.h"
#include <math.h>
#include <string.h>

#define PARAMS mb_rl_ratio_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("blurred", MB_BIT(MB_F32), 1, 3,
                   "blurred estimate on the grid, padded rows; becomes the ratio"),
    MB_ARRAY_IN("image", MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_F32), 1, 3,
                "measured image, at the origin of the grid"),
    MB_ARRAY_IN_OPTION("weights", MB_BIT(MB_F32), 1, 3,
                       "like image: the ratio's factors, 0 for bad pixels"),
    MB_FLOAT(eps, 1e-38, 1e38, 1e-12, NULL, "least value of blurred to divide by"),
    MB_GRID_METRIC_ARGS("also sum up the misfit",
                        "with metrics: I-divergence, and the sum of blurred, over the image"),
    {.name = NULL}};

static const char *const samples[] = {
    "{inputs = {{'f32', 4, 6, 10, low = 0.5}, {'f32', 3, 5, 7}}, params = {metrics = true}}",
    "{inputs = {{'f32', 6, 10, low = 0.5}, {'u16', 5, 9}, {'f32', 5, 9}}, params = {eps = 0.6}}",
    "{inputs = {{'f32', 12, low = 0.5}, {'f32', 11}, {'f32', 11}}, params = {metrics = true}}",
    NULL};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_rl_ratio_params *p = params;
    MB_TRY(mb_grid_check_image(&arrays[MB_RL_RATIO_BLURRED].shape, &arrays[MB_RL_RATIO_IMAGE],
                               &arrays[MB_RL_RATIO_WEIGHTS]));
    if (p->metrics)
        arrays[MB_RL_RATIO_METRIC] = (mb_spec){true, MB_F64, {1, {2}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_rl_ratio_params *p = params;
    (void)arrays;
    mb_planner_slot(planner, "partials", p->metrics ? MB_GRID_BLOCKS * sizeof(mb_rl_ratio_cell) : 0,
                    0, 0);
}

#define RATIO(type)                                                                                \
    do {                                                                                           \
        const type *y = image;                                                                     \
        if (cell)                                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                      \
                float b = row[i] > eps ? row[i] : eps, w = weights ? weights[i] : 1;               \
                cell->divergence += (double)w * mb_grid_divergence((double)y[i], (double)b);       \
                cell->blurred += (double)row[i];                                                   \
            }                                                                                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            row[i] = (float)y[i] / (row[i] > eps ? row[i] : eps);                                  \
    } while (0)
static void ratio_row(mb_dtype dtype, float *row, const void *image, const float *weights,
                      int64_t n, int64_t pitch, float eps, mb_rl_ratio_cell *cell)
{
    if (dtype == MB_U8)
        RATIO(uint8_t);
    else if (dtype == MB_U16)
        RATIO(uint16_t);
    else
        RATIO(float);
    for (int64_t i = 0; weights && i < n; i++)
        row[i] *= weights[i];
    memset(row + n, 0, (size_t)(pitch - n) * sizeof *row);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_rl_ratio_params *p = call->params;
    const mb_array *grid = call->arrays[MB_RL_RATIO_BLURRED];
    const mb_array *image = call->arrays[MB_RL_RATIO_IMAGE];
    const mb_array *weights = call->arrays[MB_RL_RATIO_WEIGHTS];
    mb_rl_ratio_cell *partials = call->slots[MB_RL_RATIO_PARTIALS];
    int64_t g[3], n[3], bytes = (int64_t)mb_dtype_bytes(image->dtype);
    mb_grid_dims(&grid->shape, g);
    mb_grid_dims(&image->shape, n);
    int64_t rows = g[0] * g[1];
    int threads = rows * g[2] < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t block = 0; block < MB_GRID_BLOCKS; block++) {
        if (mb_cancelled())
            continue;
        mb_rl_ratio_cell cell = {0, 0};
        for (int64_t row = rows * block / MB_GRID_BLOCKS; row < rows * (block + 1) / MB_GRID_BLOCKS;
             row++) {
            int64_t z = row / g[1], y = row % g[1], at = (z * n[1] + y) * n[2];
            float *line = (float *)grid->data + row * g[2];
            if (z < n[0] && y < n[1])
                ratio_row(image->dtype, line, (const char *)image->data + at * bytes,
                          weights ? (const float *)weights->data + at : NULL, n[2], g[2],
                          (float)p->eps, partials ? &cell : NULL);
            else
                memset(line, 0, (size_t)g[2] * sizeof *line);
        }
        if (partials)
            partials[block] = cell;
    }
    mb_grid_fold(partials, sizeof *partials, call->arrays[MB_RL_RATIO_METRIC]);
    return MB_STATUS_OK;
}

const mb_op mb_op_rl_ratio = {
    .name = "rl_ratio",
    .summary = "Richardson-Lucy: measured image over blurred estimate, in place, with the misfit.",
    .doc = "blurred is the estimate after the transfer function, on the padded rows of the inverse "
           "transform. Where the grid exceeds the image the ratio is 0, so that what wrapped "
           "around does not count.\n"
           "The I-divergence, the sum of y log(y/b) - y + b, is Richardson-Lucy's own measure.",
    .reference =
        "W. H. Richardson, J. Opt. Soc. Am. 62, 55 (1972); I. Csiszar, Ann. Stat. 19, 2032 "
        "(1991)",
    .category = "deconvolution",
    MB_OP_PARTS,
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 2e-6,
    .plan = plan,
};
