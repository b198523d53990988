/*
** stripes_titarenko: removes stripes by the mean over the angles (Titarenko 2010).
*/
#include "ops/op_args.h"
#include "ops/stripes/op_stripes_titarenko.h"
#include <omp.h>

#define PARAMS mb_stripes_titarenko_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("sino", MB_BIT(MB_F32), 2, 3,
                "sinograms (row, angle, column), or one (angle, column)"),
    MB_FLOAT(beta, 1e-6, 1, 0.1, NULL,
             "regularization: smaller values remove wider stripes; 1 removes nothing"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "same shape; may be sino")};

static const char *const samples[] = {
    "{inputs = {{'f32', 9, 19, 41}}}", "{inputs = {{'f32', 3, 300, 70}}, params = {beta = 0.022}}",
    "{inputs = {{'f32', 7, 64}}, params = {beta = 0.5}}", "{inputs = {{'f32', 2, 1, 1}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    (void)params;
    arrays[MB_STRIPES_TITARENKO_RESULT] = arrays[MB_STRIPES_TITARENKO_SINO];
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_stripes_titarenko_params *p = params;
    const mb_shape *shape = &arrays[MB_STRIPES_TITARENKO_SINO].shape;
    int64_t columns = shape->dims[shape->rank - 1];
    mb_profile_filter f = mb_stripes_titarenko_filter(p->beta, columns);
    mb_modes_plan(planner, shape->rank == 3 ? shape->dims[0] : 1, shape->dims[shape->rank - 2],
                  columns, 1);
    mb_planner_slot(planner, "taps", mb_profile_filter_bytes(&f), 0, 0);
    mb_planner_slot(planner, "rows", mb_profile_filter_rows_bytes(&f, planner->device), 0, 0);
}

static void filter_profile(const mb_modes *m, int64_t i, const mb_profile_filter *f,
                           const float *taps, float *row)
{
    float *extended = row + mb_profile_filter_room(f), first;
    mb_modes_gather(m, m->t, i, 0, row);
    first = row[0];
    for (int64_t c = 0; c < f->columns; c++)
        row[c] -= first;
    mb_profile_filter_extend(f, row, extended);
    mb_profile_filter_run(f, extended, taps, NULL, NULL, row);
    for (int64_t c = 0; c < f->columns; c++)
        row[c] = extended[f->reach + c] - row[c];
    mb_modes_scatter(m, m->s, i, 0, row);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_stripes_titarenko_params *p = call->params;
    mb_modes m = mb_modes_of(call, 1);
    mb_profile_filter f = mb_stripes_titarenko_filter(p->beta, m.sinograms.columns);
    float *taps = call->slots[MB_STRIPES_TITARENKO_TAPS];
    float *rows = call->slots[MB_STRIPES_TITARENKO_ROWS];
    int64_t pitch = 2 * mb_profile_filter_room(&f);
    for (int64_t d = 0; d <= f.reach; d++)
        taps[d] = (float)(mb_stripes_titarenko_tap(p->beta, d) * mb_profile_tap_weight(&f, d));
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
            filter_profile(&m, i, &f, taps, rows + pitch * omp_get_thread_num());
        mb_modes_subtract(&m, first, many, false);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_stripes_titarenko = {
    .name = "stripes_titarenko",
    .summary = "Removes stripes from sinograms: the mean over the angles is regularized.",
    .doc =
        "v is the mean over the angles minus its value in the first column. With r = (1 - beta) / "
        "(1 + beta), the result is sino - (v - sum over d of beta r^|d| v[column - d]): stripes "
        "that are the same at all angles and narrower than about 1 / beta columns are removed. "
        "Columns beyond the edges are those of the other edge; an odd last column is counted "
        "twice there.\n"
        "A NaN spreads over its sinogram, and to no other. out = sino works in place.",
    .reference = "S. Titarenko, P. J. Withers, A. Yagola, An analytical formula for ring artefact "
                 "suppression in X-ray tomography, Appl. Math. Lett. 23 (2010) 1489",
    MB_OP_PLANNED_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_STRIPES_TITARENKO_SINO,
    .split = mb_stack_split,
    .tolerance = 3e-6, /* sums of another order */
};
