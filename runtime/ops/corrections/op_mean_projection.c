/*
** mean_projection: the mean over all frames of a stack, of the values or of the transmission
** exp(-value). a (angle, row, column), f32, any strides -> result (row, column), f32.
*/
#include "core/multiversion.h"
#include "ops/corrections/op_mean_projection.h"
#include "ops/op_args.h"
#include <string.h>

#define PARAMS mb_mean_projection_params

enum { BLOCK = 256, GROUP = 4 };

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 3, 3, "frames (angle, row, column); any strides"),
    MB_BOOL(transmission, false, "the mean of exp(-a), for line integrals"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 2, "(row, column)")};

/* The result has the axes of a but the first. */
static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    (void)params, (void)arrays;
    cut->axes[MB_MEAN_PROJECTION_RESULT] = cut->split->axis - 1;
    return true;
}

static const mb_op_split split[] = {
    {.axis = 1, .result_axis = 0, .adapt = adapt},
    {.axis = 2, .result_axis = 1, .adapt = adapt},
    MB_SPLIT_END,
};

static const char *const samples[] = {
    "{inputs = {{'f32', 5, 3, 17}}}",
    "{inputs = {{'f32', 300, 2, 9}}, params = {transmission = true}}",
    "{inputs = {{'f32', 1, 4, 300}}, params = {transmission = true}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_shape *shape = &arrays[MB_MEAN_PROJECTION_A].shape;
    (void)params;
    if (shape->dims[0] < 1)
        return mb_fail(MB_STATUS_SHAPE, "a", "a has no frames, and so no mean");
    arrays[MB_MEAN_PROJECTION_RESULT] =
        (mb_spec){true, MB_F32, {2, {shape->dims[1], shape->dims[2]}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_shape *shape = &arrays[MB_MEAN_PROJECTION_A].shape;
    const int64_t segments = mb_mean_projection_segments(shape->dims[0]);
    const bool host = planner->device->facts.compute_capability == 0;
    const uint64_t pixels = mb_bytes_mul((uint64_t)shape->dims[1], (uint64_t)shape->dims[2]);
    (void)params;
    mb_planner_slot(
        planner, "partials",
        host || segments < 2 ? 0 : mb_bytes_mul(mb_bytes_mul(pixels, 8), (uint64_t)segments), 0, 0);
}

/* exp(-x) within 2 units in the last place, between 1e-38 and 1e38: 2^n p(r) with the polynomial of
** the Cephes library (expf.c, S. Moshier). n comes out of the low bits of a float with a large
** number added; NaN passes through p. Branchless, so that loops over it vectorize. */
static inline float exp_minus(float x)
{
    const float shift = 12582912.0f; /* 1.5 2^23 */
    float y = -x, t, n, r, p, scale;
    int32_t bits;
    y = y > 87.0f ? 87.0f : y;
    y = y < -87.0f ? -87.0f : y;
    t = y * 1.44269504f + shift;
    memcpy(&bits, &t, sizeof bits);
    bits = (int32_t)(((uint32_t)bits + 127u) << 23);
    memcpy(&scale, &bits, sizeof scale);
    n = t - shift;
    r = y - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * scale;
}

MB_MULTIVERSION
static void add(double *sums, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sums[i] += (double)from[i];
}

MB_MULTIVERSION
static void add_transmission(double *sums, const float *from, int64_t n)
{
    float values[BLOCK];
    for (int64_t i = 0; i < n; i++)
        values[i] = exp_minus(from[i]);
    for (int64_t i = 0; i < n; i++)
        sums[i] += (double)values[i];
}

/* What a row has in GROUP frames, added to the sums together. */
MB_MULTIVERSION
static void add_transmissions(double *sums, const float *from, int64_t step, int64_t n)
{
    float values[GROUP][BLOCK];
    for (int k = 0; k < GROUP; k++)
        for (int64_t i = 0; i < n; i++)
            values[k][i] = exp_minus(from[k * step + i]);
    for (int64_t i = 0; i < n; i++)
        sums[i] += ((double)values[0][i] + (double)values[1][i]) +
                   ((double)values[2][i] + (double)values[3][i]);
}

/* Columns x to x + n - 1 of a row, in all frames. */
static void sum_row(const mb_array *a, bool transmission, const float *from, int64_t n,
                    double *sums)
{
    const int64_t frames = a->shape.dims[0], step = a->strides[0];
    for (int64_t k = 0; k < frames && !mb_cancelled(); k++) {
        float own[GROUP * BLOCK];
        const bool group = transmission && k + GROUP <= frames;
        const float *values = from + k * step;
        int64_t apart = step;
        if (a->strides[2] != 1) {
            for (int64_t g = 0; g < (group ? GROUP : 1); g++)
                for (int64_t c = 0; c < n; c++)
                    own[g * BLOCK + c] = values[g * step + c * a->strides[2]];
            values = own;
            apart = BLOCK;
        }
        if (group) {
            add_transmissions(sums, values, apart, n);
            k += GROUP - 1;
        } else
            (transmission ? add_transmission : add)(sums, values, n);
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_mean_projection_params *p = call->params;
    const mb_array *a = call->arrays[MB_MEAN_PROJECTION_A];
    mb_array *result = call->arrays[MB_MEAN_PROJECTION_RESULT];
    const int64_t frames = a->shape.dims[0], h = a->shape.dims[1], w = a->shape.dims[2];
    const int64_t across = (w + BLOCK - 1) / BLOCK;
    const int threads = frames * h * w < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < h * across; i++) {
        const int64_t y = i / across, x = i % across * BLOCK, n = w - x < BLOCK ? w - x : BLOCK;
        const float *from = (const float *)a->data + y * a->strides[1] + x * a->strides[2];
        float *to = (float *)result->data + y * result->strides[0] + x * result->strides[1];
        double sums[BLOCK] = {0};
        sum_row(a, p->transmission, from, n, sums);
        for (int64_t c = 0; c < n; c++)
            to[c * result->strides[1]] = (float)(sums[c] / (double)frames);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_mean_projection = {
    .name = "mean_projection",
    .summary = "The mean over all frames of a stack.",
    .doc = "The mean over the first axis, summed in double precision; with transmission, that of "
           "exp(-a), in f32 (a within -87 to 87). A pixel that is NaN in one frame is NaN in the "
           "mean.",
    .reference = "the double flat field of synchrotron tomography; Seo et al., Opt. Express 20 "
                 "(2012) 29048",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ANY,
    .tolerance = 1e-6, /* exponentials of two libraries */
};
