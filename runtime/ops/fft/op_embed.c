/*
** embed: an image into the padded rows of an in-place transform, in one pass: conversion to float,
** position, and what lies beyond the image's edges.
*/
#include "ops/fft/op_embed.h"
#include "ops/op_args.h"
#include <string.h>

#define PARAMS mb_embed_params

static const char *const boundaries[] = {"zero",   "circular",  "reflect",
                                         "mirror", "replicate", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_F32), 1, MB_MAX_RANK,
                "image; any strides"),
    MB_VECTOR(size, 1, 1e12, "px", "extents of the grid, one per axis"),
    MB_VECTOR_OPTION(before, 0, 1e12, "px",
                     "where the image starts in the grid, one per axis; default 0"),
    MB_ENUM(boundary, boundaries, 0, "values outside the image"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 1, MB_MAX_RANK,
                 "padded rows: last extent 2 * (n/2 + 1), n samples followed by zeros")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 7}}, params = {size = {4, 9, 16}, before = {0, 2, 3}, boundary = "
    "'reflect'}}",
    "{inputs = {{'u16', 5, 4}}, params = {size = {8, 7}}}",
    "{inputs = {{'f32', 11}}, params = {size = {30}, before = {13}, boundary = 'circular'}}",
    "{inputs = {{'u8', 3, 7, 5}}, params = {size = {6, 12, 6}, before = {2, 3, 0}}}",
    "{inputs = {{'f32', 9, 5}}, params = {size = {23, 8}, before = {6, 1}, boundary = "
    "'replicate'}}"};

/* The rows of samples end in room for the spectrum, so the last axis cannot be cut; others where
** what lies beyond an edge comes from the edge. */
static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    const mb_embed_params *p = params;
    const mb_shape *a = &arrays[MB_EMBED_A].shape;
    const int axis = cut->split->axis;
    const bool same = a->dims[axis] == arrays[MB_EMBED_RESULT].shape.dims[axis];
    return axis < a->rank - 1 &&
           (same || p->boundary == MB_EMBED_ZERO || p->boundary == MB_EMBED_REPLICATE);
}

static mb_rows needs(const void *params, const mb_spec *arrays, int axis, mb_rows rows)
{
    const mb_embed_params *p = params;
    const int64_t before = mb_margin_amount(&p->before, axis);
    (void)arrays;
    return (mb_rows){rows.first - before, rows.end - before};
}

static void piece(const mb_spec *arrays, int axis, mb_op_piece *piece, void *params, double *room)
{
    mb_embed_params *p = params;
    const int rank = arrays[MB_EMBED_A].shape.rank;
    double *size = room, *before = room + rank, after;
    for (int i = 0; i < rank; i++) {
        size[i] = p->size.values[i];
        before[i] = (double)mb_margin_amount(&p->before, i);
    }
    mb_grow_piece(piece, piece->rows.first - (int64_t)before[axis], &before[axis], &after);
    size[axis] = before[axis] + (double)(piece->input.end - piece->input.first) + after;
    p->size = (mb_vector){size, rank};
    p->before = (mb_vector){before, rank};
}

static const mb_op_split split[] =
    MB_SPLIT_AXES(.when =
                      "the axis is not the last, and is full or the boundary is zero or replicate",
                  .adapt = adapt, .needs = needs, .piece = piece);

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_embed_params *p = params;
    const mb_shape *a = &arrays[MB_EMBED_A].shape;
    mb_spec result = {true, MB_F32, *a};
    MB_TRY(mb_check_axes("size", &p->size, a->rank, false));
    MB_TRY(mb_check_whole("size", &p->size));
    if (p->before.count)
        MB_TRY(mb_check_axes("before", &p->before, a->rank, false));
    MB_TRY(mb_check_whole("before", &p->before));
    for (int i = 0; i < a->rank; i++) {
        double size = p->size.values[i], before = p->before.count ? p->before.values[i] : 0;
        if (a->dims[i] < 1)
            return mb_fail(MB_STATUS_SHAPE, "a", "axis %d of a is empty", i + 1);
        if (before + (double)a->dims[i] > size)
            return mb_fail(MB_STATUS_ARGUMENT, "size",
                           "axis %d: %lld elements from %g on do not fit a grid of %g", i + 1,
                           (long long)a->dims[i], before, size);
        result.shape.dims[i] = (int64_t)size;
    }
    result.shape.dims[a->rank - 1] = mb_grid_pitch(result.shape.dims[a->rank - 1]);
    arrays[MB_EMBED_RESULT] = result;
    return MB_STATUS_OK;
}

#define COPY(type)                                                                                 \
    do {                                                                                           \
        const type *s = from;                                                                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i * to_step] = (float)s[i * step];                                                  \
    } while (0)
static void copy_row(mb_dtype dtype, const void *from, int64_t step, int64_t n, float *to,
                     int64_t to_step)
{
    if (dtype == MB_U8)
        COPY(uint8_t);
    else if (dtype == MB_U16)
        COPY(uint16_t);
    else if (step == 1 && to_step == 1)
        memcpy(to, from, (size_t)n * sizeof *to);
    else
        COPY(float);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_embed_params *p = call->params;
    const mb_array *a = call->arrays[MB_EMBED_A];
    const mb_array *result = call->arrays[MB_EMBED_RESULT];
    int last = a->shape.rank - 1, mode = mb_embed_pad_mode(p->boundary);
    int64_t size = (int64_t)p->size.values[last], pitch = result->shape.dims[last];
    int64_t n = a->shape.dims[last], before = mb_margin_amount(&p->before, last), rows = 1;
    int64_t bytes = (int64_t)mb_dtype_bytes(a->dtype), step = result->strides[last];
    for (int i = 0; i < last; i++)
        rows *= result->shape.dims[i];
    int threads = rows * pitch < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < rows; row++) {
        if (mb_cancelled())
            continue;
        int64_t rest = row, to = 0, from = 0;
        bool outside = false;
        for (int i = last - 1; i >= 0; i--) {
            int64_t index = rest % result->shape.dims[i];
            int64_t source =
                mb_pad_source(mode, index - mb_margin_amount(&p->before, i), a->shape.dims[i]);
            rest /= result->shape.dims[i];
            outside = outside || source < 0;
            to += index * result->strides[i];
            from += source * a->strides[i];
        }
        float *target = (float *)result->data + to;
        const char *line = (const char *)a->data + from * bytes;
        if (!outside)
            copy_row(a->dtype, line, a->strides[last], n, target + before * step, step);
        for (int64_t x = 0; x < pitch; x++) {
            int64_t source = outside || x >= size ? -1 : mb_pad_source(mode, x - before, n);
            if (!outside && x == before)
                x += n - 1;
            else if (source < 0)
                target[x * step] = 0;
            else
                target[x * step] = target[(before + source) * step];
        }
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_embed = {
    .name = "embed",
    .summary = "Copies an image into the padded rows of an in-place transform, with a boundary.",
    .doc = "The grid has the extents `size`; its rows have 2 * (n/2 + 1) elements, of which n are "
           "samples. The image starts at `before`. Outside the image, boundary continues it: zero, "
           "circular (d | a b c d | a), reflect (b a | a b c d | d c), mirror (c b | a b c d | c "
           "b) or replicate (a a | a b c d | d d), to any distance.",
    .reference = "scipy.ndimage boundary modes constant, wrap, reflect, mirror, nearest",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_ANY,
};
