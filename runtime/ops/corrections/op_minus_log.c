/*
** minus_log: transmission to attenuation, elementwise: -ln(clip(a, min, max)). f32, any shape; in
** place if wanted.
*/
#include "core/multiversion.h"
#include "ops/corrections/op_minus_log.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"
#include <float.h>
#include <string.h>

#define PARAMS mb_minus_log_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 0, MB_MAX_RANK, "transmission; any strides"),
    MB_FLOAT(min, FLT_MIN, FLT_MAX, 1e-6, NULL, "lower clip bound, positive"),
    MB_FLOAT(max, FLT_MIN, FLT_MAX, 10, NULL, "upper clip bound, above min"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 0, MB_MAX_RANK, "same shape; may be a")};

static const char *const samples[] = {"{inputs = {{'f32', 3, 5, 17}}}",
                                      "{inputs = {{'f32', 101}}, params = {min = 0.1, max = 0.9}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_minus_log_params *p = params;
    if (!((float)p->min < (float)p->max))
        return mb_fail(MB_STATUS_ARGUMENT, "max",
                       "the clip bounds must satisfy 0 < min < max; min is %g, max is %g", p->min,
                       p->max);
    arrays[MB_MINUS_LOG_RESULT] = arrays[MB_MINUS_LOG_A];
    return MB_STATUS_OK;
}

/* -ln(x) for normal x > 0, within 1.5 units in the last place: x = m 2^e with m in [sqrt(1/2),
** sqrt(2)), and the polynomial for ln(1 + f) of the Cephes library (logf.c, S. Moshier).
** Branchless, so that loops over it vectorize. */
static inline float minus_log(float x)
{
    int32_t bits, exponent;
    float m, f, z, y, e;
    memcpy(&bits, &x, sizeof bits);
    exponent = (bits - 0x3f3504f3) >> 23;
    bits -= exponent * (1 << 23);
    memcpy(&m, &bits, sizeof m);
    e = (float)exponent;
    f = m - 1.0f;
    z = f * f;
    y = 7.0376836292e-2f;
    y = y * f - 1.1514610310e-1f;
    y = y * f + 1.1676998740e-1f;
    y = y * f - 1.2420140846e-1f;
    y = y * f + 1.4249322787e-1f;
    y = y * f - 1.6668057665e-1f;
    y = y * f + 2.0000714765e-1f;
    y = y * f - 2.4999993993e-1f;
    y = y * f + 3.3333331174e-1f;
    y = y * f * z + e * -2.12194440e-4f - 0.5f * z;
    return -(f + y + e * 0.693359375f);
}

/* NaN stays NaN: by a mask on the bits, as a comparison would keep the loop from being
** vectorized. */
static inline float clipped(float x, float min, float max)
{
    int32_t bits, result, keep;
    float low = x > min ? x : min;
    float r = minus_log(low < max ? low : max);
    memcpy(&bits, &x, sizeof bits);
    memcpy(&result, &r, sizeof result);
    keep = -((bits & 0x7fffffff) > 0x7f800000);
    result = (result & ~keep) | (bits & keep);
    memcpy(&r, &result, sizeof r);
    return r;
}

/* One function for both, which is compiled for the same instructions: the bits of a value do not
** depend on the strides. */
MB_MULTIVERSION
static void run_piece(float *to, const float *from, const mb_walk_piece *piece, float min,
                      float max)
{
    int64_t n = piece->count, to_stride = piece->stride[0], from_stride = piece->stride[1];
    if (to_stride == 1 && from_stride == 1) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            to[i] = clipped(from[i], min, max);
    } else {
        for (int64_t i = 0; i < n; i++)
            to[i * to_stride] = clipped(from[i * from_stride], min, max);
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_minus_log_params *p = call->params;
    const mb_array *a = call->arrays[MB_MINUS_LOG_A];
    mb_array *result = call->arrays[MB_MINUS_LOG_RESULT];
    const int64_t *strides[] = {result->strides, a->strides};
    mb_walk walk = mb_walk_make(&a->shape, 2, strides, 16384);
    float min = (float)p->min, max = (float)p->max;
    int threads = walk.outer * walk.run < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < walk.pieces; i++) {
        if (mb_cancelled())
            continue;
        mb_walk_piece piece = mb_walk_at(&walk, i);
        run_piece((float *)result->data + piece.offset[0], (const float *)a->data + piece.offset[1],
                  &piece, min, max);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_minus_log = {
    .name = "minus_log",
    .summary = "Transmission to attenuation: -ln(clip(a, min, max)).",
    .doc = "Values below min and above max are clipped before the logarithm. NaN stays NaN. The "
           "input has no unit; the result is an optical depth. out = a works in place.",
    .reference = "Beer and Lambert: I = I0 exp(-integral of mu)",
    MB_OP_PARTS,
    .strides = MB_STRIDES_ANY,
    .alias = 1u << MB_MINUS_LOG_A,
    .split = mb_elements_split,
    .tolerance = 1e-6, /* logarithms of two libraries: a few units in the last place */
};
