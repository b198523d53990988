/*
** rfft: real-to-complex transform over the trailing one to three axes, batched over the others.
** a f32 (..., n) -> result c64 (..., n/2 + 1). In place: rows of a have room for their spectrum,
** (..., 2 * (n/2 + 1)), and out is the same memory seen as complex numbers.
*/
#include "ops/fft/op_rfft.h"
#include "ops/fft/trailing_axes.h"

#define PARAMS mb_rfft_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 1, MB_MAX_RANK,
                "real array; with in_place its last extent is 2 * (n/2 + 1)"),
    MB_TRAILING_ARG, MB_BOOL(in_place, false, "out is the memory of a, viewed as complex"),
    MB_INT(n, 0, 1e15, 0, NULL,
           "in_place: samples per row; 0: the last extent less 2, which is even"),
    MB_ARRAY_OUT("result", MB_BIT(MB_C64), 1, MB_MAX_RANK, "spectrum (..., n/2 + 1)")};

static const char *const samples[] = {"{inputs = {{'f32', 3, 16}}}",
                                      "{inputs = {{'f32', 2, 7, 15}}, params = {axes = 2}}",
                                      "{inputs = {{'f32', 5, 6, 7}}, params = {axes = 3}}",
                                      "{inputs = {{'f32', 3, 2, 9, 21}}}",
                                      "{inputs = {{'f32', 5, 4, 6, 9}}, params = {axes = 2}}",
                                      "{inputs = {{'f32', 19, 1001}}}"};

MB_TRAILING_REAL_SPLIT;

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_rfft_params *p = params;
    const mb_shape *shape = &arrays[MB_RFFT_A].shape;
    mb_spec result = {true, MB_C64, *shape};
    int64_t last = shape->dims[shape->rank - 1], n = mb_rfft_samples(p, last);
    MB_TRY(mb_trailing_check(shape, p->axes));
    if (!p->in_place && p->n != 0 && p->n != last)
        return mb_fail(MB_STATUS_ARGUMENT, "n",
                       "n needs in_place; without in_place it is the last extent, %lld",
                       (long long)last);
    if (n < 1 || (p->in_place && 2 * (n / 2 + 1) != last))
        return mb_fail(MB_STATUS_ARGUMENT, "n",
                       "in_place, n = %lld samples need a last extent of %lld, not %lld",
                       (long long)n, (long long)(2 * (n / 2 + 1)), (long long)last);
    result.shape.dims[shape->rank - 1] = n / 2 + 1;
    arrays[MB_RFFT_RESULT] = result;
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_rfft_params *p = params;
    const mb_shape *shape = &arrays[MB_RFFT_A].shape;
    const int64_t last = mb_rfft_samples(p, shape->dims[shape->rank - 1]);
    mb_fft_desc desc = mb_trailing_describe(MB_FFT_R2C, shape, p->axes, last, p->in_place);
    int work;
    mb_planner_fft(planner, &desc, "work", 0, 0, &work);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_rfft_params *p = call->params;
    const mb_array *a = call->arrays[MB_RFFT_A];
    mb_array *result = call->arrays[MB_RFFT_RESULT];
    if (p->in_place != (a->data == result->data))
        return mb_fail(MB_STATUS_ARGUMENT, "in_place",
                       p->in_place ? "in_place needs out = the memory of a, viewed as complex rows"
                                   : "out is the memory of a; give in_place = true");
    return mb_fft_exec(call->device, call->ffts[MB_RFFT_FFT], a->data, result->data,
                       call->slots[MB_RFFT_WORK]);
}

const mb_op mb_op_rfft = {
    .name = "rfft",
    .summary = "Real-to-complex Fourier transform over the last one, two or three axes.",
    .doc = "The transform is not normalized. The last axis keeps its n/2 + 1 non-negative "
           "frequencies. Leading axes are a batch. Single precision.\n"
           "In place (in_place = true; out is the memory of a, viewed as complex), the rows of a "
           "have 2 * (n/2 + 1) elements; n of them are samples.",
    .reference = "X[k] = sum over j of x[j] exp(-2 pi i jk/n)",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_CONTIGUOUS,
    .alias = 1u << MB_RFFT_A,
    .tolerance = 2e-6, /* float transforms of two libraries */
};
