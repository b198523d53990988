/*
** maximum_projection: the brightest element along one axis, in the dtype of the array: what
** microscopists look at.
*/
#include "ops/array/op_maximum_projection.h"
#include "ops/op_args.h"

#define PARAMS mb_maximum_projection_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_I32) | MB_BIT(MB_F32), 2,
                MB_MAX_RANK, "array; any strides"),
    MB_INT(axis, -MB_MAX_RANK, MB_MAX_RANK, 1, NULL,
           "axis to project along; 1-based, negative from the end"),
    MB_ARRAY_OUT("result", MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_I32) | MB_BIT(MB_F32), 1,
                 MB_MAX_RANK, "the array without that axis")};

static const char *const samples[] = {"{inputs = {{'f32', 3, 5, 7}}}",
                                      "{inputs = {{'u16', 4, 6, 5}}, params = {axis = -1}}",
                                      "{inputs = {{'u8', 9, 4}}, params = {axis = 2}}"};

static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    const int projected =
        mb_maximum_projection_axis(params, arrays[MB_MAXIMUM_PROJECTION_A].shape.rank);
    const int axis = cut->split->axis;
    cut->axes[MB_MAXIMUM_PROJECTION_RESULT] =
        axis == projected ? -1 : axis - (axis > projected ? 1 : 0);
    return true;
}

static const mb_op_split split[] = MB_SPLIT_AXES(.adapt = adapt, .combine = MB_COMBINE_MAX);

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_maximum_projection_params *p = params;
    const mb_spec *a = &arrays[MB_MAXIMUM_PROJECTION_A];
    int rank = a->shape.rank, axis = mb_maximum_projection_axis(p, rank);
    mb_spec result = *a;
    if (p->axis == 0 || axis < 0 || axis >= rank)
        return mb_fail(MB_STATUS_ARGUMENT, "axis", "axis is %lld; the array has %d axes",
                       (long long)p->axis, rank);
    if (a->shape.dims[axis] < 1)
        return mb_fail(MB_STATUS_SHAPE, "a", "axis %d of a is empty and has no maximum", axis + 1);
    for (int i = axis; i < rank - 1; i++)
        result.shape.dims[i] = a->shape.dims[i + 1];
    result.shape.rank = rank - 1;
    arrays[MB_MAXIMUM_PROJECTION_RESULT] = result;
    return MB_STATUS_OK;
}

/* NaN wins. */
#define PROJECT(type)                                                                              \
    do {                                                                                           \
        const type *s = (const type *)from->data + base;                                           \
        type *t = (type *)to->data + target;                                                       \
        for (int64_t x = 0; x < n; x++)                                                            \
            t[x * to_step] = s[x * step];                                                          \
        for (int64_t k = 1; k < length; k++)                                                       \
            for (int64_t x = 0; x < n; x++) {                                                      \
                type v = s[k * along + x * step];                                                  \
                if (v > t[x * to_step] || v != v)                                                  \
                    t[x * to_step] = v;                                                            \
            }                                                                                      \
    } while (0)

static mb_status run_host(const mb_op_call *call)
{
    const mb_array *from = call->arrays[MB_MAXIMUM_PROJECTION_A];
    const mb_array *to = call->arrays[MB_MAXIMUM_PROJECTION_RESULT];
    int axis = mb_maximum_projection_axis(call->params, from->shape.rank),
        last = to->shape.rank - 1;
    int64_t n = to->shape.dims[last], rows = 1, length = from->shape.dims[axis];
    int64_t along = from->strides[axis], step = from->strides[last < axis ? last : last + 1];
    int64_t to_step = to->strides[last];
    for (int i = 0; i < last; i++)
        rows *= to->shape.dims[i];
    int threads = rows * n * length < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < rows; row++) {
        if (mb_cancelled())
            continue;
        int64_t rest = row, base = 0, target = 0;
        for (int i = last - 1; i >= 0; i--) {
            int64_t index = rest % to->shape.dims[i];
            rest /= to->shape.dims[i];
            target += index * to->strides[i];
            base += index * from->strides[i < axis ? i : i + 1];
        }
        switch (from->dtype) {
        case MB_U8: PROJECT(uint8_t); break;
        case MB_U16: PROJECT(uint16_t); break;
        case MB_I32: PROJECT(int32_t); break;
        default: PROJECT(float); break;
        }
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_maximum_projection = {
    .name = "maximum_projection",
    .summary = "Maximum along one axis, in the type of the array.",
    .doc = "Axis 1 of a volume (z, y, x) gives the usual XY picture. NaN wins.",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_ANY,
};
