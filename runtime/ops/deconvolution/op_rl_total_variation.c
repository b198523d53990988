/*
** rl_total_variation: the total-variation term of a regularized Richardson-Lucy iteration, applied
** to the correction before rl_update. It reads the estimate and writes the correction: no array
** more than without.
*/
#include "ops/deconvolution/op_rl_total_variation.h"
#include "ops/op_args.h"

#define PARAMS mb_rl_total_variation_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("estimate", MB_BIT(MB_F32), 1, 3, "estimate on the grid"),
    MB_ARRAY_INOUT("correction", MB_BIT(MB_F32), 1, 3,
                   "back-projected ratio, padded rows; becomes the quotient"),
    MB_FLOAT(lambda, 0, 1, 2e-3, NULL, "weight of the total variation"),
    MB_FLOAT(epsilon, 1e-30, 1e30, 1e-5, NULL, "gradients far below this value count as flat"),
    MB_VECTOR_OPTION(spacing, 1e-30, 1e30, NULL,
                     "distance of voxels, one number per axis or one for all; default 1")};

static const char *const samples[] = {
    "{inputs = {{'f32', 4, 5, 7}, {'f32', 4, 5, 8}}, params = {lambda = 0.05, epsilon = 0.1}}",
    "{inputs = {{'f32', 6, 8}, {'f32', 6, 10}}, params = {lambda = 0.1, epsilon = 0.1, spacing = "
    "{3, 1}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_rl_total_variation_params *p = params;
    const mb_shape *grid = &arrays[MB_RL_TOTAL_VARIATION_ESTIMATE].shape;
    mb_shape padded = *grid;
    padded.dims[grid->rank - 1] = mb_grid_pitch(padded.dims[grid->rank - 1]);
    if (!mb_shape_equal(&padded, &arrays[MB_RL_TOTAL_VARIATION_CORRECTION].shape))
        return mb_fail(MB_STATUS_SHAPE, "correction",
                       "correction must be the padded rows of estimate");
    return p->spacing.count ? mb_check_axes("spacing", &p->spacing, grid->rank, true)
                            : MB_STATUS_OK;
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_rl_total_variation_params *p = call->params;
    const mb_array *estimate = call->arrays[MB_RL_TOTAL_VARIATION_ESTIMATE];
    float *correction = call->arrays[MB_RL_TOTAL_VARIATION_CORRECTION]->data, inverse[3];
    int64_t n[3];
    mb_grid_dims(&estimate->shape, n);
    mb_rl_tv_inverse(p, estimate->shape.rank, inverse);
    int64_t pitch = mb_grid_pitch(n[2]);
    float lambda = (float)p->lambda, epsilon = (float)p->epsilon;
    int threads = n[0] * n[1] * n[2] < 8192 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < n[0] * n[1]; row++)
        for (int64_t x = 0; x < n[2] && !(x == 0 && mb_cancelled()); x++) {
            float divisor = 1 - lambda * mb_rl_tv_divergence(estimate->data, n, inverse, epsilon,
                                                             row / n[1], row % n[1], x);
            correction[row * pitch + x] /= divisor > MB_RL_TV_LEAST ? divisor : MB_RL_TV_LEAST;
        }
    return MB_STATUS_OK;
}

const mb_op mb_op_rl_total_variation = {
    .name = "rl_total_variation",
    .summary = "Richardson-Lucy: divides the correction by the total-variation term.",
    .doc =
        "correction becomes correction / (1 - lambda div(grad x / |grad x|)) with a divisor of at "
        "least 0.1. Call it before rl_update. Differences are forward, and zero beyond the grid.",
    .reference = "N. Dey et al., Microsc. Res. Tech. 69, 260 (2006)",
    MB_OP_PARTS,
    .uncut = "it changes the correction beside a piece, too",
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 1e-5,
};
