/*
** pad: grows every axis by `before` and `after` elements. Modes with the meaning of numpy.pad, also
** for pads longer than the axis. Any dtype and rank. Every destination row is built from one source
** row (or is constant): its middle is a copy, its ends follow mb_pad_source. Mode custom takes the
** sources of the last two axes from the caller.
*/
#include "ops/array/op_pad.h"
#include "ops/op_args.h"
#include <math.h>
#include <string.h>

#define PARAMS mb_pad_params

static const char *const modes[] = {"constant", "edge",   "reflect", "symmetric",
                                    "wrap",     "custom", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_ANY_DTYPE, 1, MB_MAX_RANK, "array to pad; any strides"),
    MB_MARGIN_ARGS("add"),
    MB_ENUM(mode, modes, MB_PAD_CONSTANT,
            "values of the new elements, as in numpy.pad; custom: sources from rows_index and "
            "cols_index"),
    {.name = "value",
     .kind = MB_ARG_VECTOR,
     .rank_max = 2, /* a list of pairs is accepted */
     .offset = offsetof(PARAMS, value),
     .doc =
         "mode constant: the constant (default 0), or {before, after}, or one such pair per axis, "
         "{{1, 2}, {3, 4}}; a corner takes the constant of the last axis"},
    MB_VECTOR_OPTION(rows_index, 1, INT32_MAX, NULL,
                     "mode custom: 1-based source row of each result row"),
    MB_VECTOR_OPTION(cols_index, 1, INT32_MAX, NULL,
                     "mode custom: 1-based source column of each result column"),
    MB_ARRAY_OUT("result", MB_ANY_DTYPE, 1, MB_MAX_RANK, "padded array")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 7}}, params = {mode = 'reflect', before = {0, 2, 3}, after = 9}}",
    "{inputs = {{'u16', 5, 4}}, params = {before = 7, after = 6, mode = 'symmetric'}}",
    "{inputs = {{'c64', 11}}, params = {before = 3, after = 13, mode = 'wrap'}}",
    "{inputs = {{'f32', 3, 5}}, params = {before = {0, 2}, value = 1.5}}",
    "{inputs = {{'f32', 2, 4, 5}}, params = {mode = 'custom', rows_index = {4, 1, 1, 2, 3, 2}, "
    "cols_index = {5, 1, 3}}}",
    "{inputs = {{'f32', 3, 5, 4}}, params = {shape = {5, 8, 9}, where = 'center', value = {{1, 2}, "
    "{3, 4}, {5, 6}}}}",
    "{inputs = {{'u8', 4, 5}}, params = {shape = {7, 6}, where = 'end', value = {8, 9}}}",
    "{inputs = {{'u16', 6, 4}}, params = {mode = 'custom', cols_index = {1, 1, 2, 3, 4, 4, 4}}}"};

static mb_status check_index(const char *name, const mb_vector *index, int64_t extent)
{
    for (int64_t i = 0; i < index->count; i++)
        if (index->values[i] != floor(index->values[i]) || index->values[i] > (double)extent)
            return mb_fail(MB_STATUS_ARGUMENT, name,
                           "element %lld of %s is %g; it must be a whole number of 1 to %lld",
                           (long long)i + 1, name, index->values[i], (long long)extent);
    return MB_STATUS_OK;
}

/* The index arrays are the whole story of mode custom, and belong to no other. */
static mb_status infer_custom(const mb_pad_params *p, mb_spec *arrays)
{
    mb_spec result = arrays[MB_PAD_A];
    const mb_margins *m = &p->margins;
    int rank = result.shape.rank;
    if (p->rows_index.count == 0 && p->cols_index.count == 0)
        return mb_fail(MB_STATUS_ARGUMENT, "cols_index",
                       "mode custom needs rows_index, cols_index or both");
    if (m->before.count || m->after.count || m->shape.count)
        return mb_fail(MB_STATUS_ARGUMENT,
                       m->before.count  ? "before"
                       : m->after.count ? "after"
                                        : "shape",
                       "mode custom takes its extents from rows_index and cols_index, not from "
                       "before, after or shape");
    if (p->rows_index.count && rank < 2)
        return mb_fail(MB_STATUS_ARGUMENT, "rows_index",
                       "a has one axis and takes cols_index only, not rows_index");
    if (p->rows_index.count)
        MB_TRY(check_index("rows_index", &p->rows_index, result.shape.dims[rank - 2]));
    MB_TRY(check_index("cols_index", &p->cols_index, result.shape.dims[rank - 1]));
    for (int i = 0; i < rank; i++)
        if (mb_pad_index(p, i, rank))
            result.shape.dims[i] = mb_pad_index(p, i, rank)->count;
    arrays[MB_PAD_RESULT] = result;
    return MB_STATUS_OK;
}

static mb_status check_value(const mb_vector *value, int rank)
{
    if (value->count <= 2 || value->count == 2 * rank)
        return MB_STATUS_OK;
    return mb_fail(MB_STATUS_ARGUMENT, "value",
                   "value has %lld numbers; give one, {before, after}, or such a pair for each of "
                   "the %d axes",
                   (long long)value->count, rank);
}

static int64_t front(const mb_pad_params *p, const mb_spec *arrays, int axis)
{
    return mb_margin_front(&p->margins, axis, arrays[MB_PAD_A].shape.dims[axis],
                           arrays[MB_PAD_RESULT].shape.dims[axis]);
}

/* What lies beyond an edge must come from the edge. */
static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    const mb_pad_params *p = params;
    const mb_shape *a = &arrays[MB_PAD_A].shape;
    const int axis = cut->split->axis;
    return p->mode == MB_PAD_CUSTOM ? !mb_pad_index(p, axis, a->rank)
                                    : p->mode == MB_PAD_CONSTANT || p->mode == MB_PAD_EDGE ||
                                          a->dims[axis] == arrays[MB_PAD_RESULT].shape.dims[axis];
}

static mb_rows needs(const void *params, const mb_spec *arrays, int axis, mb_rows rows)
{
    const int64_t before = front(params, arrays, axis);
    return (mb_rows){rows.first - before, rows.end - before};
}

static void piece(const mb_spec *arrays, int axis, mb_op_piece *piece, void *params, double *room)
{
    mb_pad_params *p = params;
    const mb_shape *a = &arrays[MB_PAD_A].shape;
    if (p->mode == MB_PAD_CUSTOM)
        return;
    const int64_t start = piece->rows.first - front(p, arrays, axis);
    mb_margins_of_piece(&p->margins, a, &arrays[MB_PAD_RESULT].shape, true, room);
    mb_grow_piece(piece, start, &room[axis], &room[a->rank + axis]);
}

static const mb_op_split split[] =
    MB_SPLIT_AXES(.when = "the axis is not padded, or the mode is constant or edge", .adapt = adapt,
                  .needs = needs, .piece = piece);

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_pad_params *p = params;
    const mb_spec *a = &arrays[MB_PAD_A];
    const mb_margins *m = &p->margins;
    mb_spec result = *a;
    if (p->mode == MB_PAD_CUSTOM) {
        MB_TRY(check_value(&p->value, a->shape.rank));
        return infer_custom(p, arrays);
    }
    if (p->rows_index.count || p->cols_index.count)
        return mb_fail(MB_STATUS_ARGUMENT, p->rows_index.count ? "rows_index" : "cols_index",
                       "rows_index and cols_index need mode custom; the mode is %s",
                       modes[p->mode]);
    MB_TRY(mb_margins_check(m, a->shape.rank));
    MB_TRY(check_value(&p->value, a->shape.rank));
    for (int i = 0; i < a->shape.rank; i++) {
        int64_t n = a->shape.dims[i];
        int64_t amount = m->shape.count
                             ? mb_margin_amount(&m->shape, i) - n
                             : mb_margin_amount(&m->before, i) + mb_margin_amount(&m->after, i);
        if (amount < 0)
            return mb_fail(
                MB_STATUS_SHAPE, "shape",
                "shape: axis %d has %lld elements and cannot be padded to %lld; crop takes "
                "elements off",
                i + 1, (long long)n, (long long)(n + amount));
        if (a->shape.dims[i] == 0 && amount > 0 && p->mode != MB_PAD_CONSTANT)
            return mb_fail(
                MB_STATUS_SHAPE, "a",
                "axis %d of a is empty and mode %s has no value to continue; use mode constant",
                i + 1, modes[p->mode]);
        result.shape.dims[i] += amount;
    }
    arrays[MB_PAD_RESULT] = result;
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_pad_params *p = params;
    (void)arrays; /* the index arrays are empty but in mode custom */
    mb_planner_slot(planner, "rows table", 4 * (uint64_t)p->rows_index.count, 0, 0);
    mb_planner_slot(planner, "cols table", 4 * (uint64_t)p->cols_index.count, 0, 0);
}

/* 0-based, into its slot; NULL where there is no index array. */
static const int32_t *index_table(const mb_op_call *call, const mb_vector *index, int slot)
{
    int32_t *table = call->slots[slot];
    for (int64_t i = 0; table && i < index->count; i++)
        table[i] = (int32_t)index->values[i] - 1;
    return table;
}

static inline void copy_element(char *to, const char *from, size_t bytes)
{
    switch (bytes) { /* constant sizes become single moves */
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memcpy(to, from, bytes); break;
    }
}

/* The constants as elements, before and behind every axis. */
typedef struct pad_constants {
    _Alignas(16) char value[MB_MAX_RANK][2][16];
} pad_constants;

typedef struct row {
    char *to;
    const char *from;           /* the source row's start, or NULL for a row of constants */
    const char *value;          /* of such a row, where the last axis is inside */
    int64_t to_step, from_step; /* bytes */
    int64_t n_out, n, before;
    const int32_t *table;
} row;

static void pad_row(int mode, const row *r, const char (*ends)[16], size_t bytes)
{
    if (r->table && r->from) {
        for (int64_t x = 0; x < r->n_out; x++)
            copy_element(r->to + x * r->to_step, r->from + r->table[x] * r->from_step, bytes);
        return;
    }
    int64_t size = (int64_t)bytes;
    for (int64_t x = 0; x < r->n_out; x++) {
        if (x == r->before && r->n > 0 && r->from) {
            if (r->to_step == size && r->from_step == size)
                memcpy(r->to + x * r->to_step, r->from, (size_t)(r->n * size));
            else
                for (int64_t i = 0; i < r->n; i++)
                    copy_element(r->to + (x + i) * r->to_step, r->from + i * r->from_step, bytes);
            x += r->n - 1;
            continue;
        }
        int64_t place = x - r->before, source = r->from ? mb_pad_source(mode, place, r->n) : -1;
        const char *value = place < 0 ? ends[0] : place >= r->n ? ends[1] : r->value;
        copy_element(r->to + x * r->to_step, source < 0 ? value : r->from + source * r->from_step,
                     bytes);
    }
}

/* Row number `index` of the result, over all axes but the last. */
static row find_row(const mb_op_call *call, int64_t index, const pad_constants *constants,
                    const int32_t *row_table)
{
    const mb_pad_params *p = call->params;
    const mb_array *a = call->arrays[MB_PAD_A], *result = call->arrays[MB_PAD_RESULT];
    const int last = a->shape.rank - 1;
    const int64_t bytes = (int64_t)mb_dtype_bytes(a->dtype);
    int64_t to = 0, from = 0;
    bool outside = a->shape.dims[last] == 0, named = false;
    row r = {.value = constants->value[last][0],
             .to_step = result->strides[last] * bytes,
             .from_step = a->strides[last] * bytes,
             .n_out = result->shape.dims[last],
             .n = a->shape.dims[last]};
    r.before = mb_margin_front(&p->margins, last, r.n, r.n_out);
    for (int i = last - 1; i >= 0; i--) {
        int64_t n_out = result->shape.dims[i], n = a->shape.dims[i], at = index % n_out;
        int64_t place = at - mb_margin_front(&p->margins, i, n, n_out);
        int64_t source =
            i == last - 1 && row_table ? row_table[at] : mb_pad_source(p->mode, place, n);
        index /= n_out;
        if (source < 0 && !named) /* the last axis that is outside says which constant */
            r.value = constants->value[i][place >= 0];
        named = named || source < 0;
        outside = outside || source < 0;
        to += at * result->strides[i];
        from += source * a->strides[i];
    }
    r.to = (char *)result->data + to * bytes;
    r.from = outside ? NULL : (const char *)a->data + from * bytes;
    return r;
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_pad_params *p = call->params;
    const mb_array *a = call->arrays[MB_PAD_A], *result = call->arrays[MB_PAD_RESULT];
    const int last = a->shape.rank - 1;
    int64_t rows = 1;
    pad_constants constants;
    const int32_t *row_table = index_table(call, &p->rows_index, MB_PAD_ROWS_TABLE);
    const int32_t *col_table = index_table(call, &p->cols_index, MB_PAD_COLS_TABLE);
    for (int i = 0; i <= last; i++)
        for (int side = 0; side < 2; side++)
            mb_element_set(a->dtype, constants.value[i][side], mb_pad_value(p, i, side), 0);
    for (int i = 0; i < last; i++)
        rows *= result->shape.dims[i];
    const int threads = rows * result->shape.dims[last] < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t index = 0; index < rows; index++) {
        if (mb_cancelled())
            continue;
        row r = find_row(call, index, &constants, row_table);
        r.table = col_table;
        pad_row(p->mode, &r, constants.value[last], mb_dtype_bytes(a->dtype));
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_pad = {
    .name = "pad",
    .summary = "Grows an array on every side: constant, edge, reflect, symmetric or wrap.",
    .doc =
        "before and after count elements: one number per axis, or one for all axes. Alternatively "
        "shape gives the extents of the result. The modes are those of numpy.pad:\n"
        "constant 0 0 | a b c | 0 0, edge a a | a b c | c c, reflect c b | a b c | b a, symmetric "
        "b a | a b c | c b, wrap b c | a b c | a b. A pad may be longer than the axis.\n"
        "custom: result[..., y, x] = a[..., rows_index[y], cols_index[x]], for example a pad and a "
        "roll to FFT order in one step. An axis without an index array keeps its elements.",
    .reference = "numpy.pad",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ANY,
};
