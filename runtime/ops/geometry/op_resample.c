/*
** resample: frames of another number of rows and columns. a (n, rows, cols), f32, or one frame ->
** (n, rows', cols'), or some rows of it.
*/
#include "ops/geometry/op_resample.h"
#include "ops/frames.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"

#define PARAMS mb_resample_params

enum { TILE = 256, FRAMES = 8 };

static const char *const methods[] = {"box", "linear", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 2, 3, "frames (frame, row, column), or one (row, column)"),
    MB_VECTOR(size, 1, 1e9, "px", "{rows, columns} of the result"),
    MB_ENUM(method, methods, MB_RESAMPLE_BOX,
            "box: means over the area of a new pixel; linear: the value at its middle"),
    MB_VECTOR_OPTION(part, 1, 1e9, "px",
                     "where a is a part of frames: {row of the frame, from 1, that is its first, "
                     "rows of the frame}"),
    MB_VECTOR_OPTION(rows, 1, 1e9, "px",
                     "{first, last}: rows of the result to make, from 1; default all"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "frames of this size, or the rows of them")};

static int rows_axis(const mb_spec *arrays)
{
    return arrays[MB_RESAMPLE_A].shape.rank - 2;
}

/* The rows of the frame that rows of the result need. */
static mb_rows frame_rows(const mb_resample_params *p, const mb_resample_window *w, mb_rows rows)
{
    const mb_resample_taps first = mb_resample_at(p->method, rows.first, w->height, w->rows),
                           last = mb_resample_at(p->method, rows.end - 1, w->height, w->rows);
    return (mb_rows){first.first, last.first + last.count};
}

static mb_rows needs(const void *params, const mb_spec *arrays, int axis, mb_rows rows)
{
    if (axis != rows_axis(arrays))
        return rows;
    const mb_resample_window w = mb_resample_window_of(params, &arrays[MB_RESAMPLE_A].shape);
    const mb_rows found = frame_rows(params, &w, (mb_rows){w.from + rows.first, w.from + rows.end});
    return (mb_rows){found.first - w.first, found.end - w.first};
}

static void piece(const mb_spec *arrays, int axis, mb_op_piece *piece, void *params, double *room)
{
    mb_resample_params *p = params;
    if (axis != rows_axis(arrays))
        return;
    const mb_resample_window w = mb_resample_window_of(p, &arrays[MB_RESAMPLE_A].shape);
    room[0] = (double)(w.first + piece->input.first + 1);
    room[1] = (double)w.height;
    room[2] = (double)(w.from + piece->rows.first + 1);
    room[3] = (double)(w.from + piece->rows.end);
    p->part = (mb_vector){room, 2};
    p->rows = (mb_vector){room + 2, 2};
    piece->skip = 0;
}

static const mb_op_split split[] = {MB_SPLIT_AXIS(0, .needs = needs, .piece = piece),
                                    MB_SPLIT_AXIS(1, .needs = needs, .piece = piece,
                                                  .adapt = mb_whole_rows_adapt,
                                                  .when = "there are three axes"),
                                    MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 13, 29}}, params = {size = {5, 11}}}",
    "{inputs = {{'f32', 2, 8, 300}}, params = {size = {17, 280}, method = 'linear'}}",
    "{inputs = {{'f32', 9, 31}}, params = {size = {4, 62}, rows = {2, 4}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_resample_params *p = params;
    mb_spec result = arrays[MB_RESAMPLE_A];
    const int rank = result.shape.rank;
    const int64_t held = result.shape.dims[rank - 2];
    char text[64];
    MB_TRY(mb_check_axes("size", &p->size, 2, false));
    MB_TRY(mb_check_whole("size", &p->size));
    MB_TRY(mb_check_pair("part", &p->part));
    MB_TRY(mb_check_pair("rows", &p->rows));
    if (held == 0 || result.shape.dims[rank - 1] == 0)
        return mb_fail(MB_STATUS_SHAPE, "a", "a is %s: frames without pixels have no values",
                       mb_shape_format(&result.shape, text, sizeof text));
    const mb_resample_window w = mb_resample_window_of(p, &result.shape);
    if (w.count < 1 || w.from + w.count > w.rows)
        return mb_fail(MB_STATUS_ARGUMENT, "rows",
                       "rows is {%lld, %lld}; the result has rows 1 to %lld", (long long)w.from + 1,
                       (long long)(w.from + w.count), (long long)w.rows);
    const mb_rows own = frame_rows(p, &w, (mb_rows){w.from, w.from + w.count});
    if (w.first + held > w.height || own.first < w.first || own.end > w.first + held)
        return mb_fail(MB_STATUS_ARGUMENT, "part",
                       "the rows need rows %lld to %lld of %lld; a has %lld to %lld",
                       (long long)own.first + 1, (long long)own.end, (long long)w.height,
                       (long long)w.first + 1, (long long)(w.first + held));
    result.shape.dims[rank - 2] = w.count;
    result.shape.dims[rank - 1] = w.cols;
    arrays[MB_RESAMPLE_RESULT] = result;
    return MB_STATUS_OK;
}

/* A tile of one row of one frame: `from` is the first row that it needs. */
static void resample_tile(const mb_resample_taps *ty, const mb_resample_taps *tx, int n,
                          const float *from, int64_t pitch, float *to)
{
    float sums[TILE];
    for (int i = 0; i < n; i++)
        sums[i] = 0;
    for (int64_t k = 0; k < ty->count; k++) {
        const float *row = from + k * pitch, weight = mb_resample_weight(ty, k);
        for (int i = 0; i < n; i++) {
            const float *at = row + tx[i].first;
            float sum = tx[i].low * at[0];
            for (int64_t l = 1; l < tx[i].count; l++)
                sum += mb_resample_weight(&tx[i], l) * at[l];
            sums[i] += weight * sum;
        }
    }
    for (int i = 0; i < n; i++)
        to[i] = sums[i];
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_resample_params *p = call->params;
    const mb_array *a = call->arrays[MB_RESAMPLE_A];
    const mb_frames s = mb_frames_of(a, call->arrays[MB_RESAMPLE_RESULT]);
    const mb_resample_window w = mb_resample_window_of(p, &a->shape);
    const int64_t groups = (s.count + FRAMES - 1) / FRAMES;
    const int threads =
        s.count * w.count * w.cols < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t task = 0; task < groups * w.count; task++) {
        const int64_t y = task % w.count, f0 = task / w.count * FRAMES;
        const int64_t f1 = f0 + FRAMES < s.count ? f0 + FRAMES : s.count;
        const mb_resample_taps ty = mb_resample_at(p->method, w.from + y, w.height, w.rows);
        mb_resample_taps tx[TILE];
        if (mb_cancelled())
            continue;
        for (int64_t x = 0; x < w.cols; x += TILE) {
            const int n = w.cols - x < TILE ? (int)(w.cols - x) : TILE;
            for (int i = 0; i < n; i++)
                tx[i] = mb_resample_at(p->method, x + i, s.cols, w.cols);
            for (int64_t f = f0; f < f1; f++)
                resample_tile(&ty, tx, n,
                              s.from + f * s.from_frame + (ty.first - w.first) * s.from_pitch,
                              s.from_pitch, s.to + f * s.to_frame + y * s.to_pitch + x);
        }
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_resample = {
    .name = "resample",
    .summary = "Frames with another number of rows and columns.",
    .doc =
        "The new pixels cover the same area: along an axis of m pixels that becomes n, pixel i, "
        "from 0, covers i m / n to (i + 1) m / n. box takes the mean over it, the method to make "
        "frames smaller: none of the signal is lost. linear takes the value at its middle, "
        "interpolated, with the edges repeated. A NaN spreads to all pixels that it is a part of.\n"
        "With part and rows, a holds the rows of the frames that rows of the result need; "
        "mb.op.piece tells which.",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 2e-6,
};
