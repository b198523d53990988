/*
** Warping on the host. A task is a row of the result in some frames: places are computed for a
** tile of columns and used for each frame. Tiles begin at multiples of TILE, whatever part of the
** frames a call has, so that a pixel is computed in the same way in every piece.
*/
#include "core/multiversion.h"
#include "ops/frames.h"
#include "ops/geometry/warp.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"
#include <omp.h>

enum { TILE = 512, FRAMES = 16 };

const char *const mb_warp_modes[] = {"constant", "edge", "reflect", "symmetric", NULL};

/* A tile of a row: places, taps, and offsets in a frame. Linear: of an element, and steps to the
** next row and column. Splines: of four rows, and of four columns. */
typedef struct tile {
    double place_y[TILE], place_x[TILE];
    int32_t low_y[TILE], low_x[TILE], inside[TILE];
    float far_y[TILE], far_x[TILE];
    int64_t rows[4][TILE], columns[4][TILE];
} tile;

/* Where all frames come from and go to. */
typedef struct job {
    const mb_warp_params *p;
    const mb_warp_map *map;
    const mb_array *a, *result, *table_y, *table_x;
    mb_warp_window window;
    mb_frames s; /* from `a`, or from coefficients */
    int threads;
} job;

/* ---- arguments ---- */

mb_status mb_warp_check(const mb_warp_params *p, const mb_shape *shape)
{
    const int64_t rows = shape->dims[shape->rank - 2], cols = shape->dims[shape->rank - 1];
    if (p->order == 2)
        return mb_fail(MB_STATUS_ARGUMENT, "order", "order is 2; give 1, linear, or 3, cubic");
    MB_TRY(mb_check_pair("part", &p->part));
    MB_TRY(mb_check_pair("rows", &p->rows));
    if (rows > INT32_MAX / 2 || cols > INT32_MAX / 2)
        return mb_fail(MB_STATUS_SHAPE, "a", "frames of %lld x %lld are too large", (long long)rows,
                       (long long)cols);
    const mb_warp_window w = mb_warp_window_of(p, shape);
    if (w.first + rows > w.height)
        return mb_fail(MB_STATUS_ARGUMENT, "part",
                       "part says that a, with %lld rows, begins at row %lld of %lld: it does not "
                       "fit into the frame",
                       (long long)rows, (long long)w.first + 1, (long long)w.height);
    if (w.count < 0 || w.from + w.count > w.height)
        return mb_fail(MB_STATUS_ARGUMENT, "rows",
                       "rows is {%lld, %lld}; frames have rows 1 to %lld", (long long)w.from + 1,
                       (long long)(w.from + w.count), (long long)w.height);
    return MB_STATUS_OK;
}

mb_rows mb_warp_split_needs(const mb_warp_params *p, const mb_warp_map *map, const mb_shape *shape,
                            int axis, mb_rows rows)
{
    if (axis != shape->rank - 2)
        return rows;
    const mb_warp_window w = mb_warp_window_of(p, shape);
    const mb_rows found =
        mb_warp_needs(p, map, w.height, w.cols, (mb_rows){w.from + rows.first, w.from + rows.end});
    return (mb_rows){found.first - w.first, found.end - w.first};
}

void mb_warp_split_piece(mb_warp_params *p, const mb_shape *shape, int axis, mb_op_piece *piece,
                         double *room)
{
    if (axis != shape->rank - 2)
        return;
    const mb_warp_window w = mb_warp_window_of(p, shape);
    room[0] = (double)(w.first + piece->input.first + 1);
    room[1] = (double)w.height;
    room[2] = (double)(w.from + piece->rows.first + 1);
    room[3] = (double)(w.from + piece->rows.end);
    p->part = (mb_vector){room, 2};
    p->rows = (mb_vector){room + 2, 2};
    piece->skip = 0;
}

void mb_warp_plan(const mb_warp_params *p, const mb_spec *a, mb_planner *planner)
{
    const mb_device_facts *facts = &planner->device->facts;
    const mb_shape *shape = &a->shape;
    const uint64_t rows = (uint64_t)shape->dims[shape->rank - 2],
                   cols = (uint64_t)shape->dims[shape->rank - 1];
    const uint64_t frame = mb_bytes_mul(mb_bytes_mul(rows, cols), sizeof(float));
    const bool lines = p->order == 3 && facts->compute_capability == 0;
    mb_planner_slot(planner, "coefficients",
                    p->order == 3 ? mb_bytes_mul(frame, (uint64_t)mb_warp_group(shape)) : 0, 0, 0);
    mb_planner_slot(
        planner, "lines",
        lines ? mb_bytes_mul((cols + 2 * MB_WARP_SPAN) * sizeof(float), (uint64_t)facts->threads)
              : 0,
        0, 0);
}

/* ---- places and taps of a tile ---- */

#define PLACES(kind_)                                                                              \
    case kind_:                                                                                    \
        for (int i = 0; i < n; i++)                                                                \
            mb_warp_at(kind_, map, y, (double)(x0 + i), &t->place_y[i], &t->place_x[i]);           \
        break

MB_MULTIVERSION
static void find_places(const mb_warp_map *map, double y, int64_t x0, int n, tile *t)
{
    switch (map->kind) {
        PLACES(MB_WARP_RADIAL);
        PLACES(MB_WARP_INVERSE);
        PLACES(MB_WARP_AFFINE);
    case MB_WARP_TABLE: break;
    }
}

static void table_places(const mb_array *table, int64_t row, int64_t x0, int n, double *places)
{
    const int64_t step = table->strides[1], first = row * table->strides[0] + x0 * step;
    for (int i = 0; i < n; i++)
        places[i] = table->dtype == MB_F64 ? ((const double *)table->data)[first + i * step]
                                           : ((const float *)table->data)[first + i * step];
}

#define TAPS(mode_, cubic_)                                                                        \
    case 2 * mode_ + cubic_:                                                                       \
        for (int i = 0; i < n; i++) {                                                              \
            const mb_warp_tap y = mb_warp_tap_at(mode_, cubic_, t->place_y[i], height),            \
                              x = mb_warp_tap_at(mode_, cubic_, t->place_x[i], cols);              \
            t->low_y[i] = y.low;                                                                   \
            t->low_x[i] = x.low;                                                                   \
            t->far_y[i] = y.far;                                                                   \
            t->far_x[i] = x.far;                                                                   \
            t->inside[i] = y.inside & x.inside;                                                    \
        }                                                                                          \
        break

/* The first n places have been filled. NOLINTBEGIN(clang-analyzer-core.CallAndMessage) */
MB_MULTIVERSION
static void find_taps(int mode, bool cubic, int64_t height, int64_t cols, int n, tile *t)
{
    switch (2 * mode + (cubic && mode == MB_WARP_SYMMETRIC)) {
        TAPS(MB_WARP_CONSTANT, 0);
        TAPS(MB_WARP_EDGE, 0);
        TAPS(MB_WARP_REFLECT, 0);
        TAPS(MB_WARP_SYMMETRIC, 0);
        TAPS(MB_WARP_SYMMETRIC, 1);
    }
}
/* NOLINTEND(clang-analyzer-core.CallAndMessage) */

/* ---- the rows that are needed ---- */

/* The rows that the coefficients of rows low - 1 to low + 2 need, within the frame. */
static mb_rows spline_rows(int mode, int64_t low, int64_t height)
{
    const int64_t half = mode == MB_WARP_SYMMETRIC;
    int64_t first = low - 1 - MB_WARP_SPAN, last = low + 2 + MB_WARP_SPAN;
    if (height <= last - first) /* may be folded more than once */
        return (mb_rows){0, height};
    if (first < 0) {
        last = -first - half > last ? -first - half : last;
        first = 0;
    } else if (last >= height) {
        const int64_t folded = 2 * (height - 1) + half - last;
        first = folded < first ? folded : first;
        last = height - 1;
    }
    return (mb_rows){first, last + 1};
}

mb_rows mb_warp_needs(const mb_warp_params *p, const mb_warp_map *map, int64_t height, int64_t cols,
                      mb_rows rows)
{
    mb_rows needs = {INT64_MAX, INT64_MIN};
    tile t;
    for (int64_t y = rows.first; y < rows.end; y++)
        for (int64_t x = 0; x < cols; x += TILE) {
            const int n = cols - x < TILE ? (int)(cols - x) : TILE;
            find_places(map, (double)y, x, n, &t);
            find_taps(p->mode, p->order == 3, height, cols, n, &t);
            for (int i = 0; i < n; i++) {
                const int64_t low = t.low_y[i];
                const mb_rows own = p->order == 3 ? spline_rows(p->mode, low, height)
                                                  : (mb_rows){low, low + 1 + (t.far_y[i] > 0)};
                if (!t.inside[i])
                    continue;
                needs.first = own.first < needs.first ? own.first : needs.first;
                needs.end = own.end > needs.end ? own.end : needs.end;
            }
        }
    if (needs.first < needs.end)
        return needs;
    needs.first = rows.first < height ? rows.first : height - 1;
    return (mb_rows){needs.first, needs.first + 1};
}

mb_status mb_warp_check_part(const mb_warp_params *p, const mb_warp_map *map, const mb_shape *shape)
{
    const mb_warp_window w = mb_warp_window_of(p, shape);
    const int64_t rows = shape->dims[shape->rank - 2];
    if (rows == w.height || w.count == 0 || w.cols == 0)
        return MB_STATUS_OK;
    const mb_rows needs =
        mb_warp_needs(p, map, w.height, w.cols, (mb_rows){w.from, w.from + w.count});
    if (needs.first >= w.first && needs.end <= w.first + rows)
        return MB_STATUS_OK;
    return mb_fail(
        MB_STATUS_ARGUMENT, "part",
        "rows %lld to %lld of the result need rows %lld to %lld of the frame; a has %lld to %lld",
        (long long)w.from + 1, (long long)(w.from + w.count), (long long)needs.first + 1,
        (long long)needs.end, (long long)w.first + 1, (long long)(w.first + rows));
}

/* ---- coefficients of splines ---- */

/* to = the filter across these rows: rows[SPAN] is the middle one. */
MB_MULTIVERSION
static void filter_rows(const float *const *rows, const float *weights, int64_t n, float *to)
{
    const float *middle = rows[MB_WARP_SPAN];
    for (int64_t x = 0; x < n; x++)
        to[x] = weights[0] * middle[x];
    for (int k = 1; k <= MB_WARP_SPAN; k++) {
        const float *above = rows[MB_WARP_SPAN - k], *below = rows[MB_WARP_SPAN + k],
                    w = weights[k];
        for (int64_t x = 0; x < n; x++)
            to[x] += w * (above[x] + below[x]);
    }
}

MB_MULTIVERSION
static void filter_line(const float *line, const float *weights, int64_t n, float *to)
{
    for (int64_t x = 0; x < n; x++) {
        const float *at = line + x + MB_WARP_SPAN;
        float sum = weights[0] * at[0];
        for (int k = 1; k <= MB_WARP_SPAN; k++)
            sum += weights[k] * (at[-k] + at[k]);
        to[x] = sum;
    }
}

/* One row of the coefficients of a frame. Rows beyond the part are clamped; nothing needs them. */
static void filter_row(const job *j, const float *frame, int64_t pitch, int64_t row,
                       const float *weights, float *line, float *to)
{
    const float *rows[2 * MB_WARP_SPAN + 1];
    const int64_t cols = j->window.cols;
    for (int k = -MB_WARP_SPAN; k <= MB_WARP_SPAN; k++) {
        int64_t y =
            mb_warp_fold(j->p->mode, j->window.first + row + k, j->window.height) - j->window.first;
        y = y < 0 ? 0 : y < j->s.rows ? y : j->s.rows - 1;
        rows[k + MB_WARP_SPAN] = frame + y * pitch;
    }
    filter_rows(rows, weights, cols, line + MB_WARP_SPAN);
    for (int k = 1; k <= MB_WARP_SPAN; k++) {
        line[MB_WARP_SPAN - k] = line[MB_WARP_SPAN + mb_warp_fold(j->p->mode, -k, (int32_t)cols)];
        line[MB_WARP_SPAN + cols - 1 + k] =
            line[MB_WARP_SPAN + mb_warp_fold(j->p->mode, (int32_t)cols - 1 + k, (int32_t)cols)];
    }
    filter_line(line, weights, cols, to);
}

/* The coefficients of `count` frames of `a`, from frame `first`. */
static void find_coefficients(const job *j, int64_t first, int64_t count, float *lines, float *to)
{
    const mb_array *a = j->a;
    const int rank = a->shape.rank;
    const int64_t frame = rank == 3 ? a->strides[0] : 0, cols = j->window.cols;
    float weights[MB_WARP_SPAN + 1];
    mb_warp_filter(weights);
#pragma omp parallel for schedule(static) num_threads(j->threads)
    for (int64_t task = 0; task < count * j->s.rows; task++) {
        const int64_t row = task % j->s.rows, f = first + task / j->s.rows;
        float *line = lines + omp_get_thread_num() * (cols + 2 * MB_WARP_SPAN);
        if (!mb_cancelled())
            filter_row(j, (const float *)a->data + f * frame, a->strides[rank - 2], row, weights,
                       line, to + task * cols);
    }
}

/* ---- the work ---- */

static void linear_offsets(const job *j, int n, tile *t)
{
    for (int i = 0; i < n; i++) {
        int64_t y = t->low_y[i] - j->window.first;
        y = y < 0 ? 0 : y < j->s.rows - 1 ? y : j->s.rows - 1; /* it is, if the part was checked */
        t->rows[0][i] = y * j->s.from_pitch + t->low_x[i];
        t->rows[1][i] = t->far_y[i] > 0 && y + 1 < j->s.rows ? j->s.from_pitch : 0;
        t->columns[1][i] = t->far_x[i] > 0;
    }
}

static void spline_offsets(const job *j, int n, tile *t)
{
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < n; i++) {
            int64_t y = mb_warp_fold(j->p->mode, t->low_y[i] + k - 1, (int32_t)j->window.height) -
                        j->window.first;
            y = y < 0 ? 0 : y < j->s.rows ? y : j->s.rows - 1;
            t->rows[k][i] = y * j->s.from_pitch;
            t->columns[k][i] =
                mb_warp_fold(j->p->mode, t->low_x[i] + k - 1, (int32_t)j->window.cols);
        }
}

MB_MULTIVERSION
static void sample_linear(const tile *t, int n, const float *from, float value, float *to)
{
    for (int i = 0; i < n; i++) {
        const float *at = from + t->rows[0][i], *next = at + t->rows[1][i];
        const int64_t step = t->columns[1][i];
        const float above = mb_warp_mix(at[0], at[step], t->far_x[i]);
        const float below = mb_warp_mix(next[0], next[step], t->far_x[i]);
        const float mixed = mb_warp_mix(above, below, t->far_y[i]);
        to[i] = t->inside[i] ? mixed : value;
    }
}

MB_MULTIVERSION
static void sample_splines(const tile *t, int n, const float *from, float value, float *to)
{
    for (int i = 0; i < n; i++) {
        float wy[4], wx[4], sum = 0;
        mb_warp_spline(t->far_y[i], wy);
        mb_warp_spline(t->far_x[i], wx);
        for (int k = 0; k < 4; k++) {
            const float *at = from + t->rows[k][i];
            float row = wx[0] * at[t->columns[0][i]];
            row += wx[1] * at[t->columns[1][i]];
            row += wx[2] * at[t->columns[2][i]];
            row += wx[3] * at[t->columns[3][i]];
            sum += wy[k] * row;
        }
        to[i] = t->inside[i] ? sum : value;
    }
}

/* Row y of the result in frames f0 to f1 - 1 of `from`. */
static void warp_row(const job *j, int64_t y, int64_t f0, int64_t f1)
{
    const int64_t cols = j->result->shape.dims[j->result->shape.rank - 1];
    const bool cubic = j->p->order == 3;
    tile t;
    for (int64_t x = 0; x < cols; x += TILE) {
        const int n = cols - x < TILE ? (int)(cols - x) : TILE;
        if (j->table_y) {
            table_places(j->table_y, y, x, n, t.place_y);
            table_places(j->table_x, y, x, n, t.place_x);
        } else {
            find_places(j->map, (double)(j->window.from + y), x, n, &t);
        }
        find_taps(j->p->mode, cubic, j->window.height, j->window.cols, n, &t);
        if (cubic)
            spline_offsets(j, n, &t);
        else
            linear_offsets(j, n, &t);
        for (int64_t f = f0; f < f1; f++)
            (cubic ? sample_splines
                   : sample_linear)(&t, n, j->s.from + f * j->s.from_frame, (float)j->p->value,
                                    j->s.to + f * j->s.to_frame + y * j->s.to_pitch + x);
    }
}

static void warp_frames(const job *j)
{
    const int64_t count = j->result->shape.dims[j->result->shape.rank - 2];
    const int64_t groups = (j->s.count + FRAMES - 1) / FRAMES;
#pragma omp parallel for schedule(static) num_threads(j->threads)
    for (int64_t task = 0; task < groups * count; task++) {
        const int64_t f0 = task / count * FRAMES,
                      f1 = f0 + FRAMES < j->s.count ? f0 + FRAMES : j->s.count;
        if (!mb_cancelled())
            warp_row(j, task % count, f0, f1);
    }
}

mb_status mb_warp_run(const mb_op_call *call, const mb_warp_params *p, const mb_warp_map *map,
                      const mb_array *table_y, const mb_array *table_x)
{
    const mb_array *a = call->arrays[0], *result = call->arrays[table_y ? 3 : 1];
    job j = {.p = p, .map = map, .a = a, .result = result, .table_y = table_y, .table_x = table_x};
    j.window = mb_warp_window_of(p, &a->shape);
    j.s = mb_frames_of(a, result);
    const int64_t frames = j.s.count;
    j.threads =
        frames * j.s.rows * j.window.cols < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
    if (mb_shape_elements(&result->shape) == 0)
        return MB_STATUS_OK;
    if (p->order == 1) {
        warp_frames(&j);
        return MB_STATUS_OK;
    }
    const int64_t group = mb_warp_group(&a->shape);
    j.s.from = call->slots[MB_WARP_COEFFICIENTS];
    j.s.from_pitch = j.window.cols;
    j.s.from_frame = j.s.rows * j.window.cols;
    for (int64_t first = 0; first < frames; first += group) {
        j.s.count = frames - first < group ? frames - first : group;
        find_coefficients(&j, first, j.s.count, call->slots[MB_WARP_LINES],
                          call->slots[MB_WARP_COEFFICIENTS]);
        warp_frames(&j);
        j.s.to += j.s.count * j.s.to_frame;
    }
    return MB_STATUS_OK;
}
