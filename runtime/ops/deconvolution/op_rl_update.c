/*
** rl_update: the second pointwise step of a Richardson-Lucy iteration, fused: estimate * correction
** / normaliser with a lower bound, written to the estimate and, ready for the next transform, over
** the correction; on demand with sums, with the gradient that vector extrapolation needs, and only
** where a consensus is not negative.
*/
#include "ops/deconvolution/op_rl_update.h"
#include "ops/op_args.h"

#define PARAMS mb_rl_update_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("estimate", MB_BIT(MB_F32), 1, 3, "estimate on the grid"),
    MB_ARRAY_INOUT("correction", MB_BIT(MB_F32), 1, 3,
                   "back-projected ratio, padded rows; becomes the new estimate"),
    MB_RL_NORMALISER_ARRAYS,
    MB_ARRAY_IN_OPTION("consensus", MB_BIT(MB_F32), 1, 3,
                       "padded rows: where it is negative the estimate stays (rl_consensus)"),
    MB_RL_NORMALISER_ARGS,
    MB_FLOAT(min, 0, 1e30, 0, NULL,
             "lower bound of the estimate, and what it becomes where nothing was measured"),
    MB_GRID_METRIC_ARGS(
        "also sum up the change",
        "with metrics: sum of the new estimate, squared change, squared estimate; with gradient "
        "also its product with the change, and its square, before it is replaced"),
    MB_ARRAY_INOUT_OPTION("gradient", MB_BIT(MB_F32), 1, 3,
                          "like estimate: the change of the call before; becomes that of this one"),
    {.name = NULL}};

static const char *const samples[] = {
    "{inputs = {{'f32', 4, 6, 9}, {'f32', 4, 6, 10}}, params = {metrics = true}}",
    "{inputs = {estimate = {'f32', 8, 9, 12}, correction = {'f32', 8, 9, 14}, table = {'f64', 4, "
    "5, 3}}, params = {window = {5, 6, 11}, center = {1, 2, 0}, floor = 0}}",
    "{inputs = {estimate = {'f32', 8, 9}, correction = {'f32', 8, 10}, normaliser = {'f32', 8, 9, "
    "low = 0.5}}, params = {min = 0.1, metrics = true}}",
    "{inputs = {estimate = {'f32', 8, 9}, correction = {'f32', 8, 10}, consensus = {'f32', 8, 10, "
    "low = -1}, gradient = {'f32', 8, 9, low = -1}}, params = {metrics = true}}",
    NULL};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_rl_update_params *p = params;
    const mb_shape *grid = &arrays[MB_RL_UPDATE_ESTIMATE].shape;
    const mb_spec *consensus = &arrays[MB_RL_UPDATE_CONSENSUS];
    const mb_spec *gradient = &arrays[MB_RL_UPDATE_GRADIENT];
    mb_shape padded = *grid;
    char text[128];
    padded.dims[grid->rank - 1] = mb_grid_pitch(padded.dims[grid->rank - 1]);
    if (!mb_shape_equal(&arrays[MB_RL_UPDATE_CORRECTION].shape, &padded))
        return mb_fail(MB_STATUS_SHAPE, "correction", "padded rows of the estimate's grid are %s",
                       mb_shape_format(&padded, text, sizeof text));
    MB_TRY(mb_rl_normaliser_check(&p->normaliser, grid, &arrays[MB_RL_UPDATE_TABLE],
                                  &arrays[MB_RL_UPDATE_NORMALISER]));
    if (consensus->present && !mb_shape_equal(&consensus->shape, &padded))
        return mb_fail(MB_STATUS_SHAPE, "consensus", "consensus must be padded rows: %s",
                       mb_shape_format(&padded, text, sizeof text));
    if (gradient->present && !mb_shape_equal(&gradient->shape, grid))
        return mb_fail(MB_STATUS_SHAPE, "gradient", "gradient must have the shape of estimate");
    if (p->metrics)
        arrays[MB_RL_UPDATE_METRIC] = (mb_spec){true, MB_F64, {1, {gradient->present ? 5 : 3}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_rl_update_params *p = params;
    (void)arrays;
    mb_planner_slot(planner, "partials",
                    p->metrics ? MB_GRID_BLOCKS * sizeof(mb_rl_update_cell) : 0, 0, 0);
}

/* Rows as they lie in memory; NULL where there is none. */
typedef struct update_rows {
    float *estimate, *correction, *gradient;
    const float *consensus;
} update_rows;

static void update_row(const mb_rl_normaliser *n, const mb_rl_normaliser_row *row, float least,
                       int64_t count, update_rows r, mb_rl_update_cell *cell)
{
    bool plain = !row->values && !n->table;
    for (int64_t x = 0; x < count; x++) {
        float old = r.estimate[x], value = old * r.correction[x];
        if (!plain) {
            double weight = mb_rl_normaliser_at(n, row, x);
            value = weight > n->floor ? (float)((double)value / weight) : least;
        }
        if (r.consensus && r.consensus[x] < 0)
            value = old;
        value = value > least ? value : least; /* and not NaN */
        float before = r.gradient ? r.gradient[x] : 0, change = value - old;
        r.estimate[x] = r.correction[x] = value;
        if (r.gradient)
            r.gradient[x] = change;
        if (cell) {
            double d = (double)change, g = (double)before;
            cell->sum += (double)value;
            cell->change += d * d;
            cell->squares += (double)value * (double)value;
            cell->product += d * g;
            cell->before += g * g;
        }
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_rl_update_params *p = call->params;
    const mb_array *estimate = call->arrays[MB_RL_UPDATE_ESTIMATE];
    const mb_array *consensus = call->arrays[MB_RL_UPDATE_CONSENSUS];
    const mb_array *gradient = call->arrays[MB_RL_UPDATE_GRADIENT];
    float *correction = call->arrays[MB_RL_UPDATE_CORRECTION]->data;
    mb_rl_update_cell *partials = call->slots[MB_RL_UPDATE_PARTIALS];
    const mb_rl_normaliser n =
        mb_rl_normaliser_make(&p->normaliser, &estimate->shape, call->arrays[MB_RL_UPDATE_TABLE],
                              call->arrays[MB_RL_UPDATE_NORMALISER]);
    int64_t rows = n.grid[0] * n.grid[1], nx = n.grid[2], pitch = mb_grid_pitch(nx);
    int threads = rows * pitch < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t block = 0; block < MB_GRID_BLOCKS; block++) {
        if (mb_cancelled())
            continue;
        mb_rl_update_cell cell = {0, 0, 0, 0, 0};
        for (int64_t row = rows * block / MB_GRID_BLOCKS; row < rows * (block + 1) / MB_GRID_BLOCKS;
             row++) {
            mb_rl_normaliser_row rule = mb_rl_normaliser_row_of(&n, row);
            update_rows r = {(float *)estimate->data + row * nx, correction + row * pitch,
                             gradient ? (float *)gradient->data + row * nx : NULL,
                             consensus ? (const float *)consensus->data + row * pitch : NULL};
            update_row(&n, &rule, (float)p->min, nx, r, partials ? &cell : NULL);
        }
        if (partials)
            partials[block] = cell;
    }
    mb_grid_fold(partials, sizeof *partials, call->arrays[MB_RL_UPDATE_METRIC]);
    return MB_STATUS_OK;
}

const mb_op mb_op_rl_update = {
    .name = "rl_update",
    .summary = "Richardson-Lucy: estimate times correction over normaliser, in place, with sums.",
    .doc = "The new estimate also replaces the correction, on the padded rows of the next "
           "transform.\n"
           "Without table and normaliser the normaliser is 1 (circular). With `table`, "
           "summed_area(psf), it is the back-projection of the window, by look-ups: no array of "
           "the image's size. With `normaliser` it is that array (bad pixels).\n"
           "With `gradient` the step of Biggs and Andrews needs no array but that: the factor of "
           "their extrapolation is metric 4 over metric 5.",
    .reference =
        "L. B. Lucy, Astron. J. 79, 745 (1974); M. Bertero, P. Boccacci, Astron. Astrophys. "
        "437, 369 (2005); D. S. C. Biggs, M. Andrews, Appl. Opt. 36, 1766 (1997)",
    .category = "deconvolution",
    MB_OP_PARTS,
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 2e-6,
    .plan = plan,
};
