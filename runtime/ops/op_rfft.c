/*
** rfft: real-to-complex transform over the trailing one to three axes, batched over the others.
** a f32 (..., n) -> result c64 (..., n/2 + 1). In place: a is a view of n reals in rows of 2 * (n/2 + 1), and out is the
** same memory seen as complex numbers.
*/
#include "ops/op_rfft.h"

static const mb_op_arg args[] = {
    {.name = "a", .kind = MB_ARG_IN, .required = true, .dtypes = MB_BIT(MB_F32), .rank_min = 1, .rank_max = MB_MAX_RANK,
     .doc = "real array; dense, or in rows of 2 * (n/2 + 1) with in_place"},
    {.name = "axes", .kind = MB_ARG_INT, .initial = 1, .min = 1, .max = 3, .offset = offsetof(mb_rfft_params, axes),
     .doc = "how many trailing axes to transform"},
    {.name = "in_place", .kind = MB_ARG_BOOL, .initial = 0, .offset = offsetof(mb_rfft_params, in_place),
     .doc = "out is the memory of a: complex rows of n/2 + 1 over real rows of pitch 2 * (n/2 + 1)"},
    {.name = "result", .kind = MB_ARG_OUT, .dtypes = MB_BIT(MB_C64), .rank_min = 1, .rank_max = MB_MAX_RANK,
     .doc = "spectrum (..., n/2 + 1)"},
    {.name = NULL}};

static const char *const samples[] = {"{inputs = {{'f32', 3, 16}}}",
                                      "{inputs = {{'f32', 2, 7, 15}}, params = {axes = 2}}",
                                      "{inputs = {{'f32', 5, 6, 7}}, params = {axes = 3}}", NULL};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_rfft_params *p = params;
    const mb_shape *shape = &arrays[MB_RFFT_A].shape;
    mb_spec result = {true, MB_C64, *shape};
    if (p->axes > shape->rank)
        return mb_fail(MB_STATUS_ARGUMENT, "axes", "axes is %lld and the array has %d", (long long)p->axes,
                       shape->rank);
    for (int i = shape->rank - (int)p->axes; i < shape->rank; i++)
        if (shape->dims[i] < 1)
            return mb_fail(MB_STATUS_SHAPE, "a", "axis %d is empty; a transform needs at least one point", i + 1);
    result.shape.dims[shape->rank - 1] = shape->dims[shape->rank - 1] / 2 + 1;
    arrays[MB_RFFT_RESULT] = result;
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_rfft_params *p = params;
    const mb_shape *shape = &arrays[MB_RFFT_A].shape;
    const int64_t *dims = shape->dims + shape->rank - p->axes;
    int64_t points = 1;
    mb_fft_desc desc;
    int work;
    for (int i = 0; i < p->axes; i++)
        points *= dims[i];
    desc = mb_fft_describe(MB_FFT_R2C, (int)p->axes, dims, (int64_t)mb_shape_elements(shape) / points, p->in_place);
    mb_planner_fft(planner, &desc, "work", 0, 0, &work);
}

/* Are the rows `pitch` elements apart and the axes before dense on top of that? */
static bool rows_at_pitch(const mb_array *array, int64_t pitch)
{
    int64_t expected = pitch;
    for (int i = array->shape.rank - 2; i >= 0; i--) {
        if (array->shape.dims[i] != 1 && array->strides[i] != expected)
            return false;
        expected *= array->shape.dims[i];
    }
    return true;
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_rfft_params *p = call->params;
    const mb_array *a = call->arrays[MB_RFFT_A];
    mb_array *result = call->arrays[MB_RFFT_RESULT];
    int64_t n = a->shape.dims[a->shape.rank - 1], m = n / 2 + 1;
    if (p->in_place != (a->data == result->data))
        return mb_fail(MB_STATUS_ARGUMENT, "in_place",
                       p->in_place ? "in_place needs out = the memory of a, seen as complex rows"
                                   : "out is the memory of a: say in_place = true");
    if (!rows_at_pitch(a, p->in_place ? 2 * m : n))
        return mb_fail(MB_STATUS_SHAPE, "a", "a must be %s%lld reals apart, without gaps between them: a:copy()",
                       p->in_place ? "rows that are, for in_place, " : "dense: rows ",
                       (long long)(p->in_place ? 2 * m : n));
    if (!rows_at_pitch(result, m))
        return mb_fail(MB_STATUS_SHAPE, "result", "the result must be dense");
    return mb_fft_exec(call->device, call->ffts[MB_RFFT_FFT], a->data, result->data, call->slots[MB_RFFT_WORK]);
}

const mb_op mb_op_rfft = {
    .name = "rfft",
    .summary = "Real-to-complex Fourier transform over the last one, two or three axes.",
    .doc = "Unnormalised; the last axis keeps its n/2 + 1 non-negative frequencies. Leading axes are a batch. Single precision.\n"
           "In place (in_place = true, out = the same memory) the rows of a lie 2 * (n/2 + 1) reals apart.",
    .reference = "X[k] = sum over j of x[j] exp(-2 pi i jk/n)",
    .category = "fft",
    .args = args,
    .params_bytes = sizeof(mb_rfft_params),
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_RFFT_A,
    .tolerance = 2e-6, /* float transforms of two libraries */
    .samples = samples,
    .infer = infer,
    .plan = plan,
    .run_host = run_host,
};
