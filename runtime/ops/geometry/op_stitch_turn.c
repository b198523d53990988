/*
** stitch_turn: joins each frame of a whole turn with the mirrored frame half a turn later. a
** (angles, rows, W), f32 -> (half, rows, 2 W - overlap).
*/
#include "ops/geometry/op_stitch_turn.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"
#include <string.h>

#define PARAMS mb_stitch_turn_params

static const char *const sides[] = {"left", "right", NULL};
static const char *const gaps[] = {"linear", "edge", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 3, 3, "frames over a whole turn (angle, row, column)"),
    MB_FLOAT_REQUIRED(
        overlap, -1e9, 1e9, 0, "px",
        "columns that both halves see; negative: columns between them that none sees"),
    MB_ENUM_REQUIRED(side, sides, "of the detector where the axis is"),
    MB_INT(half, 0, 1 << 30, 0, "frames",
           "how many frames are half a turn; 0: half of all, rounded down"),
    MB_ENUM(gap, gaps, MB_STITCH_LINEAR,
            "what fills columns that none sees: a line from edge to edge, or the edge on the left"),
    MB_INT(before, 0, 1 << 24, 0, "px", "columns added on the left, which repeat the edge"),
    MB_INT(after, 0, 1 << 24, 0, "px", "columns added on the right, which repeat the edge"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 3, 3, "frames over half a turn, 2 W - overlap columns")};

static const mb_op_split split[] = {MB_SPLIT_AXIS(1, .combine = MB_COMBINE_NONE), MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'f32', 6, 5, 17}}, params = {overlap = 6, side = 'right'}}",
    "{inputs = {{'f32', 7, 3, 20}}, params = {overlap = 4.5, side = 'left', before = 2, after = "
    "3}}",
    "{inputs = {{'f32', 4, 2, 9}}, params = {overlap = -5, side = 'right'}}",
    "{inputs = {{'f32', 5, 2, 9}}, params = {overlap = -3, side = 'left', gap = 'edge', half = "
    "3}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_stitch_turn_params *p = params;
    mb_spec result = arrays[MB_STITCH_TURN_A];
    const int64_t angles = result.shape.dims[0], cols = result.shape.dims[2];
    if (fabs(p->overlap) > (double)cols)
        return mb_fail(MB_STATUS_ARGUMENT, "overlap",
                       "overlap is %g; it lies within the %lld columns of the detector, or minus "
                       "that",
                       p->overlap, (long long)cols);
    if (angles < 2 || p->half > angles - 1)
        return mb_fail(MB_STATUS_ARGUMENT, "half",
                       "half is %lld and there are %lld frames; it must be less",
                       (long long)p->half, (long long)angles);
    /* Of frames that have a partner: of an odd number, the last one has none. */
    const int64_t half = p->half ? p->half : angles / 2;
    result.shape.dims[0] = half < angles - half ? half : angles - half;
    result.shape.dims[2] = mb_stitch_turn_of(p, cols).joined + p->before + p->after;
    arrays[MB_STITCH_TURN_RESULT] = result;
    return MB_STATUS_OK;
}

/* A row: what one frame alone sees is copied, or read backwards, and gives what mb_stitch_turn_at
** gives; the rest is left to it. */
static void stitch_row(const mb_stitch_turn *s, const float *own, const float *other, int64_t cols,
                       float *to)
{
    const int64_t start = s->before, end = s->before + s->joined, few = s->few;
    const int64_t own_at = s->left ? end - few : start; /* columns of the result */
    const int64_t others = s->whole && s->joined > s->many ? s->joined - s->many : 0,
                  other_at = s->left ? start : end - others;
    const int64_t last = s->left ? s->cols - 1 - s->twice + s->joined - 1 : s->twice - s->many;
    memcpy(to + own_at, own + (s->left ? s->cols - few : 0), (size_t)few * sizeof *to);
    for (int64_t i = 0; i < others; i++)
        to[other_at + i] = other[last - i];
    for (int64_t x = 0; x < cols; x++) {
        if (few > 0 && x == own_at)
            x += few;
        if (others > 0 && x == other_at)
            x += others;
        if (few > 0 && x == own_at) /* beside the other frame's */
            x += few;
        if (x < cols)
            to[x] = mb_stitch_turn_at(s, own, other, x);
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_stitch_turn_params *p = call->params;
    const mb_array *a = call->arrays[MB_STITCH_TURN_A];
    mb_array *result = call->arrays[MB_STITCH_TURN_RESULT];
    const mb_stitch_turn s = mb_stitch_turn_of(p, a->shape.dims[2]);
    const int64_t half = p->half ? p->half : a->shape.dims[0] / 2, rows = a->shape.dims[1];
    const int64_t frames = result->shape.dims[0], cols = result->shape.dims[2];
    const int threads = frames * rows * cols < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < frames * rows; i++) {
        const int64_t k = i / rows, y = i % rows;
        const float *own = (const float *)a->data + k * a->strides[0] + y * a->strides[1];
        const float *other = own + half * a->strides[0];
        float *to = (float *)result->data + k * result->strides[0] + y * result->strides[1];
        if (mb_cancelled())
            continue;
        stitch_row(&s, own, other, cols, to);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_stitch_turn = {
    .name = "stitch_turn",
    .summary = "Joins the frames of a whole turn into frames of half a turn and up to twice the "
               "width.",
    .doc =
        "Frame k of the result is frame k joined with the mirrored frame k + half. The axis is "
        "near an edge of the detector, at column W - (overlap + 1) / 2 for the right side and "
        "(overlap - 1) / 2 for the left. Columns that both see are blended linearly; an overlap "
        "that is not whole moves the mirrored frame by linear interpolation. Columns that none "
        "sees, of a negative overlap, are filled.\n"
        "The result has floor(2 W - overlap) columns, and those that before and after add. Its "
        "axis is at the same column for the right side, moved by before; for the left side it is W "
        "- overlap columns further right. Frames without a partner are left out. A NaN stays in "
        "its column, and in those that are interpolated from it.",
    .reference = "N. T. Vo et al., Opt. Express 29 (2021) 17849",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 1e-6,
};
