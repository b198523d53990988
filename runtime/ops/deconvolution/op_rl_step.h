/*
** rl_step: what the host and the CUDA kernel share. An iteration of Richardson-Lucy: apply_otf,
** rl_ratio, apply_otf with the conjugate, rl_update; their arrays, and one metric for both of
** theirs.
**
** Two ways, told apart by mb_apply_otf_fused. Where the library transforms, the four operators one
** after the other, on the same memory: mb_rl_step_split makes their calls. Fused, on CUDA: the
** pointwise steps within the passes along x, each row transformed back, changed and transformed
** forth on the chip; the estimate is read where it stands, and `work` holds nothing of use
** afterwards. Slots: those of apply_otf, then the partial sums of rl_ratio and rl_update, which
** fused have a cell per tile of rows, else MB_GRID_BLOCKS.
*/
#ifndef MB_OPS_OP_RL_STEP_H
#define MB_OPS_OP_RL_STEP_H

#include "ops/fft/op_apply_otf.h"
#include "ops/deconvolution/op_rl_ratio.h"
#include "ops/deconvolution/op_rl_update.h"

typedef struct mb_rl_step_params {
    mb_rl_normalizer_params normalizer;
    double eps, min, background;
    bool metrics;
} mb_rl_step_params;

enum {
    MB_RL_STEP_ESTIMATE,
    MB_RL_STEP_WORK,
    MB_RL_STEP_OTF,
    MB_RL_STEP_IMAGE,
    MB_RL_STEP_WEIGHTS,
    MB_RL_STEP_TABLE,
    MB_RL_STEP_NORMALIZER,
    MB_RL_STEP_METRIC,
    MB_RL_STEP_GRADIENT
};
enum { MB_RL_STEP_RATIO_PARTIALS = MB_APPLY_OTF_COUNTERS + 1, MB_RL_STEP_UPDATE_PARTIALS };

#define MB_RL_STEP_MISFIT 2 /* numbers of rl_ratio's metric; those of rl_update follow */

typedef struct mb_rl_step_parts {
    mb_apply_otf_params blur, back;
    mb_rl_ratio_params ratio;
    mb_rl_update_params update;
} mb_rl_step_parts;

/* The update's metric is wanted: with a gradient its sums are what the gradient is for. */
static inline bool mb_rl_step_sums(const mb_rl_step_params *p, bool gradient)
{
    return p->metrics || gradient;
}

static inline mb_rl_step_parts mb_rl_step_parts_of(const mb_rl_step_params *p, int64_t n,
                                                   bool gradient)
{
    mb_rl_step_parts parts;
    parts.blur.n = parts.back.n = n;
    parts.blur.scale = parts.back.scale = 1;
    parts.blur.both = parts.back.both = false;
    parts.blur.conj = false;
    parts.back.conj = true;
    parts.ratio.eps = p->eps;
    parts.ratio.background = p->background;
    parts.ratio.tile = false;
    parts.ratio.metrics = p->metrics;
    parts.update.normalizer = p->normalizer;
    parts.update.first.count = 0;
    parts.update.min = p->min;
    parts.update.metrics = mb_rl_step_sums(p, gradient);
    return parts;
}

/* The calls of the four operators; they use `parts` and `metrics`, which must live as long. */
static inline void mb_rl_step_split(const mb_op_call *call, mb_rl_step_parts *parts,
                                    mb_array metrics[2], mb_op_call calls[4])
{
    mb_array *const *a = call->arrays;
    const mb_array *estimate = a[MB_RL_STEP_ESTIMATE];
    bool gradient = a[MB_RL_STEP_GRADIENT] != NULL;
    *parts = mb_rl_step_parts_of((const mb_rl_step_params *)call->params,
                                 estimate->shape.dims[estimate->shape.rank - 1], gradient);
    const void *const params[4] = {&parts->blur, &parts->ratio, &parts->back, &parts->update};
    for (int i = 0; i < 4; i++) {
        calls[i] = *call;
        calls[i].params = params[i];
        for (int k = 0; k < MB_OP_MAX_ARRAYS; k++)
            calls[i].arrays[k] = NULL;
    }
    for (int i = 0; i < 4; i += 2) {
        calls[i].arrays[MB_APPLY_OTF_GRID] = a[MB_RL_STEP_WORK];
        calls[i].arrays[MB_APPLY_OTF_OTF] = a[MB_RL_STEP_OTF];
    }
    calls[1].arrays[MB_RL_RATIO_BLURRED] = calls[3].arrays[MB_RL_UPDATE_CORRECTION] =
        a[MB_RL_STEP_WORK];
    calls[1].arrays[MB_RL_RATIO_IMAGE] = a[MB_RL_STEP_IMAGE];
    calls[1].arrays[MB_RL_RATIO_WEIGHTS] = a[MB_RL_STEP_WEIGHTS];
    calls[1].slots[MB_RL_RATIO_PARTIALS] = call->slots[MB_RL_STEP_RATIO_PARTIALS];
    calls[3].arrays[MB_RL_UPDATE_ESTIMATE] = a[MB_RL_STEP_ESTIMATE];
    calls[3].arrays[MB_RL_UPDATE_TABLE] = a[MB_RL_STEP_TABLE];
    calls[3].arrays[MB_RL_UPDATE_NORMALIZER] = a[MB_RL_STEP_NORMALIZER];
    calls[3].arrays[MB_RL_UPDATE_GRADIENT] = a[MB_RL_STEP_GRADIENT];
    calls[3].slots[MB_RL_UPDATE_PARTIALS] = call->slots[MB_RL_STEP_UPDATE_PARTIALS];
    if (a[MB_RL_STEP_METRIC]) {
        for (int i = 0; i < 2; i++) {
            metrics[i] = *a[MB_RL_STEP_METRIC];
            metrics[i].shape.dims[0] =
                i == 0 ? MB_RL_STEP_MISFIT : metrics[i].shape.dims[0] - MB_RL_STEP_MISFIT;
        }
        metrics[1].data = (double *)metrics[1].data + MB_RL_STEP_MISFIT;
        calls[1].arrays[MB_RL_RATIO_METRIC] = &metrics[0];
        calls[3].arrays[MB_RL_UPDATE_METRIC] = &metrics[1];
    }
}

#endif
