/*
** ramp_preconditioner: the spectrum sqrt(|k|^2 + floor^2) on the grid of normal_kernel.
*/
#include "ops/iterative/op_ramp_preconditioner.h"

#define PARAMS mb_ramp_preconditioner_params

static const mb_op_arg args[] = {
    MB_VECTOR(size, 1, MB_NORMAL_LARGEST, "px", "slice {ny, nx} or n that the grid is for"),
    MB_FLOAT(floor, 1e-9, 1, 0.05, "cycles/px",
             "of the frequency; smaller: fewer iterations, and noise earlier"),
    MB_NORMAL_PADDED_ARG,
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 2, "spectrum (px / 2 + 1, py)")};

static const char *const samples[] = {
    "{params = {size = 9}}", "{params = {size = {5, 30}, floor = 0.025, padded = {42, 60}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_ramp_preconditioner_params *p = params;
    int64_t grid[2];
    MB_TRY(mb_normal_check_grid(&p->size, &p->padded, 1, grid));
    arrays[MB_RAMP_PRECONDITIONER_RESULT] =
        (mb_spec){true, MB_F32, {2, {grid[1] / 2 + 1, grid[0]}}};
    return MB_STATUS_OK;
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_ramp_preconditioner_params *p = call->params;
    const mb_array *result = call->arrays[MB_RAMP_PRECONDITIONER_RESULT];
    const int64_t half = result->shape.dims[0], py = result->shape.dims[1], px = 2 * (half - 1);
#pragma omp parallel for schedule(static) num_threads(call->device->facts.threads)
    for (int64_t x = 0; x < half; x++) {
        float *row = (float *)result->data + x * result->strides[0];
        if (mb_cancelled())
            continue;
        for (int64_t y = 0; y < py; y++)
            row[y * result->strides[1]] =
                mb_ramp_preconditioner_at(mb_ramp_preconditioner_frequency(x, px),
                                          mb_ramp_preconditioner_frequency(y, py), p->floor);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_ramp_preconditioner = {
    .name = "ramp_preconditioner",
    .summary = "Spectrum sqrt(|k|^2 + floor^2), a preconditioner of the normal operator.",
    .doc = "The spectrum of normal_kernel falls like 1 / |k|: the lowest frequency is amplified a "
           "thousand times more than the typical one, which costs a solver iterations. This "
           "spectrum, applied by normal_operator to the residual with the same circle, is an "
           "approximate inverse, symmetric and positive, up to a factor. k is in cycles per pixel. "
           "The layout is that of normal_kernel for the same size and padded.",
    MB_OP_PARTS,
    .strides = MB_STRIDES_CONTIGUOUS,
    .uncut = "it has no array that is cut",
    .tolerance = 1e-6, /* one rounding */
};
