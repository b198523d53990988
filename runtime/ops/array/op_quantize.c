/*
** quantize: f32 values as fewer bits for files, and how many did not fit. a (any shape and
** strides) -> result of the same shape, u8, u16 or f16; counts f64[3].
*/
#include "ops/array/op_quantize.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"
#include <float.h>

#define PARAMS mb_quantize_params

static const char *const dtypes[] = {"u8", "u16", "f16", NULL};
static const char *const roundings[] = {"nearest", "down", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 0, MB_MAX_RANK, "values"),
    MB_ENUM_REQUIRED(dtype, dtypes, "element type of the result"),
    MB_FLOAT(low, MB_ANY, 0, NULL, "the value that is stored as 0"),
    MB_FLOAT(high, MB_ANY, 1, NULL,
             "the value that is stored as the largest integer, or as 1 in f16; above low"),
    MB_ENUM(rounding, roundings, MB_QUANTIZE_NEAREST,
            "of integers: to the nearest, ties to even, or down"),
    MB_FLOAT(nonfinite, -FLT_MAX, FLT_MAX, NAN, NULL,
             "what NaN and infinities count as; default: NaN becomes 0, infinities the ends"),
    MB_ARRAY_OUT("result", MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_F16), 0, MB_MAX_RANK,
                 "same shape as a"),
    MB_ARRAY_OUT("counts", MB_BIT(MB_F64), 1, 1, "{values below the range, values above it, NaN}")};

static const mb_op_split split[] = MB_SPLIT_AXES(.combine = MB_COMBINE_SUM);

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 17}}, params = {dtype = 'u16', low = 0.1, high = 0.8}}",
    "{inputs = {{'f32', 101}}, params = {dtype = 'f16', low = 0.25, high = 4}}",
    "{inputs = {{'f32', 7, 1, 3}}, params = {dtype = 'u8', low = -1, high = 2}}",
    "{inputs = {{'f32', 5, 40}}, params = {dtype = 'u8', rounding = 'down', nonfinite = 0.5}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_quantize_params *p = params;
    if (!(p->low < p->high))
        return mb_fail(MB_STATUS_ARGUMENT, "high", "high must lie above low; low is %g, high is %g",
                       p->low, p->high);
    arrays[MB_QUANTIZE_RESULT] =
        (mb_spec){true, mb_quantize_dtype(p->dtype), arrays[MB_QUANTIZE_A].shape};
    arrays[MB_QUANTIZE_COUNTS] = (mb_spec){true, MB_F64, {1, {MB_QUANTIZE_COUNTERS}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    (void)params, (void)arrays;
    mb_planner_slot(planner, "tally", MB_QUANTIZE_TALLY_BYTES, 0, 0);
}

#define STORE(type, expression)                                                                    \
    for (int64_t i = 0; i < piece->count; i++)                                                     \
    ((type *)to)[i * piece->stride[0]] = (expression)
#define FROM from[i * piece->stride[1]]
/* A run of values; what does not fit is noted in `outside`. */
static void store_piece(const mb_quantize_params *p, const mb_walk_piece *piece, void *to,
                        const float *from, unsigned *outside)
{
    const mb_quantize_scale s = mb_quantize_scale_of(p);
    switch (mb_quantize_dtype(p->dtype)) {
    case MB_U8: STORE(uint8_t, (uint8_t)mb_quantize_step(FROM, &s, outside)); break;
    case MB_U16: STORE(uint16_t, (uint16_t)mb_quantize_step(FROM, &s, outside)); break;
    default: STORE(uint16_t, mb_half_from_float(mb_quantize_half(FROM, &s, outside))); break;
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_QUANTIZE_A], *counts = call->arrays[MB_QUANTIZE_COUNTS];
    const mb_array *result = call->arrays[MB_QUANTIZE_RESULT];
    const int64_t *strides[] = {result->strides, a->strides};
    const mb_walk w = mb_walk_make(&a->shape, 2, strides, 1 << 16);
    const size_t bytes = mb_dtype_bytes(result->dtype);
    uint64_t below = 0, above = 0, nan = 0;
    const int threads = mb_array_elements(a) < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : below, above, nan)
    for (int64_t i = 0; i < w.pieces; i++) {
        if (mb_cancelled())
            continue;
        unsigned outside[MB_QUANTIZE_COUNTERS] = {0};
        const mb_walk_piece piece = mb_walk_at(&w, i);
        store_piece(call->params, &piece, (char *)result->data + piece.offset[0] * (int64_t)bytes,
                    (const float *)a->data + piece.offset[1], outside);
        below += outside[MB_QUANTIZE_BELOW];
        above += outside[MB_QUANTIZE_ABOVE];
        nan += outside[MB_QUANTIZE_NAN];
    }
    if (counts) {
        double *tally = counts->data;
        tally[MB_QUANTIZE_BELOW * counts->strides[0]] = (double)below;
        tally[MB_QUANTIZE_ABOVE * counts->strides[0]] = (double)above;
        tally[MB_QUANTIZE_NAN * counts->strides[0]] = (double)nan;
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_quantize = {
    .name = "quantize",
    .summary = "Stores f32 values in fewer bits and counts those that do not fit.",
    .doc =
        "u8, u16: low is stored as 0, high as the largest integer, and values between as the "
        "nearest integer, or rounded down; stored * (high - low) / largest + low is the value. "
        "Values below low and above high are clamped. NaN becomes 0.\n"
        "f16: low is stored as 0 and high as 1; the defaults store values unchanged. Values beyond "
        "+-65504 are clamped. NaN stays NaN. Values below 6e-5 lose accuracy.\n"
        "With nonfinite, NaN and infinities count as that value, in all types.\n"
        "counts is the number of values below, above, and NaN or replaced.",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ANY,
};
