/*
** rl_consensus: from the back-projected ratios of the two halves of an image, in place, what both
** say together: their mean, which is the correction of the whole image, and the product of the two
** gradients, which is negative where they disagree.
*/
#include "ops/deconvolution/op_rl_consensus.h"
#include "ops/op_args.h"
#include <string.h>

#define PARAMS mb_rl_consensus_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("first", MB_BIT(MB_F32), 1, 3,
                   "back-projected ratio of the first half, padded rows; becomes the mean of both"),
    MB_ARRAY_INOUT("second", MB_BIT(MB_F32), 1, 3,
                   "back-projected ratio of the second half; becomes the product of the gradients"),
    MB_INT_REQUIRED(n, 1, 1e12, 0, NULL, "samples of a row, which has 2 * (n/2 + 1) elements"),
    MB_RL_NORMALIZER_ARRAYS, MB_RL_NORMALIZER_ARGS};

static const char *const samples[] = {
    "{inputs = {{'f32', 4, 6, 10, high = 2}, {'f32', 4, 6, 10, high = 2}}, params = {n = 9}}",
    "{inputs = {first = {'f32', 8, 9, 14}, second = {'f32', 8, 9, 14}, table = {'f64', 4, 5, 3}}, "
    "params = {n = 12, window = {5, 6, 11}, center = {1, 2, 0}, floor = 0.5}}",
    "{inputs = {first = {'f32', 8, 10}, second = {'f32', 8, 10}, normalizer = {'f32', 8, 9, low = "
    "0.5}}, params = {n = 9}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_rl_consensus_params *p = params;
    const mb_shape *padded = &arrays[MB_RL_CONSENSUS_FIRST].shape;
    mb_shape grid = mb_rl_consensus_grid(padded, p->n);
    if (padded->dims[padded->rank - 1] != mb_grid_pitch(p->n))
        return mb_fail(MB_STATUS_ARGUMENT, "n", "rows of %lld samples have %lld elements, not %lld",
                       (long long)p->n, (long long)mb_grid_pitch(p->n),
                       (long long)padded->dims[padded->rank - 1]);
    if (!mb_shape_equal(padded, &arrays[MB_RL_CONSENSUS_SECOND].shape))
        return mb_fail(MB_STATUS_SHAPE, "second", "second must have the shape of first");
    return mb_rl_normalizer_check(&p->normalizer, false, &grid, &arrays[MB_RL_CONSENSUS_TABLE],
                                  &arrays[MB_RL_CONSENSUS_NORMALIZER]);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_rl_consensus_params *p = call->params;
    const mb_array *array = call->arrays[MB_RL_CONSENSUS_FIRST];
    float *first = array->data, *second = call->arrays[MB_RL_CONSENSUS_SECOND]->data;
    mb_shape grid = mb_rl_consensus_grid(&array->shape, p->n);
    const mb_rl_normalizer n =
        mb_rl_normalizer_make(&p->normalizer, &grid, call->arrays[MB_RL_CONSENSUS_TABLE],
                              call->arrays[MB_RL_CONSENSUS_NORMALIZER]);
    int64_t rows = n.grid[0] * n.grid[1], nx = n.grid[2], pitch = mb_grid_pitch(nx);
    int threads = rows * pitch < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < rows; row++) {
        if (mb_cancelled())
            continue;
        float *a = first + row * pitch, *b = second + row * pitch;
        const mb_rl_normalizer_row rule = mb_rl_normalizer_row_of(&n, row);
        for (int64_t x = 0; x < nx; x++) {
            float mean = (a[x] + b[x]) / 2;
            b[x] = mb_rl_consensus_product(a[x], b[x], mb_rl_normalizer_at(&n, &rule, x), n.floor);
            a[x] = mean;
        }
        memset(a + nx, 0, (size_t)(pitch - nx) * sizeof *a);
        memset(b + nx, 0, (size_t)(pitch - nx) * sizeof *b);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_rl_consensus = {
    .name = "rl_consensus",
    .summary = "Gradient consensus: the mean of two corrections, and whether they agree.",
    .doc =
        "With n the normalizer, first becomes (first + second) / 2, and second becomes (first / n "
        "- 1) (second / n - 1), or 0 where the normalizer is at most floor. rl_update takes both.",
    .reference = "J. Manton, A. York, gradient consensus, doi:10.5281/zenodo.10278919 (2023)",
    MB_OP_PARTS,
    .uncut = "it is a step over the grid of an iteration, at whose start the image lies",
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 2e-6,
};
