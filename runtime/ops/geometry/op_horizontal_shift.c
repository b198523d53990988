/*
** horizontal_shift: moves every frame of a stack of projections along its columns, each by its
** own, fractional amount. a (n, rows, cols), f32, or one frame (rows, cols). In place without
** scratch: see op_horizontal_shift.h.
*/
#include "ops/geometry/op_horizontal_shift.h"
#include "ops/frames.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"

#define PARAMS mb_horizontal_shift_params

static const char *const modes[] = {"constant", "edge", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 2, 3,
                "projections (angle, row, column), or one (row, column)"),
    MB_VECTOR_ARG("shifts", true, list.shifts, -1e12, 1e12, "px",
                  "one per projection; a positive shift moves the content to lower column numbers"),
    MB_VECTOR_ARG("indices", false, list.indices, 1, 1e12, NULL,
                  "for a subset of projections: 1-based index of the shift of each projection"),
    MB_ENUM(mode, modes, MB_HORIZONTAL_CONSTANT, "columns beyond the edges: value, or the edge"),
    MB_FLOAT(value, MB_ANY, 0, NULL, "constant of mode constant"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "same shape; may be a")};

static void piece(const mb_spec *arrays, int axis, mb_op_piece *piece, void *params, double *room)
{
    (void)room;
    mb_vertical_shift_piece(arrays, axis, piece, &((mb_horizontal_shift_params *)params)->list);
}

static const mb_op_split split[] = {
    MB_SPLIT_AXIS(0, .piece = piece),
    MB_SPLIT_AXIS(1, .adapt = mb_whole_rows_adapt, .when = "there are three axes"), MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'f32', 5, 13, 11}}, params = {shifts = {0.3, 1.3, -2.7, 0, 12.5}}}",
    "{inputs = {{'f32', 2, 7, 1500}}, params = {shifts = {9, -0.25, 3, -601.75}, indices = {4, 2}, "
    "mode = 'edge'}}",
    "{inputs = {{'f32', 9, 300}}, params = {shifts = {-3.5}, value = 0.5}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    return mb_vertical_shift_infer(&((const mb_horizontal_shift_params *)params)->list, arrays);
}

static void shift_row(const mb_horizontal_shift_params *p, const mb_vertical_shift_frame *f,
                      const float *from, float *to, int64_t cols)
{
    const bool edge = p->mode == MB_HORIZONTAL_EDGE;
    const float value = (float)p->value;
    if (f->whole >= 0)
        for (int64_t x = 0; x < cols; x++)
            to[x] = mb_horizontal_at(from, cols, x, f->whole, f->far, edge, value);
    else
        for (int64_t x = cols - 1; x >= 0; x--)
            to[x] = mb_horizontal_at(from, cols, x, f->whole, f->far, edge, value);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_horizontal_shift_params *p = call->params;
    const mb_frames s =
        mb_frames_of(call->arrays[MB_HORIZONTAL_SHIFT_A], call->arrays[MB_HORIZONTAL_SHIFT_RESULT]);
    const int threads =
        s.count * s.rows * s.cols < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < s.count * s.rows; i++) {
        const int64_t j = i / s.rows, y = i % s.rows;
        const mb_vertical_shift_frame f = mb_vertical_shift_at(&p->list, j, s.cols);
        if (!mb_cancelled())
            shift_row(p, &f, s.from + j * s.from_frame + y * s.from_pitch,
                      s.to + j * s.to_frame + y * s.to_pitch, s.cols);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_horizontal_shift = {
    .name = "horizontal_shift",
    .summary = "Moves each projection horizontally by its own fractional number of columns.",
    .doc =
        "With s0 = floor(shift) and f = shift - s0: result[x] = (1 - f) a[x + s0] + f a[x + s0 + "
        "1]. Columns outside are value, or the column at the edge. A positive shift moves the "
        "content to lower column numbers. A NaN spreads to the columns that it is mixed into.\n"
        "indices selects the shifts of a subset of the projections: projection j takes "
        "shifts[indices[j]]. out = a works in place, without scratch.",
    .reference = "linear interpolation",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_HORIZONTAL_SHIFT_A,
    .tolerance = 1e-6, /* fused or separate multiplication and addition */
};
