/*
** rotate: turns frames. a (n, rows, cols), f32, or one frame (rows, cols) -> the same, or some rows
** of it.
*/
#include "ops/geometry/op_rotate.h"
#include "ops/op_args.h"

#define PARAMS mb_rotate_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 2, 3, "frames (frame, row, column), or one (row, column)"),
    MB_FLOAT_REQUIRED(angle, -7, 7, 0, "rad", "counterclockwise, with row 1 at the top"),
    MB_VECTOR_OPTION(center, -1e9, 1e9, "px",
                     "{row, column} that stays, from 0; default the middle of the frame"),
    MB_WARP_ARGS,
    MB_WARP_ROWS_ARG,
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "the same frames, or the rows of them")};

MB_WARP_SPLIT(mb_rotate_map(p, shape))

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 37, 29}}, params = {angle = 0.05}}",
    "{inputs = {{'f32', 2, 24, 41}}, params = {angle = -1.2, center = {3, 40}, mode = 'constant', "
    "value = 0.25}}",
    "{inputs = {{'f32', 30, 21}}, params = {angle = 0.3, mode = 'symmetric', rows = {5, 26}}}",
    "{inputs = {{'f32', 2, 50, 28}}, params = {angle = 0.1, order = 3, mode = 'reflect'}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_rotate_params *p = params;
    mb_spec result = arrays[MB_ROTATE_A];
    const mb_shape *shape = &arrays[MB_ROTATE_A].shape;
    if (p->center.count && p->center.count != 2)
        return mb_fail(MB_STATUS_ARGUMENT, "center", "center has %lld numbers; give {row, column}",
                       (long long)p->center.count);
    MB_TRY(mb_warp_check(&p->warp, shape));
    const mb_warp_map map = mb_rotate_map(p, shape);
    MB_TRY(mb_warp_check_part(&p->warp, &map, shape));
    result.shape.dims[shape->rank - 2] = mb_warp_window_of(&p->warp, shape).count;
    arrays[MB_ROTATE_RESULT] = result;
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    mb_warp_plan(&((const mb_rotate_params *)params)->warp, &arrays[MB_ROTATE_A], planner);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_rotate_params *p = call->params;
    const mb_warp_map map = mb_rotate_map(p, &call->arrays[MB_ROTATE_A]->shape);
    return mb_warp_run(call, &p->warp, &map, NULL, NULL);
}

const mb_op mb_op_rotate = {
    .name = "rotate",
    .summary = "Turns frames about a point.",
    .doc =
        "The content turns counterclockwise where row 1 is at the top, as in scipy.ndimage.rotate "
        "and skimage.transform.rotate; the shape stays. Quarter turns of square frames about the "
        "middle move pixels without a change.\n"
        "Places are computed in double and rounded to 2^-24 px. Pixels that need a NaN become NaN. "
        "order, mode and value are those of undistort.\n"
        "With part and rows, a holds the rows of the frames that rows of the result need; "
        "mb.op.piece tells which.",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 1e-5, /* places round to another side */
};
