/*
** irfft: complex-to-real transform over the trailing one to three axes, batched over the others: the inverse of rfft.
** a c64 (..., n/2 + 1) -> result f32 (..., n). The contents of a are lost, as in every library's C2R.
*/
#include "ops/op_irfft.h"

static const mb_op_arg args[] = {
    {.name = "a", .kind = MB_ARG_IN, .required = true, .dtypes = MB_BIT(MB_C64), .rank_min = 1, .rank_max = MB_MAX_RANK,
     .doc = "spectrum (..., n/2 + 1), dense; consumed: its contents are lost"},
    {.name = "axes", .kind = MB_ARG_INT, .initial = 1, .min = 1, .max = 3, .offset = offsetof(mb_irfft_params, axes),
     .doc = "how many trailing axes to transform"},
    {.name = "n", .kind = MB_ARG_INT, .initial = 0, .min = 0, .max = 1e15, .offset = offsetof(mb_irfft_params, n),
     .doc = "last extent of the result; 0 = 2 * (m - 1), the even one"},
    {.name = "in_place", .kind = MB_ARG_BOOL, .initial = 0, .offset = offsetof(mb_irfft_params, in_place),
     .doc = "out is the memory of a: real rows of pitch 2 * (n/2 + 1)"},
    {.name = "normalise", .kind = MB_ARG_BOOL, .initial = 1, .offset = offsetof(mb_irfft_params, normalise),
     .doc = "divide by the number of points of the result"},
    {.name = "result", .kind = MB_ARG_OUT, .dtypes = MB_BIT(MB_F32), .rank_min = 1, .rank_max = MB_MAX_RANK,
     .doc = "real array (..., n)"},
    {.name = NULL}};

static const char *const samples[] = {"{inputs = {{'c64', 3, 9}}}",
                                      "{inputs = {{'c64', 2, 7, 8}}, params = {axes = 2, n = 15}}",
                                      "{inputs = {{'c64', 5, 6, 4}}, params = {axes = 3, n = 7}}", NULL};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_irfft_params *p = params;
    const mb_shape *shape = &arrays[MB_IRFFT_A].shape;
    mb_spec result = {true, MB_F32, *shape};
    int64_t m = shape->dims[shape->rank - 1], n = mb_irfft_extent(p, m);
    if (p->axes > shape->rank)
        return mb_fail(MB_STATUS_ARGUMENT, "axes", "axes is %lld and the array has %d", (long long)p->axes,
                       shape->rank);
    for (int i = shape->rank - (int)p->axes; i < shape->rank; i++)
        if (shape->dims[i] < 1)
            return mb_fail(MB_STATUS_SHAPE, "a", "axis %d is empty; a transform needs at least one point", i + 1);
    if (n < 1 || n / 2 + 1 != m)
        return mb_fail(MB_STATUS_ARGUMENT, "n", "a spectrum of %lld is that of n = %lld or %lld, not %lld", (long long)m,
                       (long long)(2 * m - 2), (long long)(2 * m - 1), (long long)n);
    result.shape.dims[shape->rank - 1] = n;
    arrays[MB_IRFFT_RESULT] = result;
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_irfft_params *p = params;
    const mb_shape *shape = &arrays[MB_IRFFT_RESULT].shape;
    const int64_t *dims = shape->dims + shape->rank - p->axes;
    int64_t points = 1;
    mb_fft_desc desc;
    int work;
    for (int i = 0; i < p->axes; i++)
        points *= dims[i];
    desc = mb_fft_describe(MB_FFT_C2R, (int)p->axes, dims, (int64_t)mb_shape_elements(shape) / points, p->in_place);
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
    const mb_irfft_params *p = call->params;
    const mb_array *a = call->arrays[MB_IRFFT_A];
    mb_array *result = call->arrays[MB_IRFFT_RESULT];
    int64_t m = a->shape.dims[a->shape.rank - 1], n = result->shape.dims[a->shape.rank - 1];
    int64_t pitch = p->in_place ? 2 * m : n, rows = (int64_t)mb_array_elements(result) / n, points = 1;
    if (p->in_place != (a->data == result->data))
        return mb_fail(MB_STATUS_ARGUMENT, "in_place",
                       p->in_place ? "in_place needs out = the memory of a, seen as real rows"
                                   : "out is the memory of a: say in_place = true");
    if (!rows_at_pitch(a, m))
        return mb_fail(MB_STATUS_SHAPE, "a", "a must be dense: a:copy()");
    if (!rows_at_pitch(result, pitch))
        return mb_fail(MB_STATUS_SHAPE, "result", "the rows of the result must be %lld reals apart, without gaps",
                       (long long)pitch);
    MB_TRY(mb_fft_exec(call->device, call->ffts[MB_IRFFT_FFT], a->data, result->data, call->slots[MB_IRFFT_WORK]));
    for (int i = a->shape.rank - (int)p->axes; i < a->shape.rank; i++)
        points *= result->shape.dims[i];
    if (p->normalise) {
        float *values = result->data, factor = (float)(1.0 / (double)points);
        int threads = rows * n < 65536 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t x = 0; x < n; x++)
                values[row * pitch + x] *= factor;
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_irfft = {
    .name = "irfft",
    .summary = "Complex-to-real Fourier transform over the last one, two or three axes: the inverse of rfft.",
    .doc = "The input is consumed: its contents are lost (copy it first to keep it). Divided by the number of points unless "
           "normalise = false. n tells an odd last extent, which the spectrum does not show.\n"
           "In place (in_place = true, out = the same memory) the rows of the result lie 2 * (n/2 + 1) reals apart.",
    .reference = "x[j] = 1/n sum over k of X[k] exp(2 pi i jk/n)",
    .category = "fft",
    .args = args,
    .params_bytes = sizeof(mb_irfft_params),
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_IRFFT_A,
    .tolerance = 2e-6, /* float transforms of two libraries */
    .samples = samples,
    .infer = infer,
    .plan = plan,
    .run_host = run_host,
};
