/*
** circular_mask: sets what lies outside a circle around the middle of a slice. f32, one slice or a
** stack, any strides; in place if wanted, and then pixels inside are not touched.
*/
#include "ops/corrections/op_circular_mask.h"
#include "ops/op_args.h"

#define PARAMS mb_circular_mask_params

enum { FARTHEST = 1 << 24 };

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 2, 3, "slices (z, y, x), or one (y, x); any strides"),
    MB_FLOAT(radius, 0, 10, 1, "half-width",
             "radius of the circle as a fraction of half the smaller side"),
    MB_FLOAT(value, MB_ANY, 0, NULL, "value outside the circle"),
    MB_VECTOR_OPTION(size, 1, FARTHEST, "px", "whole slice {ny, nx} or n; default that of a"),
    MB_VECTOR_OPTION(origin, 0, FARTHEST, "px",
                     "{y, x} of the first pixel of a in the whole slice, 0-based; default {0, 0}"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "same shape; may be a")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 9, 12}}, params = {radius = 0.8}}",
    "{inputs = {{'f32', 7, 5}}, params = {value = -1, size = {19, 17}, origin = {4, 9}}}",
    "{inputs = {{'f32', 2, 31, 70}}, params = {radius = 0.3, size = {90}, origin = {1, 2}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_circular_mask_params *p = params;
    const mb_shape *shape = &arrays[MB_CIRCULAR_MASK_A].shape;
    if (p->size.count)
        MB_TRY(mb_check_axes("size", &p->size, 2, true));
    if (p->origin.count)
        MB_TRY(mb_check_axes("origin", &p->origin, 2, false));
    MB_TRY(mb_check_whole("size", &p->size));
    MB_TRY(mb_check_whole("origin", &p->origin));
    for (int i = 0; i < 2; i++) {
        const double extent = (double)shape->dims[shape->rank - 2 + i];
        const double begin = p->origin.count ? p->origin.values[i] : 0;
        const double whole = p->size.count ? p->size.values[p->size.count == 2 ? i : 0] : extent;
        if (begin + extent > whole)
            return mb_fail(MB_STATUS_ARGUMENT, p->size.count ? "size" : "origin",
                           "a has %g pixels along %s from pixel %g on, and the whole slice has "
                           "%g; give the size of the whole slice",
                           extent, i ? "x" : "y", begin, whole);
    }
    arrays[MB_CIRCULAR_MASK_RESULT] = arrays[MB_CIRCULAR_MASK_A];
    return MB_STATUS_OK;
}

/* One row: what is inside is one run of pixels. */
static void mask_row(const mb_circle *circle, int64_t y, int64_t nx, float value, const float *from,
                     int64_t from_step, float *to, int64_t to_step)
{
    int64_t first = 0, end = nx;
    while (first < nx && !mb_circle_has(circle, y, first))
        to[first++ * to_step] = value;
    while (end > first && !mb_circle_has(circle, y, end - 1))
        to[--end * to_step] = value;
    if (from != to)
        for (int64_t x = first; x < end; x++)
            to[x * to_step] = from[x * from_step];
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_circular_mask_params *p = call->params;
    const mb_array *a = call->arrays[MB_CIRCULAR_MASK_A];
    mb_array *result = call->arrays[MB_CIRCULAR_MASK_RESULT];
    const int rank = a->shape.rank;
    const int64_t ny = a->shape.dims[rank - 2], nx = a->shape.dims[rank - 1];
    const int64_t slices = rank == 3 ? a->shape.dims[0] : 1;
    const mb_circle circle = mb_circular_mask_circle(p, &a->shape);
    const int threads = slices * ny * nx < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < slices * ny; row++) {
        const int64_t z = row / ny, y = row % ny;
        if (mb_cancelled())
            continue;
        mask_row(&circle, y, nx, (float)p->value,
                 (const float *)a->data + (rank == 3 ? z * a->strides[0] : 0) +
                     y * a->strides[rank - 2],
                 a->strides[rank - 1],
                 (float *)result->data + (rank == 3 ? z * result->strides[0] : 0) +
                     y * result->strides[rank - 2],
                 result->strides[rank - 1]);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_circular_mask = {
    .name = "circular_mask",
    .summary = "Sets what lies outside a circle around the middle of a slice.",
    .doc = "A pixel is inside if the distance of its center from the middle of the whole slice, "
           "((ny - 1) / 2, (nx - 1) / 2), is at most radius times half the smaller side: the mask "
           "of backproject. Pixels inside keep their bits, NaN too. size and origin say where a "
           "part of a slice lies in the whole. out = a works in place.",
    MB_OP_PARTS,
    .strides = MB_STRIDES_ANY,
    .alias = 1u << MB_CIRCULAR_MASK_A,
    .split = mb_stack_split,
};
