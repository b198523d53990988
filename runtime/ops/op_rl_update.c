/*
** rl_update: the second pointwise step of a Richardson-Lucy iteration, fused: estimate * correction / normaliser with a
** lower bound, written to the estimate and, ready for the next transform, over the correction; on demand with sums.
*/
#include "ops/op_rl_update.h"
#include <math.h>

#define MEMBER(name) offsetof(mb_rl_update_params, name)
static const mb_op_arg args[] = {
    {.name = "estimate",
     .kind = MB_ARG_INOUT,
     .required = true,
     .dtypes = MB_BIT(MB_F32),
     .rank_min = 1,
     .rank_max = 3,
     .doc = "estimate on the grid"},
    {.name = "correction",
     .kind = MB_ARG_INOUT,
     .required = true,
     .dtypes = MB_BIT(MB_F32),
     .rank_min = 1,
     .rank_max = 3,
     .doc = "back-projected ratio, padded rows; becomes the new estimate"},
    {.name = "table",
     .kind = MB_ARG_IN,
     .dtypes = MB_BIT(MB_F64),
     .rank_min = 1,
     .rank_max = 3,
     .doc = "summed_area of the normalised PSF: normalises by it"},
    {.name = "normaliser",
     .kind = MB_ARG_IN,
     .dtypes = MB_BIT(MB_F32),
     .rank_min = 1,
     .rank_max = 3,
     .doc = "back-projected weights on the grid: normalises by them"},
    {.name = "window",
     .kind = MB_ARG_VECTOR,
     .min = 1,
     .max = 1e12,
     .offset = MEMBER(window),
     .unit = "px",
     .doc = "with table: extents of the image, which stands at the origin of the grid"},
    {.name = "center",
     .kind = MB_ARG_VECTOR,
     .min = 0,
     .max = 1e12,
     .offset = MEMBER(center),
     .unit = "px",
     .doc = "with table: 0-based origin of the PSF, whole numbers"},
    {.name = "floor",
     .kind = MB_ARG_FLOAT,
     .initial = 1e-3,
     .min = 0,
     .max = 1e30,
     .offset = MEMBER(floor),
     .doc = "where the normaliser is at most this the estimate becomes min: nothing was measured"},
    {.name = "min",
     .kind = MB_ARG_FLOAT,
     .initial = 0,
     .min = 0,
     .max = 1e30,
     .offset = MEMBER(min),
     .doc = "lower bound of the estimate"},
    {.name = "metrics",
     .kind = MB_ARG_BOOL,
     .offset = MEMBER(metrics),
     .doc = "also sum up the change"},
    {.name = "metric",
     .kind = MB_ARG_OUT,
     .dtypes = MB_BIT(MB_F64),
     .rank_min = 1,
     .rank_max = 1,
     .doc = "with metrics: sum of the new estimate, squared change, squared estimate"},
    {.name = NULL}};

static const char *const samples[] = {
    "{inputs = {{'f32', 4, 6, 9}, {'f32', 4, 6, 10}}, params = {metrics = true}}",
    "{inputs = {estimate = {'f32', 8, 9, 12}, correction = {'f32', 8, 9, 14}, table = {'f64', 4, "
    "5, "
    "3}}, params = {window = {5, 6, 11}, center = {1, 2, 0}, floor = 0}}",
    "{inputs = {estimate = {'f32', 8, 9}, correction = {'f32', 8, 10}, normaliser = {'f32', 8, 9, "
    "low = 0.5}}, params = {min = 0.1, metrics = true}}",
    NULL};

static mb_status check_table(const mb_rl_update_params *p, const mb_shape *grid,
                             const mb_shape *table)
{
    if (table->rank != grid->rank || p->window.count != grid->rank || p->center.count != grid->rank)
        return mb_fail(MB_STATUS_ARGUMENT, "table",
                       "with a table, window and center have one number per axis of the estimate, "
                       "%d, as the table has axes",
                       grid->rank);
    for (int i = 0; i < grid->rank; i++) {
        double extent = (double)table->dims[i] - 1, window = p->window.values[i];
        if (p->center.values[i] >= extent)
            return mb_fail(MB_STATUS_ARGUMENT, "center",
                           "axis %d: centre %g lies outside a PSF of %g", i + 1,
                           p->center.values[i], extent);
        if (window + extent - 1 > (double)grid->dims[i])
            return mb_fail(MB_STATUS_SHAPE, "estimate",
                           "axis %d: a window of %g and a PSF of %g need a grid of %g, not %lld",
                           i + 1, window, extent, window + extent - 1, (long long)grid->dims[i]);
    }
    return MB_STATUS_OK;
}

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_rl_update_params *p = params;
    const mb_shape *grid = &arrays[MB_RL_UPDATE_ESTIMATE].shape;
    mb_shape padded = *grid;
    char text[128];
    padded.dims[grid->rank - 1] = mb_grid_pitch(padded.dims[grid->rank - 1]);
    if (!mb_shape_equal(&arrays[MB_RL_UPDATE_CORRECTION].shape, &padded))
        return mb_fail(MB_STATUS_SHAPE, "correction", "padded rows of the estimate's grid are %s",
                       mb_shape_format(&padded, text, sizeof text));
    if (arrays[MB_RL_UPDATE_TABLE].present && arrays[MB_RL_UPDATE_NORMALISER].present)
        return mb_fail(MB_STATUS_ARGUMENT, "normaliser", "give table or normaliser, not both");
    if (arrays[MB_RL_UPDATE_TABLE].present)
        MB_TRY(check_table(p, grid, &arrays[MB_RL_UPDATE_TABLE].shape));
    if (arrays[MB_RL_UPDATE_NORMALISER].present &&
        !mb_shape_equal(&arrays[MB_RL_UPDATE_NORMALISER].shape, grid))
        return mb_fail(MB_STATUS_SHAPE, "normaliser", "normaliser must have the shape of estimate");
    if (p->metrics)
        arrays[MB_RL_UPDATE_METRIC] = (mb_spec){true, MB_F64, {1, {3}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_rl_update_params *p = params;
    (void)arrays;
    mb_planner_slot(planner, "partials",
                    p->metrics ? MB_GRID_BLOCKS * sizeof(mb_rl_update_cell) : 0, 0, 0);
}

/* What a row's normaliser is made from: none of them (it is 1), an array's row, or up to four lines of the table. */
typedef struct row_rule {
    const float *normaliser;
    const double *lines[4];
    double signs[4];
    int count;
    int64_t P, N, K, c; /* of the last axis */
} row_rule;

/* The lines of the table that matter in grid row (z, y). A missing axis has a single line with sign 1. */
static row_rule table_rule(const mb_array *table, const int64_t grid[3], const int64_t window[3],
                           const int64_t center[3], int64_t z, int64_t y)
{
    const double *data = table->data;
    int rank = table->shape.rank;
    int64_t dims[3], at[2][2], position[2] = {z, y};
    mb_grid_dims(&table->shape, dims);
    row_rule rule = {.P = grid[2], .N = window[2], .K = dims[2] - 1, .c = center[2]};
    for (int i = 0; i < 2; i++) {
        bool own = i >= 3 - rank;
        at[i][0] = -1;
        at[i][1] = 0;
        if (own)
            mb_rl_update_range(position[i], grid[i], window[i], dims[i] - 1, center[i], &at[i][0],
                               &at[i][1]);
    }
    for (int i = 0; i < 4; i++) {
        int64_t a = at[0][i & 1], b = at[1][i >> 1];
        if (a < 0 || b < 0)
            continue;
        rule.lines[rule.count] = data + (a * dims[1] + b) * dims[2];
        rule.signs[rule.count++] = (i & 1) == i >> 1 ? 1 : -1;
    }
    return rule;
}

/* With one axis missing the sign of the only line there must be +1: i & 1 = 1 is "high". */
static double normaliser_at(const row_rule *rule, int64_t x)
{
    int64_t low, high;
    double value = 0;
    if (rule->normaliser)
        return (double)rule->normaliser[x];
    if (rule->count == 0)
        return 1;
    mb_rl_update_range(x, rule->P, rule->N, rule->K, rule->c, &low, &high);
    for (int i = 0; i < rule->count; i++)
        value += rule->signs[i] * (rule->lines[i][high] - rule->lines[i][low]);
    return value;
}

static void update_row(const mb_rl_update_params *p, const row_rule *rule, int64_t n,
                       float *estimate, float *correction, mb_rl_update_cell *cell)
{
    bool plain = rule->normaliser == NULL && rule->count == 0;
    float least = (float)p->min;
    for (int64_t x = 0; x < n; x++) {
        float old = estimate[x], value = old * correction[x];
        if (!plain) {
            double weight = normaliser_at(rule, x);
            value = weight > p->floor ? (float)((double)value / weight) : least;
        }
        value = value > least ? value : least; /* and not NaN */
        estimate[x] = correction[x] = value;
        if (cell) {
            double change = (double)value - (double)old;
            cell->sum += (double)value;
            cell->change += change * change;
            cell->squares += (double)value * (double)value;
        }
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_rl_update_params *p = call->params;
    const mb_array *estimate = call->arrays[MB_RL_UPDATE_ESTIMATE];
    const mb_array *table = call->arrays[MB_RL_UPDATE_TABLE];
    const mb_array *normaliser = call->arrays[MB_RL_UPDATE_NORMALISER];
    float *correction = call->arrays[MB_RL_UPDATE_CORRECTION]->data;
    mb_rl_update_cell *partials = call->slots[MB_RL_UPDATE_PARTIALS];
    int64_t g[3], window[3], center[3];
    mb_grid_dims(&estimate->shape, g);
    mb_grid_vector(&p->window, 1, window);
    mb_grid_vector(&p->center, 0, center);
    int64_t rows = g[0] * g[1], pitch = mb_grid_pitch(g[2]);
    int threads = rows * pitch < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t block = 0; block < MB_GRID_BLOCKS; block++) {
        mb_rl_update_cell cell = {0, 0, 0};
        for (int64_t row = rows * block / MB_GRID_BLOCKS; row < rows * (block + 1) / MB_GRID_BLOCKS;
             row++) {
            row_rule rule = {.count = 0};
            if (table)
                rule = table_rule(table, g, window, center, row / g[1], row % g[1]);
            if (normaliser)
                rule.normaliser = (const float *)normaliser->data + row * g[2];
            update_row(p, &rule, g[2], (float *)estimate->data + row * g[2],
                       correction + row * pitch, partials ? &cell : NULL);
        }
        if (partials)
            partials[block] = cell;
    }
    if (partials) {
        double *metric = call->arrays[MB_RL_UPDATE_METRIC]->data;
        metric[0] = metric[1] = metric[2] = 0;
        for (int i = 0; i < MB_GRID_BLOCKS; i++) {
            metric[0] += partials[i].sum;
            metric[1] += partials[i].change;
            metric[2] += partials[i].squares;
        }
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_rl_update = {
    .name = "rl_update",
    .summary = "Richardson-Lucy: estimate times correction over normaliser, in place, with sums.",
    .doc = "The new estimate also replaces the correction, on the padded rows of the next "
           "transform.\n"
           "Without table and normaliser the normaliser is 1 (circular). With `table`, "
           "summed_area(psf), it is the back-projection of the window, by look-ups: no array of "
           "the image's size. With `normaliser` it is that array (bad pixels).",
    .reference =
        "L. B. Lucy, Astron. J. 79, 745 (1974); M. Bertero, P. Boccacci, Astron. Astrophys. "
        "437, 369 (2005)",
    .category = "deconvolution",
    .args = args,
    .params_bytes = sizeof(mb_rl_update_params),
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 2e-6,
    .samples = samples,
    .infer = infer,
    .plan = plan,
    .run_host = run_host,
};
