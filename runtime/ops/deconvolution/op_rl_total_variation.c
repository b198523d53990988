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
    MB_FLOAT(flat, 0, 1e3, 2.1, NULL,
             "gradients below flat lambda x sum(1 / spacing^2) have this length: above 2 the step "
             "is stable, with momentum above 3"),
    MB_VECTOR_OPTION(spacing, 1e-30, 1e30, NULL,
                     "distance of voxels, one number per axis or one for all; default 1"),
    MB_VECTOR_OPTION(
        start, 0, 1e12, "px",
        "0-based element of the grid with which the estimate begins; it goes on across "
        "the grid's end"),
    MB_VECTOR_OPTION(extent, 1, 1e12, "px",
                     "extents of the estimate: nothing is known beyond; default those of the grid"),
    MB_VECTOR_OPTION(at, 0, 1e12, "px",
                     "correction is a tile of the estimate, and begins there, 0-based")};

static const char *const samples[] = {
    "{inputs = {{'f32', 4, 5, 7}, {'f32', 4, 5, 8}}, params = {lambda = 0.05, epsilon = 0.1}}",
    "{inputs = {{'f32', 6, 8}, {'f32', 6, 10}}, params = {lambda = 0.1, epsilon = 0.1, spacing = "
    "{3, 1}}}",
    "{inputs = {{'f32', 6, 9}, {'f32', 6, 10}}, params = {lambda = 0.1, epsilon = 0.1, start = {4, "
    "7}, extent = {5, 9}}}",
    "{inputs = {{'f32', 5, 7, 9}, {'f32', 4, 5, 6}}, params = {lambda = 0.05, epsilon = 0.1, at = "
    "{0, 1, 3}}}"};

/* Checks a position and extents along the axes of the grid. */
static mb_status check_part(const char *name, const mb_vector *first, const mb_shape *extents,
                            const mb_shape *grid)
{
    if (!first->count)
        return MB_STATUS_OK;
    MB_TRY(mb_check_axes(name, first, grid->rank, false));
    MB_TRY(mb_check_whole(name, first));
    for (int i = 0; i < grid->rank; i++)
        if (first->values[i] + (double)extents->dims[i] > (double)grid->dims[i])
            return mb_fail(MB_STATUS_ARGUMENT, name,
                           "axis %d: %lld elements from %g on are not within the %lld of estimate",
                           i + 1, (long long)extents->dims[i], first->values[i],
                           (long long)grid->dims[i]);
    return MB_STATUS_OK;
}

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_rl_total_variation_params *p = params;
    const mb_shape *grid = &arrays[MB_RL_TOTAL_VARIATION_ESTIMATE].shape;
    const mb_shape *correction = &arrays[MB_RL_TOTAL_VARIATION_CORRECTION].shape;
    mb_shape padded = *grid, one = *grid;
    for (int i = 0; i < grid->rank; i++)
        one.dims[i] = 1;
    padded.dims[grid->rank - 1] = mb_grid_pitch(padded.dims[grid->rank - 1]);
    if (p->at.count ? correction->rank != grid->rank : !mb_shape_equal(&padded, correction))
        return mb_fail(MB_STATUS_SHAPE, "correction",
                       p->at.count ? "the correction of a tile must have the axes of estimate"
                                   : "correction must be the padded rows of estimate");
    MB_TRY(check_part("at", &p->at, correction, grid));
    MB_TRY(check_part("start", &p->start, &one, grid));
    if (p->extent.count) {
        MB_TRY(mb_check_axes("extent", &p->extent, grid->rank, false));
        MB_TRY(check_part("extent", &p->extent, &(mb_shape){grid->rank, {0}}, grid));
    }
    return p->spacing.count ? mb_check_axes("spacing", &p->spacing, grid->rank, true)
                            : MB_STATUS_OK;
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_rl_tv job = mb_rl_tv_of(call);
    const int64_t *n = job.n;
    int threads = n[0] * n[1] * n[2] < 8192 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < n[0] * n[1]; row++) {
        const int64_t z = row / n[1], y = row % n[1];
        float *correction = (float *)job.correction.data + mb_grid_row(&job.correction, z, y);
        for (int64_t x = 0; x < n[2] && !(x == 0 && mb_cancelled()); x++)
            correction[x * job.correction.step[2]] /= mb_rl_tv_divisor(&job, z, y, x);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_rl_total_variation = {
    .name = "rl_total_variation",
    .summary = "Richardson-Lucy: divides the correction by the total-variation term.",
    .doc =
        "correction becomes correction / (1 - lambda div(grad x / |grad x|)) with a divisor of at "
        "least 0.1. Call it before rl_update. Differences are forward, and zero beyond the "
        "estimate. Without a least length of the gradient (`flat`) the steps overshoot where the "
        "estimate is flat, and rounding grows there.\n"
        "Without `start` and `extent` the estimate is the grid. With them it is a part of it, such "
        "as "
        "an image from 0 on and what lies before the image at the grid's end. With `at`, "
        "correction "
        "is a tile, a view of any strides.",
    .reference = "N. Dey et al., Microsc. Res. Tech. 69, 260 (2006)",
    MB_OP_PARTS,
    .uncut = "it changes the correction beside a piece, too",
    .strides = MB_STRIDES_ANY,
    .tolerance = 1e-5,
};
