/*
** unary: elementwise functions of one array. Result: the same shape and dtype, but for the
** magnitude of complex numbers, which is real.
*/
#include "ops/array/op_unary.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"
#include <complex.h>
#include <math.h>

#define PARAMS mb_unary_params

#define ACCEPTED                                                                                   \
    (MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_I32) | MB_BIT(MB_F32) | MB_BIT(MB_F64) |           \
     MB_BIT(MB_C64) | MB_BIT(MB_C128))

static const char *const functions[] = {"neg",  "abs",    "exp",        "log",
                                        "sqrt", "square", "reciprocal", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN(
        "a", ACCEPTED, 0, MB_MAX_RANK,
        "the array; exp, log, sqrt and reciprocal need f32 or f64; neg takes no unsigned integers"),
    MB_ENUM_REQUIRED(fn, functions, "the function"),
    MB_ARRAY_OUT("result", ACCEPTED, 0, MB_MAX_RANK, "same shape; may be a")};

static const char *const samples[] = {"{inputs = {{'f32', 3, 5, 7}}, params = {fn = 'exp'}}",
                                      "{inputs = {{'i32', 17}}, params = {fn = 'square'}}",
                                      "{inputs = {{'c64', 3, 11}}, params = {fn = 'abs'}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_unary_params *p = params;
    const mb_spec *a = &arrays[MB_UNARY_A];
    mb_dtype dtype = a->dtype;
    bool plain = p->fn == MB_UNARY_NEG || p->fn == MB_UNARY_ABS || p->fn == MB_UNARY_SQUARE;
    if (!plain && mb_dtype_kind(dtype) != MB_CLASS_REAL)
        return mb_fail(MB_STATUS_DTYPE, "a", "%s needs f32 or f64, not %s: convert first",
                       functions[p->fn], mb_dtype_name(dtype));
    if (p->fn == MB_UNARY_NEG && (dtype == MB_U8 || dtype == MB_U16))
        return mb_fail(MB_STATUS_DTYPE, "a",
                       "neg needs a signed type, not %s: convert to i32 or f32 first",
                       mb_dtype_name(dtype));
    if (p->fn == MB_UNARY_ABS && mb_dtype_kind(dtype) == MB_CLASS_COMPLEX)
        dtype = dtype == MB_C64 ? MB_F32 : MB_F64;
    arrays[MB_UNARY_RESULT] = (mb_spec){true, dtype, a->shape};
    return MB_STATUS_OK;
}

#define LOOP(type, out, expression)                                                                \
    do {                                                                                           \
        const type *s = from;                                                                      \
        out *d = to;                                                                               \
        if (sd == 1 && ss == 1)                                                                    \
            for (int64_t i = 0; i < n; i++) {                                                      \
                type x = s[i];                                                                     \
                d[i] = (out)(expression);                                                          \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                type x = s[i * ss];                                                                \
                d[i * sd] = (out)(expression);                                                     \
            }                                                                                      \
        return;                                                                                    \
    } while (0)

#define REAL(type, f)                                                                              \
    switch (fn) {                                                                                  \
    case MB_UNARY_NEG: LOOP(type, type, -x);                                                       \
    case MB_UNARY_ABS: LOOP(type, type, fabs##f(x));                                               \
    case MB_UNARY_EXP: LOOP(type, type, exp##f(x));                                                \
    case MB_UNARY_LOG: LOOP(type, type, log##f(x));                                                \
    case MB_UNARY_SQRT: LOOP(type, type, sqrt##f(x));                                              \
    case MB_UNARY_SQUARE: LOOP(type, type, x *x);                                                  \
    case MB_UNARY_RECIPROCAL: LOOP(type, type, 1 / x);                                             \
    default: return;                                                                               \
    }
/* The least i32 is its own negative, as wrapping arithmetic has it. */
#define INTEGER(type)                                                                              \
    switch (fn) {                                                                                  \
    case MB_UNARY_NEG: LOOP(type, type, 0u - (uint32_t)x);                                         \
    case MB_UNARY_ABS: LOOP(type, type, x < 0 ? 0u - (uint32_t)x : (uint32_t)x);                   \
    case MB_UNARY_SQUARE: LOOP(type, type, (uint32_t)x *(uint32_t)x);                              \
    default: return;                                                                               \
    }
#define COMPLEX(type, out, magnitude)                                                              \
    switch (fn) {                                                                                  \
    case MB_UNARY_NEG: LOOP(type, type, -x);                                                       \
    case MB_UNARY_ABS: LOOP(type, out, magnitude(x));                                              \
    case MB_UNARY_SQUARE: LOOP(type, type, x *x);                                                  \
    default: return;                                                                               \
    }

/* uint8_t and uint16_t are never < 0, which the compiler would remark on. */
#define UNSIGNED(type)                                                                             \
    switch (fn) {                                                                                  \
    case MB_UNARY_ABS: LOOP(type, type, x);                                                        \
    case MB_UNARY_SQUARE: LOOP(type, type, (uint32_t)x *(uint32_t)x);                              \
    default: return;                                                                               \
    }

static void run_u8(int fn, void *to, int64_t sd, const void *from, int64_t ss, int64_t n)
{
    UNSIGNED(uint8_t)
}
static void run_u16(int fn, void *to, int64_t sd, const void *from, int64_t ss, int64_t n)
{
    UNSIGNED(uint16_t)
}
static void run_i32(int fn, void *to, int64_t sd, const void *from, int64_t ss, int64_t n)
{
    INTEGER(int32_t)
}
static void run_f32(int fn, void *to, int64_t sd, const void *from, int64_t ss, int64_t n)
{
    REAL(float, f)
}
static void run_f64(int fn, void *to, int64_t sd, const void *from, int64_t ss, int64_t n)
{
    REAL(double, )
}
static void run_c64(int fn, void *to, int64_t sd, const void *from, int64_t ss, int64_t n)
{
    COMPLEX(float complex, float, cabsf)
}
static void run_c128(int fn, void *to, int64_t sd, const void *from, int64_t ss, int64_t n)
{
    COMPLEX(double complex, double, cabs)
}

typedef void (*run_function)(int fn, void *to, int64_t sd, const void *from, int64_t ss, int64_t n);
static const run_function runs[MB_DTYPE_COUNT] = {
    [MB_U8] = run_u8,   [MB_U16] = run_u16, [MB_I32] = run_i32,  [MB_F32] = run_f32,
    [MB_F64] = run_f64, [MB_C64] = run_c64, [MB_C128] = run_c128};

static mb_status run_host(const mb_op_call *call)
{
    const mb_unary_params *p = call->params;
    const mb_array *a = call->arrays[MB_UNARY_A];
    mb_array *result = call->arrays[MB_UNARY_RESULT];
    const int64_t *strides[] = {result->strides, a->strides};
    mb_walk walk = mb_walk_make(&a->shape, 2, strides, 16384);
    int64_t in_bytes = (int64_t)mb_dtype_bytes(a->dtype),
            out_bytes = (int64_t)mb_dtype_bytes(result->dtype);
    int threads = walk.outer * walk.run < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
    run_function run = runs[a->dtype];
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < walk.pieces; i++) {
        if (mb_cancelled())
            continue;
        mb_walk_piece piece = mb_walk_at(&walk, i);
        run(p->fn, (char *)result->data + piece.offset[0] * out_bytes, piece.stride[0],
            (const char *)a->data + piece.offset[1] * in_bytes, piece.stride[1], piece.count);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_unary = {
    .name = "unary",
    .summary = "Elementwise functions: neg, abs, exp, log, sqrt, square, reciprocal.",
    .doc = "neg, abs and square take all types, except that neg takes no unsigned integers. The "
           "other functions take f32 and f64. abs of a complex array is its magnitude, in f32 or "
           "f64. Values outside the domain of a function give NaN or infinity, as in C.",
    MB_OP_PARTS,
    .strides = MB_STRIDES_ANY,
    .alias = 1u << MB_UNARY_A,
    .split = mb_elements_split,
    .tolerance =
        1e-6, /* expf and logf differ by a unit or two in the last place between libraries */
};
