/*
** remap: takes each pixel of frames from a place that two arrays give. a (n, rows, cols), f32, or
** one frame (rows, cols); rows, columns (rows', cols'), f32 or f64 -> (n, rows', cols') or (rows',
** cols').
*/
#include "ops/geometry/op_remap.h"
#include "ops/op_args.h"

#define PARAMS mb_remap_params

#define PLACES (MB_BIT(MB_F32) | MB_BIT(MB_F64))

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 2, 3, "frames (frame, row, column), or one (row, column)"),
    MB_ARRAY_IN("rows", PLACES, 2, 2, "for each pixel of the result, its row in a frame, from 0"),
    MB_ARRAY_IN("columns", PLACES, 2, 2, "and its column, from 0"), MB_WARP_ARGS,
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "frames with the rows and columns of the map")};

/* Which rows are needed is known only where the map is. */
static const char *const samples[] = {
    "{inputs = {{'f32', 3, 17, 29}, {'f32', 8, 31, low = -5, high = 25}, {'f64', 8, 31, low = -5, "
    "high = 35}}}",
    "{inputs = {{'f32', 2, 9, 11}, {'f64', 9, 11, low = -2, high = 10}, {'f64', 9, 11, low = -2, "
    "high = 12}}, params = {mode = 'constant', value = 0.5}}",
    "{inputs = {{'f32', 30, 40}, {'f64', 5, 600, low = -20, high = 50}, {'f64', 5, 600, low = -90, "
    "high = 90}}, params = {mode = 'symmetric', order = 3}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_remap_params *p = params;
    const mb_shape *rows = &arrays[MB_REMAP_ROWS].shape, *columns = &arrays[MB_REMAP_COLUMNS].shape;
    mb_spec result = arrays[MB_REMAP_A];
    const int rank = result.shape.rank;
    char have[64], want[64];
    MB_TRY(mb_warp_check(&p->warp, &result.shape));
    if (rows->dims[0] != columns->dims[0] || rows->dims[1] != columns->dims[1])
        return mb_fail(MB_STATUS_SHAPE, "columns",
                       "columns is %s and rows is %s: give one of each for each pixel",
                       mb_shape_format(columns, have, sizeof have),
                       mb_shape_format(rows, want, sizeof want));
    if (result.shape.dims[rank - 2] == 0 || result.shape.dims[rank - 1] == 0)
        return mb_fail(MB_STATUS_SHAPE, "a", "a is %s: frames without pixels have no values",
                       mb_shape_format(&result.shape, have, sizeof have));
    result.shape.dims[rank - 2] = rows->dims[0];
    result.shape.dims[rank - 1] = rows->dims[1];
    arrays[MB_REMAP_RESULT] = result;
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    mb_warp_plan(&((const mb_remap_params *)params)->warp, &arrays[MB_REMAP_A], planner);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_remap_params *p = call->params;
    const mb_warp_map map = {.kind = MB_WARP_TABLE};
    return mb_warp_run(call, &p->warp, &map, call->arrays[MB_REMAP_ROWS],
                       call->arrays[MB_REMAP_COLUMNS]);
}

const mb_op mb_op_remap = {
    .name = "remap",
    .summary = "Takes each pixel of frames from a place that two arrays give.",
    .doc =
        "result[y][x] is the value of a at row rows[y][x] and column columns[y][x], pixels from 0, "
        "interpolated; the same map for all frames, as in scipy.ndimage.map_coordinates. Give "
        "float64 places in frames of more than 4096 pixels, where a float32 is only known to "
        "2^-12 px. Where a place is NaN the result is value.\n"
        "Pixels that need a NaN become NaN. order, mode and value are those of undistort. With "
        "part, a holds the rows of the frames that the map asks for, and places are still those of "
        "whole frames; what else a map asks for is taken from the nearest row of the part.",
    MB_OP_PLANNED_PARTS,
    .strides = MB_STRIDES_ROWS,
    .split = mb_stack_split,
    .tolerance = 1e-5, /* places round to another side */
};
