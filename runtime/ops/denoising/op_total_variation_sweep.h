/*
** total_variation_sweep: what the host and the CUDA kernels share. Arrays: a (in, f32), state (in,
** f32, may be absent), result (out, f32; may be the state). Slot: MB_TV_SWEEP_WORK.
**
** A plane of a state has four times the rows of a plane of the volume: the image, and the field's
** components along x, y and z. Steps are those of total_variation, image and field in turn; the
** first one of all takes the data as the image.
*/
#ifndef MB_OPS_OP_TOTAL_VARIATION_SWEEP_H
#define MB_OPS_OP_TOTAL_VARIATION_SWEEP_H

#include "ops/denoising/op_total_variation.h"

typedef struct mb_total_variation_sweep_params {
    double lambda, tau, sigma;
    int64_t steps;
    bool nonnegative;
} mb_total_variation_sweep_params;

enum { MB_TV_SWEEP_A, MB_TV_SWEEP_STATE, MB_TV_SWEEP_RESULT };
enum { MB_TV_SWEEP_WORK };

/* The parameters of total_variation that make the same steps. */
static inline mb_total_variation_params mb_tv_sweep_params(const mb_total_variation_sweep_params *p)
{
    return (mb_total_variation_params){.lambda = p->lambda,
                                       .tau = p->tau,
                                       .sigma = p->sigma,
                                       .iterations = p->steps,
                                       .dimensions = 3,
                                       .method = MB_TV_PRIMAL_DUAL,
                                       .nonnegative = p->nonnegative};
}

static inline mb_tv_extents mb_tv_sweep_extents(const mb_shape *shape)
{
    return (mb_tv_extents){1, shape->dims[0], shape->dims[1], shape->dims[2]};
}

#endif
