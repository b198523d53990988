/*
** irfft: complex-to-real transform over the trailing one to three axes, batched over the others:
** the inverse of rfft. a c64 (..., n/2 + 1) -> result f32 (..., n). Libraries destroy the input of
** such a transform; here it is kept, by a copy in scratch, unless the caller says consume.
*/
#include "ops/fft/op_irfft.h"
#include "ops/fft/trailing_axes.h"
#include <string.h>

#define PARAMS mb_irfft_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_C64), 1, MB_MAX_RANK, "spectrum (..., n/2 + 1)"),
    MB_TRAILING_ARG,
    MB_INT(n, 0, 1e15, 0, NULL, "samples per row of the result; 0: 2 * (m - 1), which is even"),
    MB_BOOL(consume, false, "destroy the contents of a, which saves a scratch copy"),
    MB_BOOL(in_place, false,
            "out is the memory of a, viewed as real: rows of 2 * (n/2 + 1), n of them samples"),
    MB_BOOL(normalize, true, "divide by the number of points of the result"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 1, MB_MAX_RANK, "real array (..., n)")};

static const char *const samples[] = {
    "{inputs = {{'c64', 3, 9}}}",
    "{inputs = {{'c64', 2, 7, 8}}, params = {axes = 2, n = 15}}",
    "{inputs = {{'c64', 5, 6, 4}}, params = {axes = 3, n = 7}}",
    "{inputs = {{'c64', 3, 2, 9, 11}}, params = {n = 21}}",
    "{inputs = {{'c64', 5, 4, 6, 5}}, params = {axes = 2, n = 9}}",
    "{inputs = {{'c64', 19, 501}}, params = {n = 1001}}"};

MB_TRAILING_REAL_SPLIT;

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_irfft_params *p = params;
    const mb_shape *shape = &arrays[MB_IRFFT_A].shape;
    mb_spec result = {true, MB_F32, *shape};
    int64_t m = shape->dims[shape->rank - 1], n = mb_irfft_extent(p, m);
    MB_TRY(mb_trailing_check(shape, p->axes));
    if (n < 1 || n / 2 + 1 != m)
        return mb_fail(MB_STATUS_ARGUMENT, "n",
                       "a last extent of %lld belongs to n = %lld or %lld, not %lld", (long long)m,
                       (long long)(2 * m - 2), (long long)(2 * m - 1), (long long)n);
    result.shape.dims[shape->rank - 1] = p->in_place ? 2 * m : n;
    arrays[MB_IRFFT_RESULT] = result;
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_irfft_params *p = params;
    const mb_shape *shape = &arrays[MB_IRFFT_A].shape;
    const int64_t last = mb_irfft_extent(p, shape->dims[shape->rank - 1]);
    mb_fft_desc desc = mb_trailing_describe(MB_FFT_C2R, shape, p->axes, last, p->in_place);
    int work;
    mb_planner_fft(planner, &desc, "work", 0, 0, &work);
    mb_planner_slot(planner, "copy",
                    p->in_place || p->consume ? 0 : mb_bytes_mul(mb_shape_elements(shape), 8), 0,
                    0);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_irfft_params *p = call->params;
    const mb_array *a = call->arrays[MB_IRFFT_A];
    mb_array *result = call->arrays[MB_IRFFT_RESULT];
    void *copy = call->slots[MB_IRFFT_COPY];
    if (p->in_place != (a->data == result->data))
        return mb_fail(MB_STATUS_ARGUMENT, "in_place",
                       p->in_place ? "in_place needs out = the memory of a, viewed as real numbers"
                                   : "out is the memory of a; give in_place = true");
    if (copy)
        memcpy(copy, a->data, mb_array_bytes(a));
    MB_TRY(mb_fft_exec(call->device, call->ffts[MB_IRFFT_FFT], copy ? copy : a->data, result->data,
                       call->slots[MB_IRFFT_WORK]));
    if (p->normalize)
        mb_trailing_normalize(call->device, result->data, (int64_t)mb_array_elements(result),
                              mb_irfft_points(p, &a->shape));
    return MB_STATUS_OK;
}

const mb_op mb_op_irfft = {
    .name = "irfft",
    .summary = "Complex-to-real Fourier transform over the last one, two or three axes: the "
               "inverse of rfft.",
    .doc = "The result is divided by its number of points unless normalize = false. An odd last "
           "extent must be given as n: the spectrum does not show it. consume = true saves the "
           "scratch copy that preserves a.\n"
           "In place (in_place = true; out is the memory of a, viewed as real), the rows of the "
           "result have 2 * (n/2 + 1) elements; n of them are samples.",
    .reference = "x[j] = 1/n sum over k of X[k] exp(2 pi i jk/n)",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_CONTIGUOUS,
    .alias = 1u << MB_IRFFT_A,
    .tolerance = 2e-6, /* float transforms of two libraries */
};
