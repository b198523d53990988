/*
** extrapolate: the momentum step of accelerated iterations, fused: one array more than without (the
** previous estimate), none for the prediction.
*/
#include "ops/deconvolution/op_extrapolate.h"
#include "ops/op_args.h"

#define PARAMS mb_extrapolate_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("estimate", MB_BIT(MB_F32), 1, 3, "new estimate; becomes the prediction"),
    MB_ARRAY_INOUT("previous", MB_BIT(MB_F32), 1, 3, "previous estimate; becomes the new estimate"),
    MB_ARRAY_INOUT("target", MB_BIT(MB_F32), 1, 3, "padded rows; also receive the prediction"),
    MB_FLOAT(alpha, 0, 1, 0, NULL, "length of the continuation, in steps"),
    MB_FLOAT(min, 0, 1e30, 0, NULL, "lower bound of the prediction")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 7}, {'f32', 3, 5, 7}, {'f32', 3, 5, 8}}, params = {alpha = 0.5}}",
    "{inputs = {{'f32', 8}, {'f32', 8}, {'f32', 10}}, params = {alpha = 1, min = 0.3}}"};

#define ROWS                                                                                       \
    .alike = 1u << MB_EXTRAPOLATE_PREVIOUS | 1u << MB_EXTRAPOLATE_TARGET,                          \
    .when = "the axis is not the last", .adapt = mb_whole_rows_adapt
static const mb_op_split split[] = {MB_SPLIT_AXIS(0, ROWS), MB_SPLIT_AXIS(1, ROWS), MB_SPLIT_END};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_shape *grid = &arrays[MB_EXTRAPOLATE_ESTIMATE].shape;
    mb_shape padded = *grid;
    (void)params;
    padded.dims[grid->rank - 1] = mb_grid_pitch(padded.dims[grid->rank - 1]);
    if (!mb_shape_equal(grid, &arrays[MB_EXTRAPOLATE_PREVIOUS].shape))
        return mb_fail(MB_STATUS_SHAPE, "previous", "previous must have the shape of estimate");
    if (!mb_shape_equal(&padded, &arrays[MB_EXTRAPOLATE_TARGET].shape))
        return mb_fail(MB_STATUS_SHAPE, "target", "target must be the padded rows of estimate");
    return MB_STATUS_OK;
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_extrapolate_params *p = call->params;
    const mb_array *array = call->arrays[MB_EXTRAPOLATE_ESTIMATE];
    float *estimate = array->data, *previous = call->arrays[MB_EXTRAPOLATE_PREVIOUS]->data;
    float *target = call->arrays[MB_EXTRAPOLATE_TARGET]->data;
    float alpha = (float)p->alpha, least = (float)p->min;
    int64_t n[3];
    mb_grid_dims(&array->shape, n);
    int64_t pitch = mb_grid_pitch(n[2]);
    int threads = n[0] * n[1] * n[2] < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < n[0] * n[1]; row++) {
        if (mb_cancelled())
            continue;
        float *x = estimate + row * n[2], *q = previous + row * n[2], *t = target + row * pitch;
        for (int64_t i = 0; i < n[2]; i++) {
            float now = x[i];
            x[i] = t[i] = mb_extrapolated(now, q[i], alpha, least);
            q[i] = now;
        }
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_extrapolate = {
    .name = "extrapolate",
    .summary = "Momentum: continues the estimate along its last step, in place.",
    .doc = "With x the estimate, q the previous estimate, and s = alpha (q - x), "
           "previous becomes x; estimate and target become x - s where x has grown, and "
           "x x / (x + s) where it has fallen, min at least. So what is positive stays so, and "
           "rounding does not grow where an element falls fast.",
    .reference = "H. Wang, P. C. Miller, Sci. Rep. 4, 4912 (2014), scaled heavy ball",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 1e-6,
};
