/*
** rl_step: one iteration of Richardson-Lucy in one operator: blur the estimate, the ratio to the
** image, correlate it with the PSF, update. As one it needs the memory about half as often as the
** four operators that it stands for, where the backend can join the pointwise steps to the
** transforms; elsewhere it is those four.
*/
#include "ops/deconvolution/op_rl_step.h"
#include "ops/op_args.h"
#include <string.h>

#define PARAMS mb_rl_step_params

extern const mb_op mb_op_apply_otf, mb_op_rl_ratio, mb_op_rl_update;

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("estimate", MB_BIT(MB_F32), 1, 3, "estimate on the grid"),
    MB_ARRAY_INOUT("work", MB_BIT(MB_F32), 1, 3,
                   "the estimate on padded rows (embed); becomes the input of the next step"),
    MB_ARRAY_IN("otf", MB_BIT(MB_C64), 1, 3,
                "half spectrum of the PSF on the grid, with the factor 1/N, as otf makes it"),
    MB_GRID_IMAGE_ARG("measured image"),
    MB_GRID_WEIGHTS_ARG("the ratio"),
    MB_RL_NORMALIZER_ARRAYS,
    MB_RL_NORMALIZER_ARGS,
    MB_FLOAT(eps, 1e-38, 1e38, 1e-12, NULL, "least value of the blurred estimate to divide by"),
    MB_FLOAT(min, 0, 1e30, 0, NULL,
             "lower bound of the estimate, and its value where nothing was measured"),
    MB_GRID_BACKGROUND_ARG,
    MB_BOOL(metrics, false, "return the misfit and sums of the estimate and its change"),
    MB_ARRAY_OUT("metric", MB_BIT(MB_F64), 1, 1,
                 "with metrics or gradient: metric of rl_ratio (0 without metrics), then metric of "
                 "rl_update"),
    MB_RL_GRADIENT_ARG};

/* eps is of the size of the blurred values: below it the step would depend on how they were
** rounded. */
static const char *const samples[] = {
    "{inputs = {{'f32', 4, 6, 9}, {'f32', 4, 6, 10}, {'c64', 4, 6, 5}, {'f32', 4, 6, 9}}, params = "
    "{eps = 40, metrics = true}}",
    "{inputs = {estimate = {'f32', 8, 9, 12}, work = {'f32', 8, 9, 14}, otf = {'c64', 8, 9, 7}, "
    "image = {'u16', 5, 6, 10}, table = {'f64', 4, 4, 3}}, params = {window = {5, 6, 10}, center = "
    "{1, 2, 0}, floor = 0, eps = 200}}",
    "{inputs = {estimate = {'f32', 8, 9}, work = {'f32', 8, 10}, otf = {'c64', 8, 5}, image = "
    "{'u8', 7, 8}, weights = {'f32', 7, 8}, normalizer = {'f32', 8, 9, low = 0.5}, gradient = "
    "{'f32', 8, 9, low = -1}}, params = {eps = 10, min = 0.1}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_rl_step_params *p = params;
    const mb_shape *grid = &arrays[MB_RL_STEP_ESTIMATE].shape;
    bool gradient = arrays[MB_RL_STEP_GRADIENT].present;
    mb_shape padded = *grid;
    char text[128];
    padded.dims[grid->rank - 1] = mb_grid_pitch(padded.dims[grid->rank - 1]);
    if (!mb_shape_equal(&arrays[MB_RL_STEP_WORK].shape, &padded))
        return mb_fail(MB_STATUS_SHAPE, "work",
                       "work must have the padded rows of the estimate's grid, %s",
                       mb_shape_format(&padded, text, sizeof text));
    mb_rl_step_parts parts = mb_rl_step_parts_of(p, grid->dims[grid->rank - 1], gradient);
    mb_spec blur[MB_OP_MAX_ARRAYS] = {arrays[MB_RL_STEP_WORK], arrays[MB_RL_STEP_OTF]};
    MB_TRY(mb_op_apply_otf.infer(&parts.blur, blur));
    mb_spec ratio[MB_OP_MAX_ARRAYS] = {arrays[MB_RL_STEP_WORK], arrays[MB_RL_STEP_IMAGE],
                                       arrays[MB_RL_STEP_WEIGHTS]};
    MB_TRY(mb_op_rl_ratio.infer(&parts.ratio, ratio));
    mb_spec update[MB_OP_MAX_ARRAYS] = {arrays[MB_RL_STEP_ESTIMATE], arrays[MB_RL_STEP_WORK],
                                        arrays[MB_RL_STEP_TABLE], arrays[MB_RL_STEP_NORMALIZER]};
    update[MB_RL_UPDATE_GRADIENT] = arrays[MB_RL_STEP_GRADIENT];
    MB_TRY(mb_op_rl_update.infer(&parts.update, update));
    if (parts.update.metrics) {
        arrays[MB_RL_STEP_METRIC] = update[MB_RL_UPDATE_METRIC];
        arrays[MB_RL_STEP_METRIC].shape.dims[0] += MB_RL_STEP_MISFIT;
    }
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_rl_step_params *p = params;
    const mb_device_facts *facts = &planner->device->facts;
    bool gradient = arrays[MB_RL_STEP_GRADIENT].present;
    int64_t n[3];
    mb_grid_dims(&arrays[MB_RL_STEP_ESTIMATE].shape, n);
    mb_rl_step_parts parts = mb_rl_step_parts_of(p, n[2], gradient);
    const mb_spec blur[] = {arrays[MB_RL_STEP_WORK], arrays[MB_RL_STEP_OTF]};
    mb_op_apply_otf.plan(&parts.blur, blur, planner);
    /* The sums are those of one part at a time; fused they are made beside the counters of steps 0
    ** and 1. */
    bool fused = mb_apply_otf_fused(facts, n);
    uint64_t cells = fused ? (uint64_t)mb_apply_otf_row_tiles(facts, n, true) : MB_GRID_BLOCKS;
    mb_planner_slot(planner, "ratio partials",
                    parts.ratio.metrics ? cells * sizeof(mb_rl_ratio_cell) : 0, fused ? 0 : 2,
                    fused ? 0 : 2);
    mb_planner_slot(planner, "update partials",
                    parts.update.metrics ? cells * sizeof(mb_rl_update_cell) : 0, fused ? 1 : 3,
                    fused ? 1 : 3);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_rl_step_params *p = call->params;
    mb_rl_step_parts parts;
    mb_array metrics[2];
    mb_op_call calls[4];
    mb_rl_step_split(call, &parts, metrics, calls);
    const mb_op *const ops[4] = {&mb_op_apply_otf, &mb_op_rl_ratio, &mb_op_apply_otf,
                                 &mb_op_rl_update};
    if (call->arrays[MB_RL_STEP_METRIC] && !p->metrics)
        memset(metrics[0].data, 0, MB_RL_STEP_MISFIT * sizeof(double));
    for (int i = 0; i < 4; i++)
        MB_TRY(ops[i]->run_host(&calls[i]));
    return MB_STATUS_OK;
}

const mb_op mb_op_rl_step = {
    .name = "rl_step",
    .summary = "Richardson-Lucy: one iteration, in place, with its metrics.",
    .doc = "The same as apply_otf on work, rl_ratio with the image, apply_otf with conj, and "
           "rl_update of the estimate. Options and metrics are those of these operators.\n"
           "On entry work contains the estimate, as from embed. Afterwards work contains the input "
           "of the next step, which is not always the estimate. extrapolate may change both "
           "between steps. On a GPU, grids that apply_otf transforms by kernels of Moonbeam need "
           "about half the memory traffic of the four operators.",
    .reference = "W. H. Richardson, J. Opt. Soc. Am. 62, 55 (1972); L. B. Lucy, Astron. J. 79, 745 "
                 "(1974)",
    MB_OP_PLANNED_PARTS,
    .uncut = "it contains transforms over all axes",
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 1e-5, /* two convolutions and a division */
};
