/*
** total_variation: removes noise and keeps edges.
*/
#include "ops/denoising/total_variation_host.h"
#include "ops/op_args.h"

#define PARAMS mb_total_variation_params

static const char *const methods[] = {"primal_dual", "rof", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 2, 3, "image, stack of slices or volume (z, y, x)"),
    MB_FLOAT_REQUIRED(lambda, 0, 1e30, 0, NULL,
                      "weight of the total variation, in units of the data; 0 changes nothing"),
    MB_INT(iterations, 1, 1000000, 100, NULL, "number of iterations"),
    MB_INT(dimensions, 2, 3, 2, NULL, "2: each slice by itself; 3: the volume as a whole"),
    MB_ENUM(method, methods, MB_TV_PRIMAL_DUAL,
            "primal_dual converges to the minimum; rof takes explicit steps in time toward it"),
    MB_FLOAT(tau, 1e-6, 1e6, NAN, NULL,
             "primal_dual: step of the image; default 1 / (4 dimensions sigma)"),
    MB_FLOAT(sigma, 1e-6, 1e6, NAN, NULL,
             "primal_dual: step of the dual field; default 1 / (4 dimensions tau), or "
             "1 / sqrt(4 dimensions) for both"),
    MB_FLOAT(step, 1e-12, 1, 1e-3, NULL, "rof: step in time"),
    MB_FLOAT(epsilon, 1e-30, 1e30, 1e-8, NULL, "rof: added to the square of the gradient"),
    MB_BOOL(nonnegative, false, "no result is below 0"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "same shape; may be a")};

static const char *const samples[] = {
    "{inputs = {{'f32', 9, 13, 37}}, params = {lambda = 0.2, iterations = 3, dimensions = 3}}",
    "{inputs = {{'f32', 4, 70, 67}}, params = {lambda = 0.1, iterations = 10}}",
    "{inputs = {{'f32', 5, 9, 31, low = -1}}, params = {lambda = 0.3, iterations = 4, "
    "dimensions = 3, nonnegative = true, tau = 0.1, sigma = 1}}",
    "{inputs = {{'f32', 23, 41}}, params = {lambda = 0.05, iterations = 6, method = 'rof', "
    "step = 0.05, epsilon = 1e-3}}",
    "{inputs = {{'f32', 7, 6, 19}}, params = {lambda = 0.05, iterations = 2, method = 'rof', "
    "step = 0.05, epsilon = 1e-3, dimensions = 3}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_total_variation_params *p = params;
    const mb_shape *shape = &arrays[MB_TOTAL_VARIATION_A].shape;
    if (p->dimensions > shape->rank)
        return mb_fail(MB_STATUS_SHAPE, "dimensions",
                       "dimensions is 3, but the array has 2 axes; give dimensions = 2 or a volume "
                       "(z, y, x)");
    if (shape->dims[shape->rank - 1] > 0 &&
        shape->dims[shape->rank - 2] > INT32_MAX / shape->dims[shape->rank - 1])
        return mb_fail(
            MB_STATUS_SHAPE, "a",
            "a slice has more than 2147483647 elements; cut it into pieces of fewer rows");
    arrays[MB_TOTAL_VARIATION_RESULT] = arrays[MB_TOTAL_VARIATION_A];
    return MB_STATUS_OK;
}

/* An iteration carries a value one element further along each axis. */
static mb_rows needs(const void *params, const mb_spec *arrays, int axis, mb_rows rows)
{
    const mb_total_variation_params *p = params;
    if (axis < arrays[0].shape.rank - p->dimensions)
        return rows;
    return (mb_rows){rows.first - p->iterations, rows.end + p->iterations};
}

static const mb_op_split split[] = {MB_SPLIT_AXIS(0, .needs = needs),
                                    MB_SPLIT_AXIS(1, .needs = needs, .adapt = mb_whole_rows_adapt,
                                                  .when = "it is not the last axis"),
                                    MB_SPLIT_END};

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_total_variation_params *p = params;
    const mb_device_facts *facts = &planner->device->facts;
    const mb_tv_extents n = mb_tv_extents_of(p, &arrays[MB_TOTAL_VARIATION_A].shape);
    const mb_tv_cuda c = mb_tv_cuda_of(p, &n, facts);
    const uint64_t bytes =
        facts->compute_capability
            ? mb_bytes_mul(mb_bytes_mul((uint64_t)c.slot, c.element_bytes), (uint64_t)c.slots)
            : mb_tv_host_bytes(&n, facts->threads);
    mb_planner_slot(planner, "state", p->lambda > 0 ? bytes : 0, 0, 0);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_total_variation_params *p = call->params;
    const mb_tv_extents n = mb_tv_extents_of(p, &call->arrays[MB_TOTAL_VARIATION_A]->shape);
    return mb_tv_host_run(call, &n);
}

const mb_op mb_op_total_variation = {
    .name = "total_variation",
    .summary = "Removes noise and keeps edges: total-variation denoising.",
    .doc =
        "Moves toward the image u that minimizes |u - a|^2 / 2 + lambda TV(u), where TV(u) is the "
        "sum of the lengths of the gradients (forward differences, 0 across the edges). Noise "
        "whose differences are small against lambda disappears; edges stay sharp and lose a "
        "little of their height. The result scales with the data if lambda does.\n"
        "primal_dual is the method of Chambolle and Pock; it converges if 4 dimensions tau sigma "
        "<= 1. rof is the explicit scheme of Rudin, Osher and Fatemi, whose time is iterations * "
        "step; it is stable if step and 4 dimensions lambda step / sqrt(epsilon) are small.\n"
        "A value that is not a number or infinite spreads by one element an iteration along each "
        "axis; replace such values first. lambda must not be below 1e-15 of the largest difference "
        "between neighbors, except 0.\n"
        "In three dimensions a piece needs as many planes beside it as there are iterations. The "
        "state between iterations takes four times the memory of the volume (CUDA: 3.4 times, or "
        "six times for few planes); slices that are apart take the state of a few slices. On CUDA "
        "the dual field of a volume is kept in 21 bits a component, an error of a few 1e-6 "
        "lambda. May run in place.",
    .reference = "A. Chambolle, T. Pock, J. Math. Imaging Vis. 40, 120 (2011); L. I. Rudin, S. "
                 "Osher, E. Fatemi, Physica D 60, 259 (1992)",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_TOTAL_VARIATION_A,
    .tolerance = 5e-6, /* many iterations; the field of a volume is rounded to 21 bits */
};
