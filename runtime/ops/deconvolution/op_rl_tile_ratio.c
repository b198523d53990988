/*
** rl_tile_ratio: image / max(blurred, eps) in place of the blurred estimate, for one tile, and on
** demand the I-divergence of the two in the same pass.
*/
#include "ops/deconvolution/op_rl_tiles.h"
#include "ops/op_args.h"
#include <math.h>

#define PARAMS mb_rl_tile_ratio_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("blurred", MB_BIT(MB_F32), 1, 3,
                   "a tile of the blurred estimate; becomes the ratio"),
    MB_ARRAY_IN("image", MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_F32), 1, 3,
                "the same tile of the measured image"),
    MB_FLOAT(eps, 1e-38, 1e38, 1e-12, NULL, "least value of blurred to divide by"),
    MB_GRID_METRIC_ARGS("also sum up the misfit",
                        "with metrics: I-divergence, and the sum of blurred, over the tile"),
    {.name = NULL}};

static const char *const samples[] = {
    "{inputs = {{'f32', 4, 6, 10, low = 0.5}, {'f32', 4, 6, 10}}, params = {metrics = true}}",
    "{inputs = {{'f32', 6, 10, low = 0.5}, {'u16', 6, 10}}, params = {eps = 0.6}}",
    "{inputs = {{'f32', 12, low = 0.5}, {'u8', 12}}, params = {metrics = true}}", NULL};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_rl_tile_ratio_params *p = params;
    if (!mb_shape_equal(&arrays[MB_RL_TILE_RATIO_BLURRED].shape,
                        &arrays[MB_RL_TILE_RATIO_IMAGE].shape))
        return mb_fail(MB_STATUS_SHAPE, "image", "image must have the shape of blurred");
    if (p->metrics)
        arrays[MB_RL_TILE_RATIO_METRIC] = (mb_spec){true, MB_F64, {1, {2}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_rl_tile_ratio_params *p = params;
    (void)arrays;
    mb_planner_slot(planner, "partials", p->metrics ? MB_GRID_BLOCKS * sizeof(mb_rl_ratio_cell) : 0,
                    0, 0);
}

#define RATIO(type)                                                                                \
    do {                                                                                           \
        const type *y = image;                                                                     \
        if (cell)                                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                      \
                float b = row[i * step] > eps ? row[i * step] : eps;                               \
                cell->divergence += mb_grid_divergence((double)y[i * image_step], (double)b);      \
                cell->blurred += (double)row[i * step];                                            \
            }                                                                                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            row[i * step] =                                                                        \
                (float)y[i * image_step] / (row[i * step] > eps ? row[i * step] : eps);            \
    } while (0)
static void ratio_row(mb_dtype dtype, float *row, int64_t step, const void *image,
                      int64_t image_step, int64_t n, float eps, mb_rl_ratio_cell *cell)
{
    if (dtype == MB_U8)
        RATIO(uint8_t);
    else if (dtype == MB_U16)
        RATIO(uint16_t);
    else
        RATIO(float);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_rl_tile_ratio_params *p = call->params;
    const mb_array *blurred = call->arrays[MB_RL_TILE_RATIO_BLURRED];
    const mb_array *image = call->arrays[MB_RL_TILE_RATIO_IMAGE];
    mb_rl_ratio_cell *partials = call->slots[0];
    const mb_rl_view to = mb_rl_view_of(blurred), from = mb_rl_view_of(image);
    const int64_t rows = to.n[0] * to.n[1], bytes = (int64_t)mb_dtype_bytes(image->dtype);
    int threads = rows * to.n[2] < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t block = 0; block < MB_GRID_BLOCKS; block++) {
        if (mb_cancelled())
            continue;
        mb_rl_ratio_cell cell = {0, 0};
        for (int64_t row = rows * block / MB_GRID_BLOCKS; row < rows * (block + 1) / MB_GRID_BLOCKS;
             row++) {
            int64_t z = row / to.n[1], y = row % to.n[1];
            ratio_row(image->dtype, (float *)blurred->data + z * to.stride[0] + y * to.stride[1],
                      to.stride[2],
                      (const char *)image->data + (z * from.stride[0] + y * from.stride[1]) * bytes,
                      from.stride[2], to.n[2], (float)p->eps, partials ? &cell : NULL);
        }
        if (partials)
            partials[block] = cell;
    }
    mb_grid_fold(partials, sizeof *partials, call->arrays[MB_RL_TILE_RATIO_METRIC]);
    return MB_STATUS_OK;
}

const mb_op mb_op_rl_tile_ratio = {
    .name = "rl_tile_ratio",
    .summary = "Richardson-Lucy by tiles: measured image over blurred estimate, with the misfit.",
    .doc =
        "The step rl_ratio for a part of the image: both arrays are tiles of one shape, views of "
        "any strides.\n"
        "The I-divergence, the sum of y log(y/b) - y + b, adds up over the tiles.",
    .reference =
        "W. H. Richardson, J. Opt. Soc. Am. 62, 55 (1972); I. Csiszar, Ann. Stat. 19, 2032 "
        "(1991)",
    .category = "deconvolution",
    MB_OP_PARTS,
    .strides = MB_STRIDES_ANY,
    .tolerance = 2e-6,
    .plan = plan,
};
