/*
** binary: elementwise arithmetic of two arrays, or of an array and a number. Shapes broadcast as in
** numpy: aligned at the last axis, an extent of 1 (or a missing axis) is stretched. Result: the
** broadcast shape, the common dtype.
*/
#include "ops/array/op_binary.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"
#include <complex.h>
#include <math.h>

#define PARAMS mb_binary_params

#define ACCEPTED                                                                                   \
    (MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_I32) | MB_BIT(MB_F32) | MB_BIT(MB_F64) |           \
     MB_BIT(MB_C64) | MB_BIT(MB_C128))

static const char *const functions[] = {"add", "sub", "mul", "div", "min", "max", "pow", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", ACCEPTED, 0, MB_MAX_RANK, "left operand"),
    MB_ENUM_REQUIRED(fn, functions, "the function"),
    MB_ARRAY_IN_OPTION("b", ACCEPTED, 0, MB_MAX_RANK, "right operand, same dtype as a"),
    MB_FLOAT(scalar, MB_ANY, NAN, NULL, "right operand if b is absent; takes the dtype of a"),
    MB_BOOL(reverse, false, "swap the operands: fn(b, a)"),
    MB_ARRAY_OUT("result", ACCEPTED, 0, MB_MAX_RANK, "broadcast shape; may be a or b")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 7}, {'f32', 5, 1}}, params = {fn = 'sub'}}",
    "{inputs = {{'f64', 17}, {'f64', 3, 17}}, params = {fn = 'max'}}",
    "{inputs = {{'c64', 3, 11}}, params = {fn = 'div', scalar = 2, reverse = true}}",
    "{inputs = {{'i32', 2, 13}}, params = {fn = 'mul', scalar = 3}}"};

static mb_status broadcast(const mb_shape *a, const mb_shape *b, mb_shape *out)
{
    char left[80], right[80];
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 1; i <= out->rank; i++) {
        int64_t da = i <= a->rank ? a->dims[a->rank - i] : 1,
                db = i <= b->rank ? b->dims[b->rank - i] : 1;
        if (da != db && da != 1 && db != 1)
            return mb_fail(MB_STATUS_SHAPE, "b",
                           "shapes %s and %s do not broadcast: axis %d from the end has %lld and "
                           "%lld elements",
                           mb_shape_format(a, left, sizeof left),
                           mb_shape_format(b, right, sizeof right), i, (long long)da,
                           (long long)db);
        out->dims[out->rank - i] = da == 1 ? db : da;
    }
    return MB_STATUS_OK;
}

static mb_status check_scalar(double scalar, mb_dtype dtype)
{
    static const double low[] = {0, 0, -2147483648.0}, high[] = {255, 65535, 2147483647.0};
    if (isnan(scalar))
        return mb_fail(MB_STATUS_ARGUMENT, "b",
                       "give b (an array) or scalar (a number that is not NaN)");
    if (mb_dtype_kind(dtype) == MB_CLASS_INT &&
        (scalar != floor(scalar) || scalar < low[dtype] || scalar > high[dtype]))
        return mb_fail(MB_STATUS_ARGUMENT, "scalar",
                       "%g is not a value of %s: convert the array to f32 first", scalar,
                       mb_dtype_name(dtype));
    return MB_STATUS_OK;
}

/* Axes count from the end. An operand that is stretched, or lacks the axis, is whole for every
** piece; the first one must have it. */
static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    const mb_shape *a = &arrays[MB_BINARY_A].shape, *b = &arrays[MB_BINARY_B].shape,
                   *result = &arrays[MB_BINARY_RESULT].shape;
    const int axis = cut->axes[MB_BINARY_A], along = axis + result->rank - a->rank;
    const int other = arrays[MB_BINARY_B].present ? along - (result->rank - b->rank) : -1;
    (void)params;
    cut->axes[MB_BINARY_RESULT] = along;
    cut->axes[MB_BINARY_B] = other >= 0 && b->dims[other] == a->dims[axis] ? other : -1;
    return a->dims[axis] == result->dims[along];
}

static const mb_op_split split[] = MB_SPLIT_AXES(.when = "a is not stretched", .adapt = adapt);

/* Fails, and names the conversion that loses no fraction. */
static mb_status types_differ(mb_dtype a, mb_dtype b)
{
    const bool to_b = mb_dtype_kind(a) == MB_CLASS_INT && mb_dtype_kind(b) != MB_CLASS_INT;
    return mb_fail(MB_STATUS_DTYPE, "b",
                   "a is %s and b is %s: convert one of them first, such as %s:cast(\"%s\")",
                   mb_dtype_name(a), mb_dtype_name(b), to_b ? "a" : "b",
                   mb_dtype_name(to_b ? b : a));
}

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_binary_params *p = params;
    const mb_spec *a = &arrays[MB_BINARY_A], *b = &arrays[MB_BINARY_B];
    mb_dtype_class kind = mb_dtype_kind(a->dtype);
    mb_shape shape = a->shape;
    if (!b->present)
        MB_TRY(check_scalar(p->scalar, a->dtype));
    if (b->present && b->dtype != a->dtype)
        return types_differ(a->dtype, b->dtype);
    if (p->fn == MB_BINARY_DIV && kind == MB_CLASS_INT)
        return mb_fail(MB_STATUS_DTYPE, "a",
                       "div needs real or complex numbers, not %s: convert to f32 first",
                       mb_dtype_name(a->dtype));
    if (p->fn == MB_BINARY_POW && kind != MB_CLASS_REAL)
        return mb_fail(MB_STATUS_DTYPE, "a", "pow needs f32 or f64, not %s: convert first",
                       mb_dtype_name(a->dtype));
    if ((p->fn == MB_BINARY_MIN || p->fn == MB_BINARY_MAX) && kind == MB_CLASS_COMPLEX)
        return mb_fail(MB_STATUS_DTYPE, "a",
                       "complex numbers (%s) have no order: min and max need real ones",
                       mb_dtype_name(a->dtype));
    if (b->present)
        MB_TRY(broadcast(&a->shape, &b->shape, &shape));
    arrays[MB_BINARY_RESULT] = (mb_spec){true, a->dtype, shape};
    return MB_STATUS_OK;
}

/* One loop; x and y are the operands in order. The dense cases get constant strides so that they
** vectorize. */
#define LOOP(type, expression)                                                                     \
    do {                                                                                           \
        type *d = to;                                                                              \
        const type *u = left, *v = right;                                                          \
        if (sd == 1 && su == 1 && sv == 1)                                                         \
            for (int64_t i = 0; i < n; i++) {                                                      \
                type x = u[i], y = v[i];                                                           \
                d[i] = (type)(expression);                                                         \
            }                                                                                      \
        else if (sd == 1 && su == 1 && sv == 0)                                                    \
            for (int64_t i = 0; i < n; i++) {                                                      \
                type x = u[i], y = fixed_right;                                                    \
                d[i] = (type)(expression);                                                         \
            }                                                                                      \
        else if (sd == 1 && su == 0 && sv == 1)                                                    \
            for (int64_t i = 0; i < n; i++) {                                                      \
                type x = fixed_left, y = v[i];                                                     \
                d[i] = (type)(expression);                                                         \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                type x = u[i * su], y = v[i * sv];                                                 \
                d[i * sd] = (type)(expression);                                                    \
            }                                                                                      \
    } while (0)
#define LOOP_DEFINE(name, type, cases)                                                             \
    static void name(int fn, void *to, int64_t sd, const void *left, int64_t su,                   \
                     const void *right, int64_t sv, int64_t n)                                     \
    {                                                                                              \
        type fixed_left = *(const type *)left, fixed_right = *(const type *)right;                 \
        switch (fn) {                                                                              \
            cases default : break;                                                                 \
        }                                                                                          \
    }
#define CASE(fn, type, expression)                                                                 \
    case fn:                                                                                       \
        LOOP(type, expression);                                                                    \
        break;

#define ORDERED(type)                                                                              \
    CASE(MB_BINARY_MIN, type, x < y ? x : y) CASE(MB_BINARY_MAX, type, x > y ? x : y)
/* NaN wins: when x < y is false because one is NaN, take the one that is. */
#define ORDERED_REAL(type)                                                                         \
    CASE(MB_BINARY_MIN, type, x < y || x != x ? x : y)                                             \
    CASE(MB_BINARY_MAX, type, x > y || x != x ? x : y)
#define WRAPPING(type, wide)                                                                       \
    CASE(MB_BINARY_ADD, type, (wide)x + (wide)y)                                                   \
    CASE(MB_BINARY_SUB, type, (wide)x - (wide)y)                                                   \
    CASE(MB_BINARY_MUL, type, (wide)x *(wide)y) ORDERED(type)
#define REAL(type, power)                                                                          \
    CASE(MB_BINARY_ADD, type, x + y)                                                               \
    CASE(MB_BINARY_SUB, type, x - y)                                                               \
    CASE(MB_BINARY_MUL, type, x *y)                                                                \
    CASE(MB_BINARY_DIV, type, x / y) CASE(MB_BINARY_POW, type, power(x, y)) ORDERED_REAL(type)
#define COMPLEX(type)                                                                              \
    CASE(MB_BINARY_ADD, type, x + y)                                                               \
    CASE(MB_BINARY_SUB, type, x - y)                                                               \
    CASE(MB_BINARY_MUL, type, x *y) CASE(MB_BINARY_DIV, type, x / y)

LOOP_DEFINE(loop_u8, uint8_t, WRAPPING(uint8_t, uint32_t))
LOOP_DEFINE(loop_u16, uint16_t, WRAPPING(uint16_t, uint32_t))
LOOP_DEFINE(loop_i32, int32_t, WRAPPING(int32_t, uint32_t))
LOOP_DEFINE(loop_f32, float, REAL(float, powf))
LOOP_DEFINE(loop_f64, double, REAL(double, pow))
LOOP_DEFINE(loop_c64, float complex, COMPLEX(float complex))
LOOP_DEFINE(loop_c128, double complex, COMPLEX(double complex))

typedef void (*loop_function)(int fn, void *to, int64_t sd, const void *left, int64_t su,
                              const void *right, int64_t sv, int64_t n);
static const loop_function loops[MB_DTYPE_COUNT] = {
    [MB_U8] = loop_u8,   [MB_U16] = loop_u16, [MB_I32] = loop_i32,  [MB_F32] = loop_f32,
    [MB_F64] = loop_f64, [MB_C64] = loop_c64, [MB_C128] = loop_c128};

static mb_status run_host(const mb_op_call *call)
{
    const mb_binary_params *p = call->params;
    const mb_array *a = call->arrays[MB_BINARY_A], *b = call->arrays[MB_BINARY_B];
    mb_array *result = call->arrays[MB_BINARY_RESULT];
    int64_t a_strides[MB_MAX_RANK], b_strides[MB_MAX_RANK] = {0};
    const int64_t *strides[] = {result->strides, a_strides, b_strides};
    int64_t bytes = (int64_t)mb_dtype_bytes(a->dtype);
    loop_function loop = loops[a->dtype];
    _Alignas(16) char scalar[16];
    mb_walk walk;
    int threads;
    mb_binary_strides(a, &result->shape, a_strides);
    if (b)
        mb_binary_strides(b, &result->shape, b_strides);
    else
        mb_element_set(a->dtype, scalar, p->scalar, 0);
    walk = mb_walk_make(&result->shape, 3, strides, 16384);
    threads = walk.outer * walk.run < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < walk.pieces; i++) {
        if (mb_cancelled())
            continue;
        mb_walk_piece piece = mb_walk_at(&walk, i);
        char *to = (char *)result->data + piece.offset[0] * bytes;
        const char *left = (const char *)a->data + piece.offset[1] * bytes;
        const char *right = b ? (const char *)b->data + piece.offset[2] * bytes : scalar;
        int64_t right_stride = b ? piece.stride[2] : 0;
        if (p->reverse)
            loop(p->fn, to, piece.stride[0], right, right_stride, left, piece.stride[1],
                 piece.count);
        else
            loop(p->fn, to, piece.stride[0], left, piece.stride[1], right, right_stride,
                 piece.count);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_binary = {
    .name = "binary",
    .summary = "Elementwise arithmetic of two arrays, or of an array and a number.",
    .doc = "add, sub and mul take all types; integers wrap around. div takes real and complex "
           "numbers. min and max take real numbers and integers; NaN wins. pow takes real "
           "numbers.\n"
           "Both arrays have the same dtype. Shapes broadcast as in numpy. A number takes the "
           "dtype of the array; for integer arrays it must be a value of that type.\n"
           "The operators + - * / ^ of arrays call this operator.",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_ANY,
    .alias = 1u << MB_BINARY_A | 1u << MB_BINARY_B,
    .tolerance = 2e-6, /* pow and complex division differ in the last bits; the rest is identical */
};
