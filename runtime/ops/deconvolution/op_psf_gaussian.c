/*
** psf_gaussian: an axis-parallel Gaussian, sampled at pixel centers.
*/
#include "ops/deconvolution/op_psf_gaussian.h"
#include "ops/op_args.h"

#define PARAMS mb_psf_gaussian_params

static const mb_op_arg args[] = {
    MB_VECTOR(size, 1, 1e9, "px", "extents, one per axis (one to three)"),
    MB_VECTOR(sigma, 1e-6, 1e9, "px", "standard deviations, one per axis or one for all"),
    MB_VECTOR_OPTION(center, -1e9, 1e9, "px",
                     "0-based position of the peak; default (n - 1) / 2 rounded down, the default "
                     "center of otf"),
    MB_BOOL(normalize, true, "true: the sum is 1; false: the peak is 1"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 1, 3, "point spread function")};

static const char *const samples[] = {
    "{params = {size = {5, 6, 7}, sigma = {1, 1.5, 2}}}",
    "{params = {size = {9, 8}, sigma = {1.2}, center = {4, 3.5}, normalize = false}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_psf_gaussian_params *p = params;
    mb_spec result = {true, MB_F32, {(int)p->size.count, {0}}};
    int64_t rank = p->size.count;
    if (rank < 1 || rank > 3)
        return mb_fail(MB_STATUS_ARGUMENT, "size", "size has %lld numbers; give one to three",
                       (long long)rank);
    MB_TRY(mb_check_axes("sigma", &p->sigma, rank, true));
    if (p->center.count)
        MB_TRY(mb_check_axes("center", &p->center, rank, false));
    MB_TRY(mb_check_whole("size", &p->size));
    for (int64_t i = 0; i < rank; i++)
        result.shape.dims[i] = (int64_t)p->size.values[i];
    arrays[MB_PSF_GAUSSIAN_RESULT] = result;
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    int64_t n[3];
    (void)params;
    mb_grid_dims(&arrays[MB_PSF_GAUSSIAN_RESULT].shape, n);
    mb_planner_slot(planner, "tables", (uint64_t)(n[0] + n[1] + n[2]) * sizeof(double), 0, 0);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_psf_gaussian_params *p = call->params;
    float *out = call->arrays[MB_PSF_GAUSSIAN_RESULT]->data;
    double *tables = call->slots[MB_PSF_GAUSSIAN_TABLES];
    int64_t n[3];
    mb_grid_dims(&call->arrays[MB_PSF_GAUSSIAN_RESULT]->shape, n);
    mb_psf_gaussian_factors(p, 0, n[0], tables);
    mb_psf_gaussian_factors(p, 1, n[1], tables + n[0]);
    mb_psf_gaussian_factors(p, 2, n[2], tables + n[0] + n[1]);
    int threads = n[0] * n[1] * n[2] < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < n[0] * n[1]; row++) {
        if (mb_cancelled())
            continue;
        double factor = tables[row / n[1]] * tables[n[0] + row % n[1]];
        for (int64_t x = 0; x < n[2]; x++)
            out[row * n[2] + x] = (float)(factor * tables[n[0] + n[1] + x]);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_psf_gaussian = {
    .name = "psf_gaussian",
    .summary = "Gaussian point spread function with a width for each axis.",
    .doc = "Values are those at pixel centers. The full width at half maximum is 2.3548 sigma.",
    .reference = "exp(-((x - c) / sigma)^2 / 2)",
    MB_OP_PLANNED_PARTS,
    .uncut = "it reads no array",
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 1e-7,
};
