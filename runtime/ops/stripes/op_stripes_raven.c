/*
** stripes_raven: removes stripes in Fourier space (Raven 1998), on the host.
*/
#include "ops/op_args.h"
#include "ops/stripes/op_stripes_raven.h"
#include <omp.h>

#define PARAMS mb_stripes_raven_params

static const char *const paddings[] = {"none", "edge", "mean", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("sino", MB_BIT(MB_F32), 2, 3,
                "sinograms (row, angle, column), or one (angle, column)"),
    MB_FLOAT(cutoff, 1e-3, 1e6, 20, "cycles",
             "frequency along the columns above which is removed (u): smaller values remove wider "
             "stripes"),
    MB_INT(order, 1, 64, 4, NULL, "order of the Butterworth filter (n)"),
    MB_INT(rows, 0, MB_RAVEN_MOST_ROWS, 2, "cycles",
           "greatest frequency along the angles that is filtered (v)"),
    MB_ENUM(padding, paddings, MB_RAVEN_PAD_EDGE,
            "how angles are padded; columns are padded with edge values, unless it is none"),
    MB_INT(pad, 0, 1 << 20, 20, "px",
           "width of the padding on each side; 0: a tenth of the smaller extent, at most 150"),
    MB_INT(origin, 0, 1, 0, "cycles",
           "1: filters are centered one frequency off where an extent is even"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "same shape; may be sino")};

static const char *const samples[] = {
    "{inputs = {{'f32', 9, 20, 41}}, params = {cutoff = 5, pad = 3}}",
    "{inputs = {{'f32', 3, 300, 70}}, params = {origin = 1}}",
    "{inputs = {{'f32', 31, 64}}, params = {order = 8, rows = 1, padding = 'mean', pad = 0}}",
    "{inputs = {{'f32', 2, 30, 29}}, params = {rows = 7, padding = 'none', origin = 1}}",
    "{inputs = {{'f32', 2, 1, 1}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    (void)params;
    arrays[MB_STRIPES_RAVEN_RESULT] = arrays[MB_STRIPES_RAVEN_SINO];
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_shape *shape = &arrays[MB_STRIPES_RAVEN_SINO].shape;
    int64_t angles = shape->dims[shape->rank - 2], columns = shape->dims[shape->rank - 1];
    mb_raven_plan r = mb_raven_plan_make(params, angles, columns);
    mb_modes_plan(planner, shape->rank == 3 ? shape->dims[0] : 1, angles, columns, r.modes);
    mb_planner_slot(planner, "taps", mb_profile_filter_bytes(&r.filter), 0, 0);
    mb_planner_slot(planner, "rows",
                    mb_bytes_mul(2, mb_profile_filter_rows_bytes(&r.filter, planner->device)), 0,
                    0);
}

static void filter_profile(const mb_modes *m, int64_t i, const mb_raven_plan *r, int64_t mode,
                           const float *taps, float *rows)
{
    mb_profile_recipe recipe = mb_raven_recipe(r, mode);
    const mb_profile_filter *f = &r->filter;
    int64_t room = mb_profile_filter_room(f);
    float *own = rows + room, *other = NULL;
    mb_modes_gather(m, m->t, i, mode, rows);
    mb_profile_filter_extend(f, rows, own);
    if (recipe.odd != 0) {
        other = rows + 2 * room;
        mb_modes_gather(m, m->t, i, recipe.other, rows + 3 * room);
        mb_profile_filter_extend(f, rows + 3 * room, other);
        for (int64_t k = 0; recipe.odd < 0 && k < room; k++)
            other[k] = -other[k];
    }
    mb_profile_filter_run(f, own, taps, other, taps + f->reach + 1, rows);
    for (int64_t c = 0; c < f->columns; c++)
        rows[c] = recipe.own * own[f->reach + c] + recipe.taps * rows[c];
    mb_modes_scatter(m, m->s, i, mode, rows);
}

static void fill_tables(const mb_modes *m, const mb_raven_plan *r, float *taps)
{
#pragma omp parallel num_threads(m->threads)
    {
#pragma omp for nowait
        for (int64_t d = 0; d <= r->filter.reach; d++) {
            double even, odd;
            mb_raven_tap(r, d, &even, &odd);
            taps[d] = (float)even;
            taps[r->filter.reach + 1 + d] = (float)odd;
        }
#pragma omp for
        for (int64_t a = 0; a < r->angles; a++)
            for (int64_t mode = 0; mode < r->modes; mode++) {
                *mb_modes_p(m, mode, a) = (float)mb_raven_p(r, mode, a);
                *mb_modes_q(m, a, mode) = (float)mb_raven_q(r, mode, a);
            }
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_array *sino = call->arrays[MB_STRIPES_RAVEN_SINO];
    int rank = sino->shape.rank;
    mb_raven_plan r =
        mb_raven_plan_make(call->params, sino->shape.dims[rank - 2], sino->shape.dims[rank - 1]);
    mb_modes m = mb_modes_of(call, r.modes);
    float *taps = call->slots[MB_STRIPES_RAVEN_TAPS], *rows = call->slots[MB_STRIPES_RAVEN_ROWS];
    int64_t pitch = 4 * mb_profile_filter_room(&r.filter);
    fill_tables(&m, &r, taps);
    for (int64_t first = 0; first < m.sinograms.count; first += MB_MODES_HOST_GROUP) {
        int64_t left = m.sinograms.count - first;
        int64_t many = left < MB_MODES_HOST_GROUP ? left : MB_MODES_HOST_GROUP;
        mb_modes_project(&m, first, many);
#pragma omp parallel for num_threads(m.threads)
        for (int64_t job = 0; job < many * r.modes; job++)
            if (!mb_cancelled())
                filter_profile(&m, job / r.modes, &r, job % r.modes, taps,
                               rows + pitch * omp_get_thread_num());
        mb_modes_subtract(&m, first, many, false);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_stripes_raven = {
    .name = "stripes_raven",
    .summary = "Removes stripes from sinograms: low rows of the Fourier transform are filtered.",
    .doc = "In the rows -rows to rows of the two-dimensional Fourier transform of the padded "
           "sinogram, which have the stripes that hardly change from angle to angle, frequency f "
           "along the columns is multiplied by 1 / (1 + (f / cutoff)^(2 order)). Frequencies are "
           "in cycles per padded extent.\n"
           "With origin = 1, where the padded height or width is even, f + 1 stands for f along "
           "that axis, and the real part is taken, as other packages do. Only the filtered rows "
           "are computed, not the whole transform.\n"
           "A NaN spreads over its sinogram, and to no other. out = sino works in place.",
    .reference = "C. Raven, Numerical removal of ring artifacts in microtomography, Rev. Sci. "
                 "Instrum. 69 (1998) 2978",
    MB_OP_PLANNED_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_STRIPES_RAVEN_SINO,
    .split = mb_stack_split,
    .tolerance = 5e-6, /* sums of another order */
};
