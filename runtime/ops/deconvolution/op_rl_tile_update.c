/*
** rl_tile_update: estimate * correction / normaliser with a lower bound, in place, for one tile,
** and on demand with sums. The normaliser comes from the PSF's summed-area table and the tile's
** position: eight look-ups, no array.
*/
#include "ops/deconvolution/op_rl_tiles.h"
#include "ops/op_args.h"
#include <math.h>

#define PARAMS mb_rl_tile_update_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("estimate", MB_BIT(MB_F32), 1, 3, "a tile of the estimate"),
    MB_ARRAY_IN("correction", MB_BIT(MB_F32), 1, 3, "the same tile of the back-projected ratio"),
    MB_ARRAY_IN("table", MB_BIT(MB_F64), 1, 3, "summed_area of the normalised PSF"),
    MB_VECTOR(first, -1e12, 1e12, "px",
              "0-based position of the tile's first element in the image; negative before it"),
    MB_RL_NORMALISER_ARGS,
    MB_FLOAT(min, 0, 1e30, 0, NULL, "lower bound of the estimate"),
    MB_GRID_METRIC_ARGS("also sum up the change",
                        "with metrics: sum of the new estimate, squared change, squared estimate"),
    {.name = NULL}};

static const char *const samples[] = {
    "{inputs = {{'f32', 4, 6, 9}, {'f32', 4, 6, 9}, {'f64', 4, 5, 3}}, params = {first = {-1, 3, "
    "0}, window = {5, 6, 11}, center = {1, 2, 0}, floor = 0, metrics = true}}",
    "{inputs = {{'f32', 8, 9}, {'f32', 8, 9}, {'f64', 6, 4}}, params = {first = {-2, 30}, window = "
    "{20, 40}, center = {2, 1}, min = 0.1}}",
    "{inputs = {{'f32', 17}, {'f32', 17}, {'f64', 6}}, params = {first = {5}, window = {30}, "
    "center "
    "= {4}, metrics = true}}",
    NULL};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_rl_tile_update_params *p = params;
    const mb_shape *tile = &arrays[MB_RL_TILE_UPDATE_ESTIMATE].shape;
    const mb_shape *table = &arrays[MB_RL_TILE_UPDATE_TABLE].shape;
    if (!mb_shape_equal(tile, &arrays[MB_RL_TILE_UPDATE_CORRECTION].shape))
        return mb_fail(MB_STATUS_SHAPE, "correction", "correction must have the shape of estimate");
    if (table->rank != tile->rank || p->first.count != tile->rank ||
        p->normaliser.window.count != tile->rank || p->normaliser.center.count != tile->rank)
        return mb_fail(MB_STATUS_ARGUMENT, "table",
                       "table has as many axes as estimate, and first, window and center have one "
                       "number for each: %d",
                       tile->rank);
    for (int i = 0; i < tile->rank; i++) {
        if (p->normaliser.center.values[i] > (double)table->dims[i] - 2)
            return mb_fail(MB_STATUS_ARGUMENT, "center",
                           "axis %d: centre %g lies outside a PSF of %lld", i + 1,
                           p->normaliser.center.values[i], (long long)table->dims[i] - 1);
        if (p->first.values[i] != floor(p->first.values[i]) ||
            p->normaliser.center.values[i] != floor(p->normaliser.center.values[i]))
            return mb_fail(MB_STATUS_ARGUMENT, "first",
                           "axis %d: first and center are whole numbers", i + 1);
    }
    if (p->metrics)
        arrays[MB_RL_TILE_UPDATE_METRIC] = (mb_spec){true, MB_F64, {1, {3}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_rl_tile_update_params *p = params;
    (void)arrays;
    mb_planner_slot(planner, "partials", p->metrics ? MB_GRID_BLOCKS * sizeof(mb_grid_change) : 0,
                    0, 0);
}

static void update_row(const mb_rl_tile_update_params *p, const mb_rl_normaliser *normaliser,
                       int64_t row, int64_t n, float *estimate, int64_t step,
                       const float *correction, int64_t correction_step, mb_grid_change *cell)
{
    const mb_rl_normaliser_row rule = mb_rl_normaliser_row_of(normaliser, row);
    float lowest = (float)p->min;
    for (int64_t x = 0; x < n; x++) {
        float old = estimate[x * step], value = old * correction[x * correction_step];
        double weight = mb_rl_normaliser_at(normaliser, &rule, x);
        value = weight > normaliser->floor ? (float)((double)value / weight) : lowest;
        value = value > lowest ? value : lowest; /* and not NaN */
        estimate[x * step] = value;
        if (cell)
            mb_grid_change_add(cell, old, value);
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_rl_tile_update_params *p = call->params;
    const mb_array *estimate = call->arrays[MB_RL_TILE_UPDATE_ESTIMATE];
    const mb_array *correction = call->arrays[MB_RL_TILE_UPDATE_CORRECTION];
    mb_grid_change *partials = call->slots[0];
    const mb_rl_view to = mb_rl_view_of(estimate), from = mb_rl_view_of(correction);
    const mb_rl_normaliser normaliser =
        mb_rl_tile_normaliser(p, &estimate->shape, call->arrays[MB_RL_TILE_UPDATE_TABLE]);
    const int64_t rows = to.n[0] * to.n[1];
    int threads = rows * to.n[2] < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t block = 0; block < MB_GRID_BLOCKS; block++) {
        if (mb_cancelled())
            continue;
        mb_grid_change cell = {0, 0, 0};
        for (int64_t row = rows * block / MB_GRID_BLOCKS; row < rows * (block + 1) / MB_GRID_BLOCKS;
             row++) {
            int64_t z = row / to.n[1], y = row % to.n[1];
            update_row(p, &normaliser, row, to.n[2],
                       (float *)estimate->data + z * to.stride[0] + y * to.stride[1], to.stride[2],
                       (const float *)correction->data + z * from.stride[0] + y * from.stride[1],
                       from.stride[2], partials ? &cell : NULL);
        }
        if (partials)
            partials[block] = cell;
    }
    mb_grid_fold(partials, sizeof *partials, call->arrays[MB_RL_TILE_UPDATE_METRIC]);
    return MB_STATUS_OK;
}

const mb_op mb_op_rl_tile_update = {
    .name = "rl_tile_update",
    .summary = "Richardson-Lucy by tiles: estimate times correction over normaliser, with sums.",
    .doc =
        "The step rl_update for a part of the estimate: estimate and correction are tiles of one "
        "shape, views of any strides, at `first` in the coordinates of the image.\n"
        "The normaliser is the back-projection of the window, the image, by look-ups in "
        "summed_area(psf).",
    .reference =
        "L. B. Lucy, Astron. J. 79, 745 (1974); M. Bertero, P. Boccacci, Astron. Astrophys. "
        "437, 369 (2005)",
    .category = "deconvolution",
    MB_OP_PARTS,
    .strides = MB_STRIDES_ANY,
    .tolerance = 2e-6,
    .plan = plan,
};
