/*
** fill: sets every element of an array (any strides, any dtype) to one value, in place.
*/
#include "ops/array/op_fill.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"
#include <math.h>
#include <string.h>

#define PARAMS mb_fill_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("a", MB_ANY_DTYPE, 0, MB_MAX_RANK, "array to fill; any strides"),
    MB_FLOAT_REQUIRED(value, MB_ANY, NAN, NULL,
                      "the value; for integers rounded to nearest even and clamped, NaN becomes 0"),
    MB_FLOAT(imag, MB_ANY, 0, NULL, "imaginary part; complex arrays only")};

static const char *const samples[] = {"{inputs = {{'f32', 3, 17}}, params = {value = 2.5}}",
                                      "{inputs = {{'u16', 5, 7}}, params = {value = 70000}}",
                                      "{inputs = {{'c64', 13}}, params = {value = 1, imag = -2}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_fill_params *p = params;
    if (p->imag != 0 && mb_dtype_kind(arrays[MB_FILL_A].dtype) != MB_CLASS_COMPLEX)
        return mb_fail(MB_STATUS_DTYPE, "imag",
                       "imag is %g and the array is %s; only complex arrays have an imaginary part",
                       p->imag, mb_dtype_name(arrays[MB_FILL_A].dtype));
    return MB_STATUS_OK;
}

/* A run of elements of `bytes` each, `stride` elements apart. */
static void fill_run(char *to, int64_t stride, int64_t count, const char *value, size_t bytes)
{
    bool same = true; /* all bytes of the value equal, as in 0: one memset */
    for (size_t i = 1; i < bytes; i++)
        same = same && value[i] == value[0];
    if (same && stride == 1) {
        memset(to, value[0], (size_t)count * bytes);
        return;
    }
    switch (bytes) {
    case 2: {
        uint16_t v;
        memcpy(&v, value, 2);
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)(void *)to)[i * stride] = v;
        break;
    }
    case 4: {
        uint32_t v;
        memcpy(&v, value, 4);
        for (int64_t i = 0; i < count; i++)
            ((uint32_t *)(void *)to)[i * stride] = v;
        break;
    }
    case 8: {
        uint64_t v;
        memcpy(&v, value, 8);
        for (int64_t i = 0; i < count; i++)
            ((uint64_t *)(void *)to)[i * stride] = v;
        break;
    }
    default:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + i * stride * (int64_t)bytes, value, bytes);
        break;
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_fill_params *p = call->params;
    mb_array *a = call->arrays[MB_FILL_A];
    const int64_t *strides[] = {a->strides};
    mb_walk walk = mb_walk_make(&a->shape, 1, strides, 65536);
    size_t bytes = mb_dtype_bytes(a->dtype);
    _Alignas(16) char value[16];
    int threads = walk.outer * walk.run < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
    mb_element_set(a->dtype, value, p->value, p->imag);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < walk.pieces; i++) {
        if (mb_cancelled())
            continue;
        mb_walk_piece piece = mb_walk_at(&walk, i);
        fill_run((char *)a->data + piece.offset[0] * (int64_t)bytes, piece.stride[0], piece.count,
                 value, bytes);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_fill = {
    .name = "fill",
    .summary = "Sets every element of an array to one value, in place.",
    .doc = "The value is converted to the element type as in `convert`: rounded and clamped for "
           "integers.",
    MB_OP_PARTS,
    .split = mb_elements_split,
    .strides = MB_STRIDES_ANY,
};
