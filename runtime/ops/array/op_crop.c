/*
** crop: a dense copy of the middle of an array, `before` and `after` elements taken off every axis.
** Any dtype and rank.
*/
#include "ops/array/op_crop.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"
#include <string.h>

#define PARAMS mb_crop_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_ANY_DTYPE, 1, MB_MAX_RANK, "array to crop; any strides"),
    MB_MARGIN_ARGS("take off"),
    MB_ARRAY_OUT("result", MB_ANY_DTYPE, 1, MB_MAX_RANK, "cropped array")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 8, 17}}, params = {before = {0, 2, 3}, after = {1, 0, 5}}}",
    "{inputs = {{'u16', 5, 7}}, params = {before = 1, after = 2}}",
    "{inputs = {{'f32', 5, 8, 9}}, params = {shape = {3, 5, 4}, where = 'center'}}"};

static mb_rows needs(const void *params, const mb_spec *arrays, int axis, mb_rows rows)
{
    const int64_t front =
        mb_crop_front(params, axis, &arrays[MB_CROP_A].shape, &arrays[MB_CROP_RESULT].shape);
    return (mb_rows){rows.first + front, rows.end + front};
}

/* Only rows that stay are in a piece. */
static void piece(const mb_spec *arrays, int axis, mb_op_piece *piece, void *params, double *room)
{
    mb_crop_params *p = params;
    const mb_shape *a = &arrays[MB_CROP_A].shape;
    mb_margins_of_piece(&p->margins, a, &arrays[MB_CROP_RESULT].shape, false, room);
    room[axis] = room[a->rank + axis] = 0;
    piece->skip = 0;
}

static const mb_op_split split[] = MB_SPLIT_AXES(.needs = needs, .piece = piece);

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_margins *m = &((const mb_crop_params *)params)->margins;
    const mb_spec *a = &arrays[MB_CROP_A];
    mb_spec result = *a;
    MB_TRY(mb_margins_check(m, a->shape.rank));
    for (int i = 0; i < a->shape.rank; i++) {
        int64_t n = a->shape.dims[i], before = mb_margin_amount(&m->before, i),
                after = mb_margin_amount(&m->after, i);
        if (m->shape.count && mb_margin_amount(&m->shape, i) > n)
            return mb_fail(MB_STATUS_SHAPE, "shape",
                           "axis %d has %lld elements and cannot be cropped to %lld; pad adds "
                           "elements",
                           i + 1, (long long)n, (long long)mb_margin_amount(&m->shape, i));
        if (before + after > n)
            return mb_fail(
                MB_STATUS_SHAPE, before > n ? "before" : "after",
                "axis %d has %lld elements; %lld before and %lld after cannot be taken off", i + 1,
                (long long)n, (long long)before, (long long)after);
        result.shape.dims[i] = m->shape.count ? mb_margin_amount(&m->shape, i) : n - before - after;
    }
    arrays[MB_CROP_RESULT] = result;
    return MB_STATUS_OK;
}

static void copy_run(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n,
                     int64_t bytes)
{
    if (to_step == bytes && from_step == bytes)
        memcpy(to, from, (size_t)(n * bytes));
    else if (bytes == 4)
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, 4);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, (size_t)bytes);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_crop_params *p = call->params;
    const mb_array *a = call->arrays[MB_CROP_A];
    mb_array *result = call->arrays[MB_CROP_RESULT];
    const int64_t *strides[] = {result->strides, a->strides};
    mb_walk walk = mb_walk_make(&result->shape, 2, strides, 65536);
    int64_t bytes = (int64_t)mb_dtype_bytes(a->dtype), first = 0;
    int threads = walk.outer * walk.run < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
    for (int i = 0; i < a->shape.rank; i++)
        first += mb_crop_front(p, i, &a->shape, &result->shape) * a->strides[i];
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < walk.pieces; i++) {
        if (mb_cancelled())
            continue;
        mb_walk_piece piece = mb_walk_at(&walk, i);
        copy_run((char *)result->data + piece.offset[0] * bytes, piece.stride[0] * bytes,
                 (const char *)a->data + (first + piece.offset[1]) * bytes, piece.stride[1] * bytes,
                 piece.count, bytes);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_crop = {
    .name = "crop",
    .summary = "A dense copy of the middle of an array.",
    .doc = "Takes `before` elements off the front and `after` elements off the end of every axis, "
           "or leaves the extents `shape`. crop undoes pad. A view (a:view) selects the same "
           "elements without a copy.",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_ANY,
};
