/*
** total_variation_sweep: some steps of total_variation, from a state to a state.
*/
#include "ops/denoising/op_total_variation_sweep.h"
#include "ops/denoising/total_variation_host.h"
#include "ops/op_args.h"

#define PARAMS mb_total_variation_sweep_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 3, 3, "volume (z, y, x)"),
    MB_FLOAT_REQUIRED(lambda, 1e-30, 1e30, 0, NULL,
                      "weight of the total variation, in units of the data"),
    MB_ARRAY_IN_OPTION("state", MB_BIT(MB_F32), 3, 3,
                       "what the sweep before has left (z, 4 y, x); default: this is the first"),
    MB_INT(steps, 1, 1000000, 12, NULL, "number of steps"),
    MB_FLOAT(tau, 1e-6, 1e6, NAN, NULL, "step of the image, as of total_variation"),
    MB_FLOAT(sigma, 1e-6, 1e6, NAN, NULL, "step of the dual field, as of total_variation"),
    MB_BOOL(nonnegative, false, "no value of the image is below 0 after the first step"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 3, 3,
                 "the state (z, 4 y, x): of each plane the image, then the field along x, y and z; "
                 "may be the state")};

static const char *const samples[] = {
    "{inputs = {{'f32', 9, 13, 37}}, params = {lambda = 0.2, steps = 3}}",
    "{inputs = {a = {'f32', 7, 9, 31}, state = {'f32', 7, 36, 31, low = -0.5, high = 0.5}}, "
    "params = {lambda = 0.3, steps = 4, nonnegative = true, tau = 0.1, sigma = 1}}",
    "{inputs = {a = {'f32', 24, 20, 70}, state = {'f32', 24, 80, 70, low = -0.5, high = 0.5}}, "
    "params = {lambda = 0.1, steps = 5}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    (void)params;
    const mb_shape *shape = &arrays[MB_TV_SWEEP_A].shape;
    const mb_spec *state = &arrays[MB_TV_SWEEP_STATE];
    char text[128];
    if (shape->dims[2] > 0 && shape->dims[1] > INT32_MAX / 4 / shape->dims[2])
        return mb_fail(
            MB_STATUS_SHAPE, "a",
            "a plane has more than 536870911 elements; cut it into pieces of fewer rows");
    mb_spec *result = &arrays[MB_TV_SWEEP_RESULT];
    *result = (mb_spec){true, MB_F32, *shape};
    result->shape.dims[1] *= 4;
    if (state->present && !mb_shape_equal(&state->shape, &result->shape))
        return mb_fail(MB_STATUS_SHAPE, "state",
                       "state has the shape %s; of this volume it has %lld x %lld x %lld",
                       mb_shape_format(&state->shape, text, sizeof text),
                       (long long)result->shape.dims[0], (long long)result->shape.dims[1],
                       (long long)result->shape.dims[2]);
    return MB_STATUS_OK;
}

/* A step carries a value one plane further. */
static mb_rows needs(const void *params, const mb_spec *arrays, int axis, mb_rows rows)
{
    const mb_total_variation_sweep_params *p = params;
    (void)arrays, (void)axis;
    return (mb_rows){rows.first - p->steps, rows.end + p->steps};
}

static const mb_op_split split[] = {
    MB_SPLIT_AXIS(0, .needs = needs, .alike = 1u << MB_TV_SWEEP_STATE), MB_SPLIT_END};

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_total_variation_params p = mb_tv_sweep_params(params);
    const mb_device_facts *facts = &planner->device->facts;
    const mb_tv_extents n = mb_tv_sweep_extents(&arrays[MB_TV_SWEEP_A].shape);
    const mb_tv_cuda c = mb_tv_cuda_of(&p, &n, facts);
    mb_planner_slot(
        planner, "work",
        facts->compute_capability
            ? mb_bytes_mul(mb_bytes_mul((uint64_t)c.slot, c.element_bytes), (uint64_t)c.slots)
            : mb_tv_host_sweep_bytes(&n, facts->threads),
        0, 0);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_total_variation_sweep_params *own = call->params;
    const mb_total_variation_params p = mb_tv_sweep_params(own);
    const mb_tv_extents n = mb_tv_sweep_extents(&call->arrays[MB_TV_SWEEP_A]->shape);
    return mb_tv_host_sweep(call, &n, &p, own->steps);
}

const mb_op mb_op_total_variation_sweep = {
    .name = "total_variation_sweep",
    .summary = "Some steps of total-variation denoising of a volume, from a state to a state.",
    .doc =
        "For volumes that do not fit: total_variation(a, lambda, {dimensions = 3, iterations = n}) "
        "is n + 1 steps of its primal-dual method, of which the first one takes the data as the "
        "image. A sweep makes some of them and returns the state, from which the next sweep goes "
        "on; the image is rows 1 to y of each of its planes. The steps of all sweeps together "
        "give the bits of total_variation on the host; on CUDA they do if all sweeps but the last "
        "have a multiple of three steps, and otherwise the field is rounded at other steps, an "
        "error of a few 1e-6 lambda.\n"
        "A piece needs as many planes beside it as the sweep has steps, however many there are in "
        "all: with the state of the whole volume in a store, memory is that of a piece. "
        "The state takes four times the memory of the volume.",
    .reference = "A. Chambolle, T. Pock, J. Math. Imaging Vis. 40, 120 (2011)",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_TV_SWEEP_STATE,
    .tolerance = 5e-6, /* as total_variation */
};
