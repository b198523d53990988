/*
** rl_update: the second pointwise step of a Richardson-Lucy iteration, fused: estimate * correction
** / normalizer with a lower bound, written to the estimate and, ready for the next transform, over
** the correction; on demand with sums, with the gradient that vector extrapolation needs, and only
** where a consensus is not negative.
*/
#include "ops/deconvolution/op_rl_update.h"
#include "ops/op_args.h"
#include <string.h>

#define PARAMS mb_rl_update_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("estimate", MB_BIT(MB_F32), 1, 3, "estimate on the grid, or a tile of it"),
    MB_ARRAY_INOUT(
        "correction", MB_BIT(MB_F32), 1, 3,
        "back-projected ratio, padded rows; becomes the new estimate, except for a tile"),
    MB_RL_NORMALIZER_ARRAYS,
    MB_ARRAY_IN_OPTION("consensus", MB_BIT(MB_F32), 1, 3,
                       "like correction: the estimate stays where it is negative (rl_consensus)"),
    MB_RL_NORMALIZER_ARGS,
    MB_VECTOR_OPTION(
        first, -1e12, 1e12, "px",
        "0-based position of the first element of a tile in the image; may be negative"),
    MB_FLOAT(min, 0, 1e30, 0, NULL,
             "lower bound of the estimate, and its value where nothing was measured"),
    MB_GRID_METRIC_ARGS(
        "return sums of the estimate and its change",
        "with metrics: sums of the new estimate, its squared change, and its square; with gradient "
        "also of the change times the old gradient, and of the old gradient squared"),
    MB_RL_GRADIENT_ARG};

static const char *const samples[] = {
    "{inputs = {{'f32', 4, 6, 9}, {'f32', 4, 6, 10}}, params = {metrics = true}}",
    "{inputs = {estimate = {'f32', 8, 9, 12}, correction = {'f32', 8, 9, 14}, table = {'f64', 4, "
    "5, 3}}, params = {window = {5, 6, 11}, center = {1, 2, 0}, floor = 0}}",
    "{inputs = {estimate = {'f32', 8, 9}, correction = {'f32', 8, 10}, normalizer = {'f32', 8, 9, "
    "low = 0.5}}, params = {min = 0.1, metrics = true}}",
    "{inputs = {estimate = {'f32', 8, 9}, correction = {'f32', 8, 10}, consensus = {'f32', 8, 10, "
    "low = -1}, gradient = {'f32', 8, 9, low = -1}}, params = {metrics = true}}",
    "{inputs = {{'f32', 4, 6, 9}, {'f32', 4, 6, 9}, {'f64', 4, 5, 3}}, params = {first = {-1, 3, "
    "0}, window = {5, 6, 11}, center = {1, 2, 0}, floor = 0, metrics = true}}",
    "{inputs = {{'f32', 8, 9}, {'f32', 8, 9}, {'f64', 6, 4}}, params = {first = {-2, 30}, window = "
    "{20, 40}, center = {2, 1}, min = 0.1}}",
    "{inputs = {{'f32', 17}, {'f32', 17}, {'f64', 6}}, params = {first = {5}, window = {30}, "
    "center = {4}, metrics = true}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_rl_update_params *p = params;
    const mb_shape *grid = &arrays[MB_RL_UPDATE_ESTIMATE].shape;
    const mb_spec *consensus = &arrays[MB_RL_UPDATE_CONSENSUS];
    const mb_spec *gradient = &arrays[MB_RL_UPDATE_GRADIENT];
    const bool tile = p->first.count > 0;
    mb_shape rows = *grid;
    char text[128];
    if (tile)
        MB_TRY(mb_check_axes("first", &p->first, grid->rank, false));
    MB_TRY(mb_check_whole("first", &p->first));
    if (!tile)
        rows.dims[grid->rank - 1] = mb_grid_pitch(rows.dims[grid->rank - 1]);
    if (!mb_shape_equal(&arrays[MB_RL_UPDATE_CORRECTION].shape, &rows))
        return mb_fail(MB_STATUS_SHAPE, "correction",
                       tile ? "the correction of a tile must have the shape of estimate: %s"
                            : "correction must have the padded rows of the estimate's grid, %s",
                       mb_shape_format(&rows, text, sizeof text));
    MB_TRY(mb_rl_normalizer_check(&p->normalizer, tile, grid, &arrays[MB_RL_UPDATE_TABLE],
                                  &arrays[MB_RL_UPDATE_NORMALIZER]));
    if (consensus->present && !mb_shape_equal(&consensus->shape, &rows))
        return mb_fail(MB_STATUS_SHAPE, "consensus", "consensus must have the shape of correction");
    if (gradient->present && !mb_shape_equal(&gradient->shape, grid))
        return mb_fail(MB_STATUS_SHAPE, "gradient", "gradient must have the shape of estimate");
    if (p->metrics)
        arrays[MB_RL_UPDATE_METRIC] =
            (mb_spec){true, MB_F64, {1, {mb_rl_update_sums(gradient->present)}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_rl_update_params *p = params;
    const bool gradient = arrays[MB_RL_UPDATE_GRADIENT].present;
    mb_grid_plan(planner, p->metrics ? mb_rl_update_sums(gradient) * sizeof(double) : 0);
}

/* What all rows share. */
typedef struct update_job {
    mb_grid_view estimate, correction, consensus, gradient; /* the last two: data NULL if absent */
    mb_rl_normalizer normalizer;
    float least;
    bool tile;
} update_job;

/* A row, for steps that the compiler knows where the caller does (dense). */
__attribute__((always_inline)) static inline void update_row(const update_job *job, bool dense,
                                                             int64_t row, mb_rl_update_cell *cell)
{
    const mb_rl_normalizer *n = &job->normalizer;
    const mb_rl_normalizer_row rule = mb_rl_normalizer_row_of(n, row);
    const int64_t z = row / n->grid[1], y = row % n->grid[1], count = n->grid[2];
    const bool plain = !n->values && !n->table;
    const float least = job->least;
    float *estimate = (float *)job->estimate.data + mb_grid_row(&job->estimate, z, y);
    float *correction = (float *)job->correction.data + mb_grid_row(&job->correction, z, y);
    float *gradient = job->gradient.data;
    const float *consensus = job->consensus.data;
    const int64_t e = dense ? 1 : job->estimate.step[2], c = dense ? 1 : job->correction.step[2],
                  g = dense ? 1 : job->gradient.step[2], s = dense ? 1 : job->consensus.step[2];
    if (gradient)
        gradient += mb_grid_row(&job->gradient, z, y);
    if (consensus)
        consensus += mb_grid_row(&job->consensus, z, y);
    for (int64_t x = 0; x < count; x++) {
        float old = estimate[x * e], value = old * correction[x * c];
        if (!plain) {
            double weight = mb_rl_normalizer_at(n, &rule, x);
            value = weight > n->floor ? (float)((double)value / weight) : least;
        }
        if (consensus && consensus[x * s] < 0)
            value = old;
        value = value > least ? value : least; /* and not NaN */
        float before = gradient ? gradient[x * g] : 0, change = value - old;
        estimate[x * e] = value;
        if (dense || !job->tile)
            correction[x * c] = value;
        if (gradient)
            gradient[x * g] = change;
        if (cell)
            mb_rl_update_add(cell, old, value, before, job->tile);
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_rl_update_params *p = call->params;
    const mb_array *gradient = call->arrays[MB_RL_UPDATE_GRADIENT];
    const update_job job = {mb_grid_view_of(call->arrays[MB_RL_UPDATE_ESTIMATE]),
                            mb_grid_view_of(call->arrays[MB_RL_UPDATE_CORRECTION]),
                            mb_grid_view_of(call->arrays[MB_RL_UPDATE_CONSENSUS]),
                            mb_grid_view_of(gradient),
                            mb_rl_update_normalizer(call),
                            (float)p->min,
                            p->first.count > 0};
    const bool dense = mb_rl_update_dense(call);
    double *partials = call->slots[MB_RL_UPDATE_PARTIALS];
    const int64_t rows = job.estimate.n[0] * job.estimate.n[1];
    const int sums = mb_rl_update_sums(gradient != NULL);
    int threads = rows * job.correction.n[2] < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t block = 0; block < MB_GRID_BLOCKS; block++) {
        if (mb_cancelled())
            continue;
        mb_rl_update_cell cell = {0, 0, 0, 0, 0};
        for (int64_t row = rows * block / MB_GRID_BLOCKS; row < rows * (block + 1) / MB_GRID_BLOCKS;
             row++)
            if (dense)
                update_row(&job, true, row, partials ? &cell : NULL);
            else
                update_row(&job, false, row, partials ? &cell : NULL);
        if (partials)
            memcpy(partials + block * sums, &cell, (size_t)sums * sizeof *partials);
    }
    mb_grid_fold(partials, (uint64_t)sums * sizeof *partials, call->arrays[MB_RL_UPDATE_METRIC]);
    return MB_STATUS_OK;
}

const mb_op mb_op_rl_update = {
    .name = "rl_update",
    .summary = "Richardson-Lucy: estimate times correction over normalizer, in place, with sums.",
    .doc = "The new estimate also replaces the correction, on the padded rows of the next "
           "transform.\n"
           "Without table and normalizer the normalizer is 1 (circular). With `table`, "
           "summed_area(psf), the normalizer is the back-projection of the window, by look-ups: no "
           "array of the image's size is needed. With `normalizer` it is that array (bad pixels).\n"
           "With `first`, estimate and correction are tiles of one shape, views of any strides, "
           "and correction stays as it is.\n"
           "With `gradient` the step of Biggs and Andrews needs no other array: the factor of "
           "their extrapolation is metric 4 over metric 5.",
    .reference =
        "L. B. Lucy, Astron. J. 79, 745 (1974); M. Bertero, P. Boccacci, Astron. Astrophys. 437, "
        "369 (2005); D. S. C. Biggs, M. Andrews, Appl. Opt. 36, 1766 (1997)",
    MB_OP_PLANNED_PARTS,
    .uncut = "it is a step over the grid of an iteration, at whose start the image lies",
    .strides = MB_STRIDES_ANY,
    .tolerance = 2e-6,
};
