/*
** wiener_filter: the inverse of a transfer function where it is strong, nothing where it is weak,
** in place. A constant lambda is Wiener's filter with a constant ratio of noise to signal, and
** Tikhonov's with the identity; with the Laplacian, the regularized inverse filter, which damps
** fine detail more.
*/
#include "ops/deconvolution/op_wiener_filter.h"
#include "ops/op_args.h"
#include <math.h>

#define PARAMS mb_wiener_filter_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("a", MB_BIT(MB_C64), 1, 3, "half spectrum of the image"),
    MB_ARRAY_IN("otf", MB_BIT(MB_C64), 1, 3,
                "transfer function, same shape; 1 at frequency 0 for a PSF of sum 1"),
    MB_FLOAT(lambda, 0, 1e30, 1e-3, NULL,
             "regularization: the ratio of noise power to signal power"),
    MB_BOOL(laplacian, false,
            "multiply lambda by the squared Laplacian: prefer smooth images to small values"),
    MB_FLOAT(scale, MB_ANY, 1, NULL, "factor, such as 1/N of the inverse transform"),
    MB_INT(n, 0, 1e15, 0, NULL, "samples of a row of the real grid; 0: 2 * (m - 1)")};

static const char *const samples[] = {
    "{inputs = {{'c64', 3, 5, 7}, {'c64', 3, 5, 7}}, params = {lambda = 0.1}}",
    "{inputs = {{'c64', 4, 9}, {'c64', 4, 9, low = 0.2}}, params = {laplacian = true, n = 17, "
    "scale = 0.25}}"};

/* The Laplacian of a frequency depends on where it is. */
static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    const mb_wiener_filter_params *p = params;
    return !p->laplacian && cut->split->axis < arrays[MB_WIENER_FILTER_A].shape.rank - 1;
}

#define ROWS                                                                                       \
    .alike = 1u << MB_WIENER_FILTER_OTF,                                                           \
    .when = "the axis is not the last and there is no laplacian", .adapt = adapt
static const mb_op_split split[] = {MB_SPLIT_AXIS(0, ROWS), MB_SPLIT_AXIS(1, ROWS), MB_SPLIT_END};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_wiener_filter_params *p = params;
    const mb_shape *a = &arrays[MB_WIENER_FILTER_A].shape;
    int64_t half = a->dims[a->rank - 1], n = mb_wiener_filter_samples(p, half);
    if (!mb_shape_equal(a, &arrays[MB_WIENER_FILTER_OTF].shape))
        return mb_fail(MB_STATUS_SHAPE, "otf", "otf must have the shape of a");
    if (n / 2 + 1 != half)
        return mb_fail(MB_STATUS_ARGUMENT, "n",
                       "rows of %lld frequencies are not those of n = %lld", (long long)half,
                       (long long)n);
    return MB_STATUS_OK;
}

static double laplacian(int64_t k, int64_t n)
{
    double s = sin(acos(-1.0) * (double)k / (double)n);
    return 4 * s * s;
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_wiener_filter_params *p = call->params;
    const mb_array *array = call->arrays[MB_WIENER_FILTER_A];
    float *a = array->data;
    const float *h = call->arrays[MB_WIENER_FILTER_OTF]->data;
    int64_t d[3], n;
    mb_grid_dims(&array->shape, d);
    n = mb_wiener_filter_samples(p, d[2]);
    int threads = d[0] * d[1] * d[2] < 16384 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < d[0] * d[1]; row++) {
        if (mb_cancelled())
            continue;
        double outer = laplacian(row / d[1], d[0]) + laplacian(row % d[1], d[1]);
        for (int64_t x = 0; x < d[2]; x++) {
            int64_t i = 2 * (row * d[2] + x);
            double hr = (double)h[i], hi = (double)h[i + 1], ar = (double)a[i],
                   ai = (double)a[i + 1];
            double r = p->laplacian ? outer + laplacian(x, n) : 1;
            double bottom = hr * hr + hi * hi + p->lambda * r * r;
            double factor = bottom > 0 ? p->scale / bottom : 0;
            a[i] = (float)((ar * hr + ai * hi) * factor);
            a[i + 1] = (float)((ai * hr - ar * hi) * factor);
        }
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_wiener_filter = {
    .name = "wiener_filter",
    .summary = "Applies the regularized inverse of a transfer function to a spectrum, in place.",
    .doc = "a becomes a conj(H) / (|H|^2 + lambda r) scale with r = 1. With `laplacian`, r is the "
           "squared eigenvalue of the discrete Laplacian.",
    .reference =
        "N. Wiener, Extrapolation, Interpolation, and Smoothing of Stationary Time Series, 1949; "
        "A. N. Tikhonov, V. Y. Arsenin, Solutions of Ill-Posed Problems, 1977",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 2e-6,
};
