/*
** rl_split_ratio: the first pointwise step of an iteration with gradient consensus, fused: the
** photons of the image are dealt out into two halves at random, and each half over half the blurred
** estimate is what Richardson-Lucy would back-project of it. The blurred estimate becomes the first
** ratio; the halves are never stored.
*/
#include "ops/deconvolution/op_rl_split_ratio.h"
#include "ops/op_args.h"
#include "core/multiversion.h"
#include <string.h>

#define PARAMS mb_rl_split_ratio_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT(
        "blurred", MB_BIT(MB_F32), 1, 3,
        "blurred estimate on the grid, padded rows; becomes the ratio of the first half"),
    MB_ARRAY_INOUT("second", MB_BIT(MB_F32), 1, 3,
                   "like blurred; is overwritten by the ratio of the second half"),
    MB_GRID_IMAGE_ARG("measured counts of photons"),
    MB_GRID_WEIGHTS_ARG("the ratios"),
    MB_INT(seed, 0, 4503599627370496.0, 0, NULL, "the same seed gives the same halves"),
    MB_FLOAT(eps, 1e-38, 1e38, 1e-12, NULL, "least value of blurred to divide by"),
    MB_GRID_BACKGROUND_ARG,
    MB_ARRAY_OUT("metric", MB_BIT(MB_F64), 1, 1,
                 "I-divergence of the first and the second half from half of blurred")};

static const char *const samples[] = {
    "{inputs = {{'f32', 4, 6, 10, low = 0.5}, {'f32', 4, 6, 10}, {'f32', 3, 5, 7, high = 300}}, "
    "params = {seed = 3}}",
    "{inputs = {{'f32', 6, 10, low = 0.5}, {'f32', 6, 10}, {'u16', 5, 9}, {'f32', 5, 9}}, params = "
    "{eps = 0.6}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    (void)params;
    if (!mb_shape_equal(&arrays[MB_RL_SPLIT_RATIO_BLURRED].shape,
                        &arrays[MB_RL_SPLIT_RATIO_SECOND].shape))
        return mb_fail(MB_STATUS_SHAPE, "second", "second must have the shape of blurred");
    MB_TRY(mb_grid_check_image(&arrays[MB_RL_SPLIT_RATIO_BLURRED].shape,
                               &arrays[MB_RL_SPLIT_RATIO_IMAGE],
                               &arrays[MB_RL_SPLIT_RATIO_WEIGHTS]));
    arrays[MB_RL_SPLIT_RATIO_METRIC] = (mb_spec){true, MB_F64, {1, {2}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    (void)params, (void)arrays;
    mb_grid_plan(planner, sizeof(mb_rl_split_ratio_cell));
}

static inline double sample(mb_dtype dtype, const void *image, int64_t i)
{
    switch (dtype) {
    case MB_U8: return ((const uint8_t *)image)[i];
    case MB_U16: return ((const uint16_t *)image)[i];
    default: return (double)mb_grid_counts(((const float *)image)[i]);
    }
}

/* Row of the image that begins at element `at`. */
MB_MULTIVERSION
static void split_row(mb_dtype dtype, const void *image, int64_t at, const float *weights,
                      int64_t n, uint64_t key, float eps, float under, float *first, float *second,
                      mb_rl_split_ratio_cell *cell)
{
    for (int64_t x = 0; x < n; x++) {
        double y = sample(dtype, image, at + x), w = weights ? (double)weights[at + x] : 1;
        float value = first[x] + under;
        double b = (double)(value > eps ? value : eps) / 2;
        double half = mb_rl_split_half(y, key, at + x);
        first[x] = (float)(w * half / b);
        second[x] = (float)(w * (y - half) / b);
        cell->first += w * mb_grid_divergence(half, b);
        cell->second += w * mb_grid_divergence(y - half, b);
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_rl_split_ratio_params *p = call->params;
    const mb_array *grid = call->arrays[MB_RL_SPLIT_RATIO_BLURRED];
    const mb_array *image = call->arrays[MB_RL_SPLIT_RATIO_IMAGE];
    const mb_array *weights = call->arrays[MB_RL_SPLIT_RATIO_WEIGHTS];
    float *first = grid->data, *second = call->arrays[MB_RL_SPLIT_RATIO_SECOND]->data;
    mb_rl_split_ratio_cell *partials = call->slots[MB_RL_SPLIT_RATIO_PARTIALS];
    uint64_t key = mb_poisson_mix((uint64_t)p->seed);
    int64_t g[3], n[3];
    mb_grid_dims(&grid->shape, g);
    mb_grid_dims(&image->shape, n);
    int64_t rows = g[0] * g[1];
    int threads = rows * g[2] < 8192 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(dynamic, 8) num_threads(threads)
    for (int64_t block = 0; block < MB_GRID_BLOCKS; block++) {
        if (mb_cancelled())
            continue;
        mb_rl_split_ratio_cell cell = {0, 0};
        for (int64_t row = rows * block / MB_GRID_BLOCKS; row < rows * (block + 1) / MB_GRID_BLOCKS;
             row++) {
            int64_t z = row / g[1], y = row % g[1], taken = z < n[0] && y < n[1] ? n[2] : 0;
            float *a = first + row * g[2], *b = second + row * g[2];
            if (taken)
                split_row(image->dtype, image->data, (z * n[1] + y) * n[2],
                          weights ? weights->data : NULL, n[2], key, (float)p->eps,
                          (float)p->background, a, b, &cell);
            memset(a + taken, 0, (size_t)(g[2] - taken) * sizeof *a);
            memset(b + taken, 0, (size_t)(g[2] - taken) * sizeof *b);
        }
        partials[block] = cell;
    }
    mb_grid_fold(partials, sizeof *partials, call->arrays[MB_RL_SPLIT_RATIO_METRIC]);
    return MB_STATUS_OK;
}

const mb_op mb_op_rl_split_ratio = {
    .name = "rl_split_ratio",
    .summary =
        "Gradient consensus: the image's photons in two random halves, over half of blurred.",
    .doc =
        "Every photon falls into either half with probability 1/2. Both halves are images of "
        "the same object with independent noise: a change that both require is signal. The "
        "ratios are 0 outside the image, as in rl_ratio. Values of the image below 0 count as 0.\n"
        "The image must be counts of photons: subtract the offset and divide by the gain first.",
    .reference = "J. Manton, A. York, gradient consensus, doi:10.5281/zenodo.10278919 (2023)",
    MB_OP_PLANNED_PARTS,
    .uncut = "it is a step over the grid of an iteration, at whose start the image lies",
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 2e-6,
};
