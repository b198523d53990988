/*
** fft: complex transform over the trailing one to three axes, batched over the others. a c64 ->
** result c64, same shape.
*/
#include "ops/fft/op_fft.h"
#include "ops/fft/trailing_axes.h"

#define PARAMS mb_fft_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_C64), 1, MB_MAX_RANK, "complex array"), MB_TRAILING_ARG,
    MB_BOOL(inverse, false, "exp(+2 pi i jk/n) instead of exp(-2 pi i jk/n)"),
    MB_BOOL(normalize, true, "divide an inverse transform by its number of points"),
    MB_ARRAY_OUT("result", MB_BIT(MB_C64), 1, MB_MAX_RANK, "same shape; may be a")};

static const char *const samples[] = {
    "{inputs = {{'c64', 3, 16}}}",
    "{inputs = {{'c64', 2, 7, 15}}, params = {axes = 2, inverse = true}}",
    "{inputs = {{'c64', 5, 6, 7}}, params = {axes = 3}}",
    "{inputs = {{'c64', 3, 2, 9, 21}}}",
    "{inputs = {{'c64', 5, 4, 6, 7}}, params = {axes = 2}}",
    "{inputs = {{'c64', 19, 1001}}, params = {inverse = true}}"};

MB_TRAILING_SPLIT;

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_fft_params *p = params;
    const mb_shape *shape = &arrays[MB_FFT_OP_A].shape;
    MB_TRY(mb_trailing_check(shape, p->axes));
    arrays[MB_FFT_OP_RESULT] = arrays[MB_FFT_OP_A];
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_fft_params *p = params;
    const mb_shape *shape = &arrays[MB_FFT_OP_A].shape;
    const int64_t last = shape->dims[shape->rank - 1];
    mb_fft_kind kind = p->inverse ? MB_FFT_C2C_INVERSE : MB_FFT_C2C_FORWARD;
    mb_fft_desc in_place = mb_trailing_describe(kind, shape, p->axes, last, true);
    mb_fft_desc apart = mb_trailing_describe(kind, shape, p->axes, last, false);
    int work;
    mb_planner_fft(planner, &in_place, "in-place work", 0, 0, &work);
    if (planner->device->facts.compute_capability == 0)
        mb_planner_fft(planner, &apart, "work", 1, 1, &work);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_fft_params *p = call->params;
    const mb_array *a = call->arrays[MB_FFT_OP_A];
    mb_array *result = call->arrays[MB_FFT_OP_RESULT];
    int which = a->data == result->data ? MB_FFT_OP_IN_PLACE : MB_FFT_OP_APART;
    MB_TRY(mb_fft_exec(call->device, call->ffts[which], a->data, result->data, call->slots[which]));
    if (p->inverse && p->normalize)
        mb_trailing_normalize(call->device, result->data, 2 * (int64_t)mb_array_elements(result),
                              mb_fft_op_points(&a->shape, p->axes));
    return MB_STATUS_OK;
}

const mb_op mb_op_fft = {
    .name = "fft",
    .summary = "Complex Fourier transform over the last one, two or three axes.",
    .doc = "The forward transform is not normalized. The inverse is divided by its number of "
           "points unless normalize = false. Leading axes are a batch. Single precision. out = a "
           "transforms in place.",
    .reference = "X[k] = sum over j of x[j] exp(-2 pi i jk/n)",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_CONTIGUOUS,
    .alias = 1u << MB_FFT_OP_A,
    .tolerance = 2e-6, /* float transforms of two libraries */
};
