/*
** complex_multiply: the product of a spectrum with a transfer function, in place: one read of each
** and one write. conj makes it the adjoint (correlation); scale takes the 1/N of an unnormalized
** inverse transform.
*/
#include "ops/fft/op_complex_multiply.h"
#include "ops/op_args.h"
#include "core/multiversion.h"

#define PARAMS mb_complex_multiply_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("a", MB_BIT(MB_C64), 1, MB_MAX_RANK, "spectrum; becomes the product"),
    MB_ARRAY_IN(
        "b", MB_BIT(MB_C64), 1, MB_MAX_RANK,
        "factor; its extents are those of the last axes of a; leading axes of a are a batch"),
    MB_BOOL(conj, false, "multiply by the conjugate of b: the adjoint"),
    MB_FLOAT(scale, MB_ANY, 1, NULL, "real factor, such as 1/N of the inverse transform")};

static const char *const samples[] = {
    "{inputs = {{'c64', 3, 5, 7}, {'c64', 3, 5, 7}}}",
    "{inputs = {{'c64', 4, 3, 9}, {'c64', 3, 9}}, params = {conj = true, scale = 0.25}}"};

/* b has the last axes of a, or all of them. */
static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    const int batch =
        arrays[MB_COMPLEX_MULTIPLY_A].shape.rank - arrays[MB_COMPLEX_MULTIPLY_B].shape.rank;
    const int axis = cut->split->axis;
    (void)params;
    cut->axes[MB_COMPLEX_MULTIPLY_B] = axis < batch ? -1 : axis - batch;
    return true;
}

static const mb_op_split split[] = MB_SPLIT_AXES(.adapt = adapt);

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_shape *a = &arrays[MB_COMPLEX_MULTIPLY_A].shape,
                   *b = &arrays[MB_COMPLEX_MULTIPLY_B].shape;
    char left[128], right[128];
    bool fits = b->rank <= a->rank;
    (void)params;
    for (int i = 0; fits && i < b->rank; i++)
        fits = b->dims[i] == a->dims[a->rank - b->rank + i];
    if (!fits)
        return mb_fail(MB_STATUS_SHAPE, "b", "b is %s; the last axes of a, %s, must equal it",
                       mb_shape_format(b, right, sizeof right),
                       mb_shape_format(a, left, sizeof left));
    return MB_STATUS_OK;
}

/* n complex numbers; sign -1 conjugates b. Products are exact in double: a compiler that fuses one
** of the two with the sum, and another one in the elements left over by its vectors, changes
** nothing. */
MB_MULTIVERSION
static void multiply(float *restrict a, const float *restrict b, int64_t n, float scale, float sign)
{
    for (int64_t i = 0; i < n; i++) {
        const double ar = (double)a[2 * i], ai = (double)a[2 * i + 1];
        const double br = (double)(b[2 * i] * scale), bi = (double)(b[2 * i + 1] * scale * sign);
        a[2 * i] = (float)(ar * br - ai * bi);
        a[2 * i + 1] = (float)(ar * bi + ai * br);
    }
}

void mb_complex_multiply_host(mb_device *device, float *a, const float *b, int64_t count,
                              int64_t period, double scale, bool conj)
{
    int64_t block = 16384, blocks = (period + block - 1) / block;
    int threads = count < 32768 ? 1 : device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < count / period * blocks; i++) {
        if (mb_cancelled())
            continue;
        int64_t at = i % blocks * block, first = i / blocks * period + at;
        multiply(a + 2 * first, b + 2 * at, period - at < block ? period - at : block, (float)scale,
                 conj ? -1.0f : 1.0f);
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_complex_multiply_params *p = call->params;
    const mb_array *a = call->arrays[MB_COMPLEX_MULTIPLY_A],
                   *b = call->arrays[MB_COMPLEX_MULTIPLY_B];
    mb_complex_multiply_host(call->device, a->data, b->data, (int64_t)mb_array_elements(a),
                             (int64_t)mb_array_elements(b), p->scale, p->conj);
    return MB_STATUS_OK;
}

const mb_op mb_op_complex_multiply = {
    .name = "complex_multiply",
    .summary = "Multiplies a spectrum by a transfer function, or by its conjugate, in place.",
    .doc = "a[..., i] becomes a[..., i] * b[i] * scale. Convolution multiplies by the transfer "
           "function. Its adjoint, correlation, multiplies by the conjugate.",
    .reference = "convolution theorem",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 1e-6,
};
