/*
** undistort: takes the radial distortion of a lens out of frames, or puts it in. a (n, rows, cols),
** f32, or one frame (rows, cols) -> the same, or some rows of it.
*/
#include "ops/geometry/op_undistort.h"
#include "ops/op_args.h"

#define PARAMS mb_undistort_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 2, 3, "frames (frame, row, column), or one (row, column)"),
    MB_VECTOR(center, -1e9, 1e9, "px", "{row, column} of the center of distortion, from 0"),
    MB_VECTOR(factors, -1e9, 1e9, NULL, "of the polynomial in the distance from the center, px"),
    MB_VECTOR_OPTION(scale, 1e-6, 1e6, "px",
                     "{row, column}: size of a pixel of a, where the factors are of other pixels; "
                     "default 1"),
    MB_BOOL(inverse, false, "put the distortion in"),
    MB_WARP_ARGS,
    MB_WARP_ROWS_ARG,
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "the same frames, or the rows of them")};

MB_WARP_SPLIT(mb_undistort_map(p))

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 37, 29}}, params = {center = {17.3, 13.1}, factors = {1.01, -1e-3, "
    "2e-5, 1e-7, 3e-9}}}",
    "{inputs = {{'f32', 2, 24, 41}}, params = {center = {10, 25}, factors = {0.9, 2e-3}, mode = "
    "'constant', value = 0.25, scale = {1.5, 1}}}",
    "{inputs = {{'f32', 30, 21}}, params = {center = {12, 3}, factors = {1.1, 4e-3}, mode = "
    "'symmetric', inverse = true, rows = {5, 26}}}",
    "{inputs = {{'f32', 2, 50, 28}}, params = {center = {24, 13}, factors = {1.01, 1e-3}, order = "
    "3, mode = 'symmetric'}}",
    "{inputs = {{'f32', 45, 20}}, params = {center = {24, 13}, factors = {0.98, 1e-3}, order = 3}}",
    "{inputs = {{'f32', 2, 20, 18}}, params = {center = {12, 3}, factors = {1.2, 4e-3}, mode = "
    "'reflect'}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_undistort_params *p = params;
    mb_spec result = arrays[MB_UNDISTORT_A];
    const mb_shape *shape = &arrays[MB_UNDISTORT_A].shape;
    if (p->center.count != 2)
        return mb_fail(MB_STATUS_ARGUMENT, "center", "center has %lld numbers; give {row, column}",
                       (long long)p->center.count);
    if (p->factors.count < 1 || p->factors.count > MB_WARP_FACTORS)
        return mb_fail(MB_STATUS_ARGUMENT, "factors", "factors has %lld numbers; give 1 to %d",
                       (long long)p->factors.count, MB_WARP_FACTORS);
    if (p->scale.count && p->scale.count != 2)
        return mb_fail(MB_STATUS_ARGUMENT, "scale", "scale has %lld numbers; give {row, column}",
                       (long long)p->scale.count);
    if (!(p->factors.values[0] > 0))
        return mb_fail(MB_STATUS_ARGUMENT, "factors",
                       "the first factor is %g; it is the magnification at the center, positive "
                       "and about 1",
                       p->factors.values[0]);
    MB_TRY(mb_warp_check(&p->warp, shape));
    const mb_warp_map map = mb_undistort_map(p);
    MB_TRY(mb_warp_check_part(&p->warp, &map, shape));
    result.shape.dims[shape->rank - 2] = mb_warp_window_of(&p->warp, shape).count;
    arrays[MB_UNDISTORT_RESULT] = result;
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    mb_warp_plan(&((const mb_undistort_params *)params)->warp, &arrays[MB_UNDISTORT_A], planner);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_undistort_params *p = call->params;
    const mb_warp_map map = mb_undistort_map(p);
    return mb_warp_run(call, &p->warp, &map, NULL, NULL);
}

const mb_op mb_op_undistort = {
    .name = "undistort",
    .summary = "Takes the radial distortion of a lens out of frames, or puts it in.",
    .doc =
        "A pixel of the result at the distance r from center has the value that a has at center + "
        "f(r) (pixel - center), with f(r) = factors[1] + factors[2] r + factors[3] r^2 and so on: "
        "the backward model of Discorpy, whose coefficients are taken as they are. inverse finds "
        "the place at which f leads to the pixel.\n"
        "Places are computed in double and rounded to 2^-24 px. Pixels that need a NaN become NaN. "
        "Splines (order 3) pass through the pixels of a, as those of scipy.ndimage do: a pixel "
        "needs 12 more rows and columns around, and scratch holds coefficients. The modes constant "
        "and edge continue splines as reflect does.\n"
        "scipy.ndimage calls symmetric reflect, reflect mirror, and edge nearest; other packages "
        "move places beyond the edge to it, which is mode edge.\n"
        "With part and rows, a holds the rows of the frames that rows of the result need; "
        "mb.op.piece tells which.",
    .reference = "N. T. Vo et al., Opt. Express 23 (2015) 32859",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 1e-5, /* places round to another side */
};
