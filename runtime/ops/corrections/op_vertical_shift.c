/*
** vertical_shift: moves every frame of a stack of projections along its rows, each by its own,
** fractional amount. a (n, rows, cols), f32, or one frame (rows, cols); any strides but along
** columns. In place without scratch: the order of rows does it (op_vertical_shift.h).
*/
#include "core/multiversion.h"
#include "ops/corrections/op_vertical_shift.h"
#include "ops/frames.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"
#include <string.h>

#define PARAMS mb_vertical_shift_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 2, 3,
                "projections (angle, row, column), or one (row, column)"),
    MB_VECTOR(shifts, -1e12, 1e12, "px",
              "one per projection; a positive shift moves the content to lower row numbers"),
    MB_VECTOR_OPTION(indices, 1, 1e12, NULL,
                     "for a subset of projections: 1-based index of the shift of each projection"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "same shape; may be a")};

/* Rows above and below: -whole of the most negative shift, whole + 1 of the largest. */
static mb_rows needs(const void *params, const mb_spec *arrays, int axis, mb_rows rows)
{
    const mb_vertical_shift_params *p = params;
    const mb_shape *shape = &arrays[MB_VERTICAL_SHIFT_A].shape;
    int64_t frames = shape->rank == 3 ? shape->dims[0] : 1, before = 0, after = 0;
    if (axis != shape->rank - 2)
        return rows;
    for (int64_t j = 0; j < frames; j++) {
        mb_vertical_shift_frame f = mb_vertical_shift_at(p, j, shape->dims[axis]);
        int64_t last = f.whole + (f.far != 0);
        before = -f.whole > before ? -f.whole : before;
        after = last > after ? last : after;
    }
    return (mb_rows){rows.first - before, rows.end + after};
}

static void piece(const mb_spec *arrays, int axis, mb_op_piece *piece, void *params, double *room)
{
    (void)room;
    mb_vertical_shift_piece(arrays, axis, piece, params);
}

static const mb_op_split split[] = {MB_SPLIT_AXIS(0, .needs = needs, .piece = piece),
                                    MB_SPLIT_AXIS(1, .needs = needs), MB_SPLIT_AXIS(2, ),
                                    MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'f32', 5, 13, 11}}, params = {shifts = {0.3, 1.3, -2.7, 0, 12.5}}}",
    "{inputs = {{'f32', 2, 7, 40}}, params = {shifts = {9, -0.25, 3, 1.75}, indices = {4, 2}}}",
    "{inputs = {{'f32', 9, 300}}, params = {shifts = {-3.5}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    return mb_vertical_shift_infer(params, arrays);
}

/* One row from two; `to` may be either of them. Products are exact in double, whether the compiler
** fuses one with the sum or not. */
MB_MULTIVERSION
static void mix(float *to, const float *low, const float *high, int64_t n, float near, float far)
{
    if (!high)
        for (int64_t i = 0; i < n; i++)
            to[i] = near * low[i];
    else if (!low)
        for (int64_t i = 0; i < n; i++)
            to[i] = far * high[i];
    else
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)((double)near * (double)low[i] + (double)far * (double)high[i]);
}

/* Columns [x0, x1) of one frame. */
static void shift_columns(const mb_vertical_shift_frame *f, const float *from, int64_t from_pitch,
                          float *to, int64_t to_pitch, int64_t rows, int64_t x0, int64_t x1)
{
    int64_t step = f->whole >= 0 ? 1 : -1;
    for (int64_t i = 0, z = step > 0 ? 0 : rows - 1; i < rows; i++, z += step) {
        int64_t k = z + f->whole;
        const float *low = k >= 0 && k < rows ? from + k * from_pitch + x0 : NULL;
        const float *high =
            f->far != 0 && k + 1 >= 0 && k + 1 < rows ? from + (k + 1) * from_pitch + x0 : NULL;
        float *row = to + z * to_pitch + x0;
        if (low && f->far == 0) {
            if (row != low)
                memcpy(row, low, (size_t)(x1 - x0) * 4);
        } else if (low || high) {
            mix(row, low, high, x1 - x0, f->near, f->far);
        } else {
            memset(row, 0, (size_t)(x1 - x0) * 4);
        }
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_vertical_shift_params *p = call->params;
    mb_frames s =
        mb_frames_of(call->arrays[MB_VERTICAL_SHIFT_A], call->arrays[MB_VERTICAL_SHIFT_RESULT]);
    int64_t block = 4096, blocks = (s.cols + block - 1) / block;
    int threads = s.count * s.rows * s.cols < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < s.count * blocks; i++) {
        if (mb_cancelled())
            continue;
        int64_t j = i / blocks, x0 = i % blocks * block;
        mb_vertical_shift_frame f = mb_vertical_shift_at(p, j, s.rows);
        shift_columns(&f, s.from + j * s.from_frame, s.from_pitch, s.to + j * s.to_frame,
                      s.to_pitch, s.rows, x0, x0 + block < s.cols ? x0 + block : s.cols);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_vertical_shift = {
    .name = "vertical_shift",
    .summary = "Moves each projection vertically by its own fractional number of rows.",
    .doc =
        "With s0 = floor(shift) and f = shift - s0: result[z] = (1 - f) a[z + s0] + f a[z + s0 + "
        "1]. Rows outside are 0, and weights are not renormalized. A positive shift moves the "
        "content to lower row numbers.\n"
        "indices selects the shifts of a subset of the projections: projection j takes "
        "shifts[indices[j]]. out = a works in place, without scratch.",
    .reference = "linear interpolation",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_VERTICAL_SHIFT_A,
    .tolerance = 1e-6, /* fused or separate multiplication and addition */
};
