/*
** stripes_mean: removes stripes by the mean over the angles, on the host.
*/
#include "ops/op_args.h"
#include "ops/stripes/op_stripes_mean.h"
#include <omp.h>

#define PARAMS mb_stripes_mean_params

static const char *const modes[] = {"subtract", "divide", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("sino", MB_BIT(MB_F32), 2, 3,
                "sinograms (row, angle, column), or one (angle, column)"),
    MB_ENUM(mode, modes, MB_STRIPES_MEAN_SUBTRACT, "what is done with the filtered mean"),
    MB_FLOAT(low_sigma, 0, 1e6, 0, "px",
             "standard deviation of a Gaussian that smooths the mean; 0: it is not smoothed"),
    MB_FLOAT(high_sigma, 0, 1e6, 30, "px",
             "what a Gaussian of this standard deviation keeps of the mean is no stripe; 0: all of "
             "the mean is one"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "same shape; may be sino")};

static const char *const samples[] = {
    "{inputs = {{'f32', 9, 19, 41}}, params = {high_sigma = 4}}",
    "{inputs = {{'f32', 3, 300, 70}}, params = {low_sigma = 0.7, high_sigma = 5}}",
    "{inputs = {{'f32', 7, 64}}, params = {mode = 'divide', high_sigma = 0, low_sigma = 2}}",
    "{inputs = {{'f32', 2, 1, 1}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_stripes_mean_params *p = params;
    if (p->mode == MB_STRIPES_MEAN_DIVIDE && p->high_sigma > 0)
        return mb_fail(
            MB_STATUS_ARGUMENT, "high_sigma",
            "high_sigma is %g, which leaves values about 0 to divide by; give high_sigma "
            "= 0, or mode = \"subtract\"",
            p->high_sigma);
    arrays[MB_STRIPES_MEAN_RESULT] = arrays[MB_STRIPES_MEAN_SINO];
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_shape *shape = &arrays[MB_STRIPES_MEAN_SINO].shape;
    int64_t columns = shape->dims[shape->rank - 1];
    mb_profile_filter f = mb_stripes_mean_filter(params, columns);
    mb_modes_plan(planner, shape->rank == 3 ? shape->dims[0] : 1, shape->dims[shape->rank - 2],
                  columns, 1);
    mb_planner_slot(planner, "taps", mb_profile_filter_bytes(&f), 0, 0);
    mb_planner_slot(planner, "rows", mb_profile_filter_rows_bytes(&f, planner->device), 0, 0);
}

static void filter_profile(const mb_modes *m, int64_t i, const mb_profile_filter *f,
                           const mb_profile_recipe *recipe, const float *taps, float *row)
{
    float *extended = row + mb_profile_filter_room(f);
    mb_modes_gather(m, m->t, i, 0, row);
    mb_profile_filter_extend(f, row, extended);
    if (recipe->taps != 0)
        mb_profile_filter_run(f, extended, taps, NULL, NULL, row);
    for (int64_t c = 0; c < f->columns; c++)
        row[c] =
            recipe->own * extended[f->reach + c] + (recipe->taps != 0 ? recipe->taps * row[c] : 0);
    mb_modes_scatter(m, m->s, i, 0, row);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_stripes_mean_params *p = call->params;
    mb_modes m = mb_modes_of(call, 1);
    mb_profile_filter f = mb_stripes_mean_filter(p, m.sinograms.columns);
    mb_profile_recipe recipe = mb_stripes_mean_recipe(p);
    float *taps = call->slots[MB_STRIPES_MEAN_TAPS], *rows = call->slots[MB_STRIPES_MEAN_ROWS];
    int64_t pitch = 2 * mb_profile_filter_room(&f);
#pragma omp parallel for num_threads(m.threads)
    for (int64_t d = 0; d <= f.reach; d++)
        taps[d] = (float)mb_stripes_mean_tap(p, &f, d);
    for (int64_t a = 0; a < m.sinograms.angles; a++) {
        *mb_modes_p(&m, 0, a) = (float)(1.0 / (double)m.sinograms.angles);
        *mb_modes_q(&m, a, 0) = 1;
    }
    for (int64_t first = 0; first < m.sinograms.count; first += MB_MODES_HOST_GROUP) {
        int64_t left = m.sinograms.count - first;
        int64_t many = left < MB_MODES_HOST_GROUP ? left : MB_MODES_HOST_GROUP;
        mb_modes_project(&m, first, many);
#pragma omp parallel for num_threads(m.threads)
        for (int64_t i = 0; i < many; i++)
            filter_profile(&m, i, &f, &recipe, taps, rows + pitch * omp_get_thread_num());
        mb_modes_subtract(&m, first, many, p->mode == MB_STRIPES_MEAN_DIVIDE);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_stripes_mean = {
    .name = "stripes_mean",
    .summary = "Removes stripes from sinograms: subtracts the filtered mean over the angles, or "
               "divides by it.",
    .doc =
        "The mean over the angles is multiplied in Fourier space by exp(-2 pi^2 low_sigma^2 f^2) "
        "(1 - exp(-2 pi^2 high_sigma^2 f^2)), f in cycles per column, after it was padded with "
        "its edge values to at least twice the columns. Without high_sigma the mean of the "
        "object goes, too. To divide, high_sigma must be 0.\n"
        "A NaN spreads over its sinogram, and to no other. out = sino works in place.",
    .reference = "x - f(mean of x), or x / f(mean of x)",
    MB_OP_PLANNED_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_STRIPES_MEAN_SINO,
    .split = mb_stack_split,
    .tolerance = 3e-6, /* sums of another order */
};
