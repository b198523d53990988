/*
** Warping on the host. A task is a row of the result in some frames: places are computed for a tile
** of columns and used for each frame. Tiles begin at multiples of TILE, whatever part of the frames a
** call has, so that a pixel is computed in the same way in every piece.
*/
#include "core/multiversion.h"
#include "ops/geometry/warp.h"
#include "ops/array/strided.h"
#include <string.h>

enum { TILE = 512, FRAMES = 16 };

const char *const mb_warp_modes[] = {"constant", "edge", "reflect", "symmetric", NULL};

/* A tile of a row: places, then taps. */
typedef struct tile {
    double place_y[TILE], place_x[TILE];
    int32_t low_y[TILE], low_x[TILE], inside[TILE];
    float far_y[TILE], far_x[TILE];
    int64_t offset[TILE], step_y[TILE], step_x[TILE];
} tile;

/* ---- arguments ---- */

static mb_status check_pair(const char *name, const mb_vector *pair)
{
    if (pair->count && pair->count != 2)
        return mb_fail(MB_STATUS_ARGUMENT, name, "%s has %lld numbers; give two", name,
                       (long long)pair->count);
    for (int64_t i = 0; i < pair->count; i++)
        if (pair->values[i] != floor(pair->values[i]))
            return mb_fail(MB_STATUS_ARGUMENT, name, "%s has %g; give whole numbers", name,
                           pair->values[i]);
    return MB_STATUS_OK;
}

mb_status mb_warp_check(const mb_warp_params *p, const mb_shape *shape)
{
    const int64_t rows = shape->dims[shape->rank - 2], cols = shape->dims[shape->rank - 1];
    MB_TRY(check_pair("part", &p->part));
    MB_TRY(check_pair("rows", &p->rows));
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

void mb_warp_piece(mb_warp_params *p, const mb_shape *shape, const mb_op_piece *piece, double *room)
{
    const mb_warp_window w = mb_warp_window_of(p, shape);
    room[0] = (double)(w.first + piece->input.first + 1);
    room[1] = (double)w.height;
    room[2] = (double)(w.from + piece->rows.first + 1);
    room[3] = (double)(w.from + piece->rows.end);
    p->part = (mb_vector){room, 2};
    p->rows = (mb_vector){room + 2, 2};
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

#define TAPS(mode_)                                                                                \
    case mode_:                                                                                    \
        for (int i = 0; i < n; i++) {                                                              \
            const mb_warp_tap y = mb_warp_tap_at(mode_, t->place_y[i], height),                    \
                              x = mb_warp_tap_at(mode_, t->place_x[i], cols);                      \
            t->low_y[i] = y.low;                                                                   \
            t->low_x[i] = x.low;                                                                   \
            t->far_y[i] = y.far;                                                                   \
            t->far_x[i] = x.far;                                                                   \
            t->inside[i] = y.inside & x.inside;                                                    \
        }                                                                                          \
        break

MB_MULTIVERSION
static void find_taps(int mode, int64_t height, int64_t cols, int n, tile *t)
{
    switch (mode) {
        TAPS(MB_WARP_CONSTANT);
        TAPS(MB_WARP_EDGE);
        TAPS(MB_WARP_REFLECT);
        TAPS(MB_WARP_SYMMETRIC);
    }
}

/* ---- the rows that are needed ---- */

mb_rows mb_warp_needs(const mb_warp_params *p, const mb_warp_map *map, int64_t height, int64_t cols,
                      mb_rows rows)
{
    mb_rows needs = {INT64_MAX, INT64_MIN};
    tile t;
    for (int64_t y = rows.first; y < rows.end; y++)
        for (int64_t x = 0; x < cols; x += TILE) {
            const int n = cols - x < TILE ? (int)(cols - x) : TILE;
            find_places(map, (double)y, x, n, &t);
            find_taps(p->mode, height, cols, n, &t);
            for (int i = 0; i < n; i++) {
                const int64_t low = t.low_y[i], end = low + 1 + (t.far_y[i] > 0);
                if (!t.inside[i])
                    continue;
                needs.first = low < needs.first ? low : needs.first;
                needs.end = end > needs.end ? end : needs.end;
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
        "rows %lld to %lld of the result need rows %lld to %lld of the frame; a has %lld "
        "to %lld",
        (long long)w.from + 1, (long long)(w.from + w.count), (long long)needs.first + 1,
        (long long)needs.end, (long long)w.first + 1, (long long)(w.first + rows));
}

/* ---- the work ---- */

/* Offsets from the first element of `a`'s frame. */
static void find_offsets(const mb_warp_window *w, int64_t rows, int64_t pitch, int n, tile *t)
{
    for (int i = 0; i < n; i++) {
        int64_t y = t->low_y[i] - w->first;
        y = y < 0 ? 0 : y < rows - 1 ? y : rows - 1; /* nothing else is possible; see check_part */
        t->offset[i] = y * pitch + t->low_x[i];
        t->step_y[i] = t->far_y[i] > 0 && y + 1 < rows ? pitch : 0;
        t->step_x[i] = t->far_x[i] > 0;
    }
}

MB_MULTIVERSION
static void sample_linear(const tile *t, int n, const float *from, float value, float *to)
{
    for (int i = 0; i < n; i++) {
        const float *at = from + t->offset[i];
        const float a = at[0], b = at[t->step_x[i]], c = at[t->step_y[i]],
                    d = at[t->step_y[i] + t->step_x[i]];
        const float above = mb_warp_mix(a, b, t->far_x[i]), below = mb_warp_mix(c, d, t->far_x[i]);
        const float mixed = mb_warp_mix(above, below, t->far_y[i]);
        to[i] = t->inside[i] ? mixed : value;
    }
}

mb_status mb_warp_run(const mb_op_call *call, const mb_warp_params *p, const mb_warp_map *map,
                      const mb_array *rows, const mb_array *columns)
{
    const mb_array *a = call->arrays[0], *result = call->arrays[rows ? 3 : 1];
    const int rank = a->shape.rank;
    const mb_warp_window w = mb_warp_window_of(p, &a->shape);
    const int64_t frames = rank == 3 ? a->shape.dims[0] : 1,
                  groups = (frames + FRAMES - 1) / FRAMES;
    const int64_t cols = result->shape.dims[rank - 1], count = result->shape.dims[rank - 2];
    const int64_t from_frame = rank == 3 ? a->strides[0] : 0,
                  to_frame = rank == 3 ? result->strides[0] : 0;
    const int threads = frames * count * cols < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t task = 0; task < groups * count; task++) {
        const int64_t y = task % count, f0 = task / count * FRAMES;
        const int64_t f1 = f0 + FRAMES < frames ? f0 + FRAMES : frames;
        tile t;
        if (mb_cancelled())
            continue;
        for (int64_t x = 0; x < cols; x += TILE) {
            const int n = cols - x < TILE ? (int)(cols - x) : TILE;
            if (rows) {
                table_places(rows, y, x, n, t.place_y);
                table_places(columns, y, x, n, t.place_x);
            } else {
                find_places(map, (double)(w.from + y), x, n, &t);
            }
            find_taps(p->mode, w.height, w.cols, n, &t);
            find_offsets(&w, a->shape.dims[rank - 2], a->strides[rank - 2], n, &t);
            for (int64_t f = f0; f < f1; f++)
                sample_linear(&t, n, (const float *)a->data + f * from_frame, (float)p->value,
                              (float *)result->data + f * to_frame + y * result->strides[rank - 2] +
                                  x);
        }
    }
    return MB_STATUS_OK;
}
