/*
** convert: element types, linear scaling, strided copies. a (any shape, strides, dtype) -> result
** of the same shape. Values pass through double, which holds every accepted type exactly. Layouts
** that differ in their dense axis are moved in square tiles, so that both sides are touched a cache
** line at a time.
*/
#include "ops/array/op_convert.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"
#include <string.h>

#define PARAMS mb_convert_params

enum { BLOCK = 256, TILE = 32 };

static const char *const dtypes[] = {
#define MB_DTYPE(id, name, bytes, cls) name,
    MB_DTYPES(MB_DTYPE)
#undef MB_DTYPE
        NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_ANY_DTYPE, 0, MB_MAX_RANK, "array to convert or copy; any strides"),
    MB_ENUM_REQUIRED(dtype, dtypes, "element type of the result"),
    MB_FLOAT(scale, MB_ANY, 1, NULL, "factor applied to every value before the offset"),
    MB_FLOAT(offset, MB_ANY, 0, NULL, "added to the (real part of the) scaled value"),
    MB_ARRAY_OUT("result", MB_ANY_DTYPE, 0, MB_MAX_RANK, "same shape as a")};

static const char *const samples[] = {
    "{inputs = {{'u16', 3, 5, 17}}, params = {dtype = 'f32', scale = 0.5, offset = -1}}",
    "{inputs = {{'f32', 7, 33}}, params = {dtype = 'u8', scale = 40}}",
    "{inputs = {{'f32', 11, 13}}, params = {dtype = 'c64'}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_convert_params *p = params;
    const mb_spec *a = &arrays[MB_CONVERT_A];
    if (mb_dtype_kind(a->dtype) == MB_CLASS_COMPLEX &&
        mb_dtype_kind((mb_dtype)p->dtype) != MB_CLASS_COMPLEX)
        return mb_fail(MB_STATUS_DTYPE, "dtype",
                       "cannot convert %s to %s: a complex value has two parts; take the real or "
                       "imaginary part as a view first, or unary 'abs' for the magnitude",
                       mb_dtype_name(a->dtype), mb_dtype_name((mb_dtype)p->dtype));
    arrays[MB_CONVERT_RESULT] = (mb_spec){true, (mb_dtype)p->dtype, a->shape};
    return MB_STATUS_OK;
}

#define READ(type, expression)                                                                     \
    do {                                                                                           \
        const type *s = from;                                                                      \
        if (stride == 1)                                                                           \
            for (int64_t i = 0; i < n; i++)                                                        \
                values[i] = expression(s[i]);                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                values[i] = expression(s[i * stride]);                                             \
    } while (0)
#define READ_COMPLEX(type)                                                                         \
    do {                                                                                           \
        const type *s = from;                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                          \
            values[2 * i] = (double)s[2 * i * stride];                                             \
            values[2 * i + 1] = (double)s[2 * i * stride + 1];                                     \
        }                                                                                          \
    } while (0)

/* n elements of `from`, `stride` elements apart, as doubles: two per element when complex. */
static void read_run(mb_dtype dtype, const void *from, int64_t stride, int64_t n, double *values)
{
    switch (dtype) {
    case MB_U8: READ(uint8_t, (double)); break;
    case MB_U16: READ(uint16_t, (double)); break;
    case MB_I32: READ(int32_t, (double)); break;
    case MB_F16: READ(uint16_t, (double)mb_half_to_float); break;
    case MB_F32: READ(float, (double)); break;
    case MB_F64: READ(double, (double)); break;
    case MB_C64: READ_COMPLEX(float); break;
    case MB_C128: READ_COMPLEX(double); break;
    default: break;
    }
}

/* Nearest integer, ties to even, clamped to [low, high]; NaN gives low. Adding 1.5 * 2^52 leaves no
** room for a fraction. */
static inline double round_clamp(double value, double low, double high)
{
    const double magic = 6755399441055744.0;
    value = value > low ? value : low;
    value = value < high ? value : high;
    return (value + magic) - magic;
}

#define WRITE(type, expression)                                                                    \
    do {                                                                                           \
        type *d = to;                                                                              \
        if (stride == 1 && step == 1)                                                              \
            for (int64_t i = 0; i < n; i++)                                                        \
                d[i] = expression(values[i]);                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                d[i * stride] = expression(values[i * step]);                                      \
    } while (0)
#define WRITE_COMPLEX(type)                                                                        \
    do {                                                                                           \
        type *d = to;                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            d[2 * i * stride] = (type)values[i * step];                                            \
            d[2 * i * stride + 1] = parts == 2 ? (type)values[i * step + 1] : 0;                   \
        }                                                                                          \
    } while (0)
#define TO_U8(v) (uint8_t) round_clamp(v, 0, 255)
#define TO_U16(v) (uint16_t) round_clamp(v, 0, 65535)
#define TO_I32(v) (int32_t)((v) == (v) ? round_clamp(v, -2147483648.0, 2147483647.0) : 0)
#define TO_F16(v) mb_half_from_float((float)(v))

/* The other way; `values` are `step` doubles apart, with `parts` (1 real, 2 complex) of them per
** element. */
static void write_run(mb_dtype dtype, void *to, int64_t stride, int64_t n, const double *values,
                      int64_t step, int parts)
{
    switch (dtype) {
    case MB_U8: WRITE(uint8_t, TO_U8); break;
    case MB_U16: WRITE(uint16_t, TO_U16); break;
    case MB_I32: WRITE(int32_t, TO_I32); break;
    case MB_F16: WRITE(uint16_t, TO_F16); break;
    case MB_F32: WRITE(float, (float)); break;
    case MB_F64: WRITE(double, (double)); break;
    case MB_C64: WRITE_COMPLEX(float); break;
    case MB_C128: WRITE_COMPLEX(double); break;
    default: break;
    }
}

static void scale_values(const mb_convert_params *p, double *values, int64_t n, int parts)
{
    if (p->scale == 1 && p->offset == 0)
        return;
    for (int64_t i = 0; i < n * parts; i++)
        values[i] *= p->scale;
    for (int64_t i = 0; i < n * parts; i += parts)
        values[i] += p->offset;
}

static void convert_piece(const mb_convert_params *p, const mb_array *a, mb_array *result,
                          const mb_walk *walk, int64_t index)
{
    mb_walk_piece piece = mb_walk_at(walk, index);
    size_t in_bytes = mb_dtype_bytes(a->dtype), out_bytes = mb_dtype_bytes(result->dtype);
    const char *from = (const char *)a->data + piece.offset[1] * (int64_t)in_bytes;
    char *to = (char *)result->data + piece.offset[0] * (int64_t)out_bytes;
    int parts = mb_dtype_kind(a->dtype) == MB_CLASS_COMPLEX ? 2 : 1;
    double values[2 * BLOCK];
    if (a->dtype == result->dtype && piece.stride[0] == 1 && piece.stride[1] == 1 &&
        p->scale == 1 && p->offset == 0) {
        memmove(to, from, (size_t)piece.count * in_bytes);
        return;
    }
    for (int64_t done = 0; done < piece.count; done += BLOCK) {
        int64_t n = piece.count - done < BLOCK ? piece.count - done : BLOCK;
        read_run(a->dtype, from + done * piece.stride[1] * (int64_t)in_bytes, piece.stride[1], n,
                 values);
        scale_values(p, values, n, parts);
        write_run(result->dtype, to + done * piece.stride[0] * (int64_t)out_bytes, piece.stride[0],
                  n, values, parts, parts);
    }
}

/* The source is dense along walk axis `dense`, the destination along the last one: square tiles
** over the two. */
static void convert_tiled(const mb_convert_params *p, const mb_array *a, mb_array *result,
                          const mb_walk *walk, int dense, int threads)
{
    int last = walk->rank - 1;
    int64_t nx = walk->dims[last], ny = walk->dims[dense];
    int64_t tiles_x = (nx + TILE - 1) / TILE, tiles_y = (ny + TILE - 1) / TILE;
    int64_t others = walk->outer / ny;
    int64_t in_bytes = (int64_t)mb_dtype_bytes(a->dtype),
            out_bytes = (int64_t)mb_dtype_bytes(result->dtype);
    int parts = mb_dtype_kind(a->dtype) == MB_CLASS_COMPLEX ? 2 : 1;
    const int64_t *to_strides = walk->strides[0], *from_strides = walk->strides[1];
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t item = 0; item < others * tiles_y * tiles_x; item++) {
        if (mb_cancelled())
            continue;
        double values[TILE][2 * TILE]; /* one row per step along the last axis */
        int64_t x0 = item % tiles_x * TILE, y0 = item / tiles_x % tiles_y * TILE,
                other = item / tiles_x / tiles_y;
        int64_t wide = nx - x0 < TILE ? nx - x0 : TILE, high = ny - y0 < TILE ? ny - y0 : TILE;
        int64_t to_at = x0 * to_strides[last] + y0 * to_strides[dense];
        int64_t from_at = x0 * from_strides[last] + y0 * from_strides[dense];
        for (int i = last - 1; i >= 0; i--) {
            if (i == dense)
                continue;
            to_at += other % walk->dims[i] * to_strides[i];
            from_at += other % walk->dims[i] * from_strides[i];
            other /= walk->dims[i];
        }
        for (int64_t x = 0; x < wide; x++) {
            read_run(a->dtype,
                     (const char *)a->data + (from_at + x * from_strides[last]) * in_bytes,
                     from_strides[dense], high, values[x]);
            scale_values(p, values[x], high, parts);
        }
        for (int64_t y = 0; y < high; y++)
            write_run(result->dtype,
                      (char *)result->data + (to_at + y * to_strides[dense]) * out_bytes,
                      to_strides[last], wide, &values[0][y * parts], 2 * TILE, parts);
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_convert_params *p = call->params;
    const mb_array *a = call->arrays[MB_CONVERT_A];
    mb_array *result = call->arrays[MB_CONVERT_RESULT];
    const int64_t *strides[] = {result->strides, a->strides};
    mb_walk walk = mb_walk_make(&a->shape, 2, strides, 65536);
    int last = walk.rank - 1, dense = last;
    int threads = walk.outer * walk.run < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
    if (walk.pieces == 0)
        return MB_STATUS_OK;
    for (int i = 0; i < last; i++)
        if (mb_walk_abs(walk.strides[1][i]) < mb_walk_abs(walk.strides[1][dense]) &&
            walk.dims[i] >= 8)
            dense = i;
    if (dense != last && walk.run >= 8 && walk.strides[1][dense] != 0) {
        convert_tiled(p, a, result, &walk, dense, threads);
        return MB_STATUS_OK;
    }
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < walk.pieces; i++)
        if (!mb_cancelled())
            convert_piece(p, a, result, &walk, i);
    return MB_STATUS_OK;
}

const mb_op mb_op_convert = {
    .name = "convert",
    .summary = "Changes the element type, with optional linear scaling; also copies any view.",
    .doc = "result = value * scale + offset, computed in double precision. Integer results are "
           "rounded to nearest (ties to even) and clamped to the range of the type; NaN becomes "
           "0.\n"
           "Real to complex sets the imaginary part to 0. Complex to real is an error.\n"
           "With the dtype of the input, the result is a dense copy of any view: permuted, "
           "reversed, stepped or broadcast.",
    MB_OP_PARTS,
    .strides = MB_STRIDES_ANY,
    .split = mb_elements_split,
    .tolerance =
        1e-7, /* one rounding to float may differ where the device fuses multiply and add */
};
