/*
** polynomial: a polynomial of each element, by Horner's rule. f32, any shape and strides; in place
** if wanted.
*/
#include "core/multiversion.h"
#include "ops/corrections/op_polynomial.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"

#define PARAMS mb_polynomial_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 0, MB_MAX_RANK, "values; any strides"),
    MB_VECTOR(coefficients, MB_ANY, NULL,
              "factors of the powers 0, 1, 2, ... of a value; at most 16"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 0, MB_MAX_RANK, "same shape; may be a")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 17}}, params = {coefficients = {0, 1, 0.1, 0.02}}}",
    "{inputs = {{'f32', 101}}, params = {coefficients = {0.5}}}",
    "{inputs = {{'f32', 2, 7}}, params = {coefficients = {1, -2, 0, 0, 0.25}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_vector *c = &((const mb_polynomial_params *)params)->coefficients;
    if (c->count < 1 || c->count > MB_POLYNOMIAL_MOST)
        return mb_fail(MB_STATUS_ARGUMENT, "coefficients",
                       "coefficients has %lld numbers; give 1 to %d, for the powers 0, 1, 2, ...",
                       (long long)c->count, MB_POLYNOMIAL_MOST);
    arrays[MB_POLYNOMIAL_RESULT] = arrays[MB_POLYNOMIAL_A];
    return MB_STATUS_OK;
}

enum { LANES = 64 };

/* One function for all strides: every element passes the same instructions. */
MB_MULTIVERSION
static void evaluate(float *to, int64_t to_step, const float *from, int64_t from_step, int64_t n,
                     const float *c, int64_t terms)
{
    for (int64_t first = 0; first < n; first += LANES) {
        float x[LANES] = {0}, r[LANES];
        const int64_t many = n - first < LANES ? n - first : LANES;
        for (int64_t i = 0; i < many; i++)
            x[i] = from[(first + i) * from_step];
        for (int i = 0; i < LANES; i++)
            r[i] = c[terms - 1];
        for (int64_t k = terms - 2; k >= 0; k--)
            for (int i = 0; i < LANES; i++)
                r[i] = r[i] * x[i] + c[k];
        for (int64_t i = 0; i < many; i++)
            to[(first + i) * to_step] = x[i] == x[i] ? r[i] : x[i];
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_vector *given = &((const mb_polynomial_params *)call->params)->coefficients;
    const mb_array *a = call->arrays[MB_POLYNOMIAL_A];
    mb_array *result = call->arrays[MB_POLYNOMIAL_RESULT];
    const int64_t *strides[] = {result->strides, a->strides};
    const mb_walk walk = mb_walk_make(&a->shape, 2, strides, 16384);
    const int threads = walk.outer * walk.run < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
    float c[MB_POLYNOMIAL_MOST];
    for (int64_t k = 0; k < given->count; k++)
        c[k] = (float)given->values[k];
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < walk.pieces; i++) {
        if (mb_cancelled())
            continue;
        const mb_walk_piece piece = mb_walk_at(&walk, i);
        evaluate((float *)result->data + piece.offset[0], piece.stride[0],
                 (const float *)a->data + piece.offset[1], piece.stride[1], piece.count, c,
                 given->count);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_polynomial = {
    .name = "polynomial",
    .summary = "A polynomial of each element: c0 + c1 a + c2 a^2 + ...",
    .doc = "coefficients are those of the powers 0, 1, 2, ... of an element, in f32, evaluated by "
           "Horner's rule. NaN stays NaN, even where only c0 is given. out = a works in place.",
    .reference = "G. T. Herman, Phys. Med. Biol. 24 (1979) 81: beam hardening by a polynomial",
    MB_OP_PARTS,
    .strides = MB_STRIDES_ANY,
    .alias = 1u << MB_POLYNOMIAL_A,
    .split = mb_elements_split,
    .tolerance = 1e-6, /* products and sums are fused or not */
};
