/*
** fourier_reconstruct: filtered back-projection by the direct Fourier method, that is the adjoint
** of a non-uniform FFT (gridding) applied to filtered rows.
** sino (rows, angles, cols) or (angles, cols), f32 -> (rows, ny, nx) or (ny, nx).
** Steps and slots: op_fourier_reconstruct.h. Gridding: fourier_gridding.h. Host kernel:
** fourier_reconstruct_host.c.
*/
#include "ops/tomography/fourier_reconstruct_host.h"
#include "ops/tomography/parallel_args.h"

#define PARAMS mb_fourier_reconstruct_params

static const char *const accuracies[] = {"fast", "exact", NULL};

static const mb_op_arg args[] = {
    MB_PARALLEL_SINO_ARG,
    MB_VECTOR(angles, MB_ANY, "rad", "one per angle, any order"),
    MB_PARALLEL_DETECTOR_ARGS,
    MB_VECTOR_OPTION(weights, MB_ANY, NULL, "one factor per angle, for uneven angles; default 1"),
    MB_PARALLEL_SLICE_ARGS(1 << 20),
    MB_PARALLEL_FILTER_ARGS(1 << 26),
    MB_ENUM(accuracy, accuracies, MB_FOURIER_FAST, "error of the gridding: fast 7e-5, exact 1e-6"),
    MB_INT(pairs, 0, MB_FOURIER_PAIRS_MOST, 0, NULL,
           "most pairs of slices computed together; fewer take less scratch; 0: automatic"),
    MB_FOURIER_PERIOD_ARG,
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "slices (row, y, x), or one (y, x)")};

static const mb_op_split split[] = MB_SPLIT_STACK(mb_packet_pair);

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 17}}, params = {angles = {0, 0.6, 1.2, 1.8, 2.4}}}",
    "{inputs = {{'f32', 7, 20}}, params = {angles = {0, 0.4, 4.0, 1.3, 1.7, 2.2, -0.6}, center = "
    "8.25, size = {19, 23}, circle = 0.9, circle_value = -1, filter = 'hann', padding = 'edge', "
    "accuracy = 'exact'}}",
    "{inputs = {{'f32', 18, 3, 31}}, params = {angles = {2.1, 0.1, 1.1}, shifts = {0.5, -1, 2}, "
    "weights = {1, 0.5, 2}, pad_width = 80, cutoff = 0.7, scale = 1, pairs = 2}}",
    "{inputs = {{'f32', 3, 4, 21}}, params = {angles = {2.1, 0.1, 1.1, 5}, filter = 'none', scale "
    "= "
    "1, period = 62}}"};

mb_status mb_fourier_check_period(int64_t period, int64_t cols)
{
    if (period != 0 && (period % 2 != 0 || period < cols))
        return mb_fail(MB_STATUS_ARGUMENT, "period",
                       "period is %lld; it must be even and at least the %lld columns, or 0 for "
                       "automatic",
                       (long long)period, (long long)cols);
    return MB_STATUS_OK;
}

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_fourier_reconstruct_params *p = params;
    const mb_shape *shape = &arrays[MB_FOURIER_SINO].shape;
    mb_spec result = {true, MB_F32, *shape};
    int64_t angles = shape->dims[shape->rank - 2], cols = shape->dims[shape->rank - 1];
    if (angles < 1 || angles > 1 << 20 || cols < 1 || cols > 1 << 20)
        return mb_fail(MB_STATUS_SHAPE, "sino",
                       "the sinogram has %lld angles and %lld columns; both must be 1 to 2^20",
                       (long long)angles, (long long)cols);
    MB_TRY(mb_parallel_check_count("angles", &p->angles, angles));
    MB_TRY(mb_parallel_check_count("shifts", &p->shifts, angles));
    MB_TRY(mb_parallel_check_count("weights", &p->weights, angles));
    MB_TRY(mb_parallel_check_image(&p->size, &p->roi));
    if (p->pad_width != 0 && (p->pad_width < cols || p->pad_width % 4 != 0))
        return mb_fail(MB_STATUS_ARGUMENT, "pad_width",
                       "pad_width is %lld; it must be a multiple of 4 and at least the width %lld, "
                       "or 0 for automatic",
                       (long long)p->pad_width, (long long)cols);
    MB_TRY(mb_fourier_check_period(p->period, cols));
    mb_parallel_geometry g = mb_fourier_geometry(p, shape);
    MB_TRY(mb_parallel_check_region(&g));
    result.shape.dims[shape->rank - 2] = g.y1 - g.y0;
    result.shape.dims[shape->rank - 1] = g.x1 - g.x0;
    arrays[MB_FOURIER_RESULT] = result;
    return MB_STATUS_OK;
}

static uint64_t product(uint64_t a, uint64_t b, uint64_t c, uint64_t unit)
{
    return mb_bytes_mul(mb_bytes_mul(mb_bytes_mul(a, b), c), unit);
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_fourier_reconstruct_params *p = params;
    const mb_device_facts *facts = &planner->device->facts;
    const mb_parallel_geometry g = mb_fourier_geometry(p, &arrays[MB_FOURIER_SINO].shape);
    mb_fourier_layout l = mb_fourier_layout_of(p, &g, facts);
    if (l.samples == 0)
        l.samples = mb_fourier_library_samples(p, &g);
    if (l.grid == 0)
        l.grid = mb_fft_good_size(mb_fourier_grid(p->accuracy, &g));
    mb_fourier_batch(p, &g, facts, &l);
    const bool host = facts->compute_capability == 0, apart = !host && !l.fused;
    const uint64_t angles = (uint64_t)g.angles, pairs = (uint64_t)l.pairs;
    const uint64_t padded = (uint64_t)l.padded, n = (uint64_t)l.samples, cells = (uint64_t)l.grid;
    const uint64_t high = (uint64_t)(g.y1 - g.y0);
    const uint64_t rows =
        host ? product((uint64_t)mb_fourier_host_pitch(l.padded, l.samples, l.grid),
                       (uint64_t)facts->threads, 1, 4)
             : product(pairs, angles, apart ? padded : 0, 8);
    int work;
    mb_fourier_plan_tables(planner, &g, 7);
    mb_planner_slot(planner, "response", 8 * (padded / 2 + 1), 0, 7);
    mb_planner_slot(planner, "rows", rows, 1, host ? 7 : 2);
    mb_planner_slot(planner, "spectra", product(pairs, angles, apart ? n : 0, 8), 2, 4);
    mb_planner_slot(planner, "samples", product(pairs, angles, n, 8), apart ? 4 : 1, 5);
    mb_planner_slot(planner, "cells", product(pairs, cells, cells, 8), 5, l.own ? 6 : 7);
    mb_planner_slot(planner, "lines", product(pairs, l.own ? high : 0, cells, 8), 6, 7);
    if (!l.fused) {
        const int64_t batch = host ? 1 : g.angles;
        mb_fft_desc forward = mb_fft_describe(MB_FFT_C2C_FORWARD, 1, &l.padded, batch, true);
        mb_fft_desc backward = mb_fft_describe(MB_FFT_C2C_INVERSE, 1, &l.padded, batch, true);
        mb_fft_desc sample = mb_fft_describe(MB_FFT_C2C_FORWARD, 1, &l.samples, batch, true);
        mb_planner_fft(planner, &forward, "forward work", 1, host ? 4 : 1, &work);
        mb_planner_fft(planner, &backward, "backward work", 1, host ? 4 : 1, &work);
        mb_planner_fft(planner, &sample, "sample work", host ? 1 : 3, host ? 4 : 3, &work);
    }
    if (!l.own) {
        const int64_t plane[] = {l.grid, l.grid};
        mb_fft_desc image = mb_fft_describe(MB_FFT_C2C_INVERSE, host ? 1 : 2, plane, 1, true);
        mb_planner_fft(planner, &image, "grid work", host ? 5 : 6, host ? 7 : 6, &work);
    }
}

const mb_op mb_op_fourier_reconstruct = {
    .name = "fourier_reconstruct",
    .summary = "Filtered back-projection by the direct Fourier method: filter, gridding, 2-D FFT.",
    .doc = "Gives the result of ramp_filter and backproject in one step, with the same geometry, "
           "filters and scale. Its time hardly grows with the number of angles. Filtered rows, "
           "which end at the edges of the detector, are interpolated by their trigonometric "
           "polynomial (without its Nyquist term) instead of linearly: result(X, Y) = scale * sum "
           "over angles of weight * row(X cos t + Y sin t + center + shift). With a window such as "
           "hann the two methods agree closely. Without a window, this method keeps more of the "
           "highest frequencies. The default scale gives densities per pixel for angles that cover "
           "180 degrees evenly. With filter none and scale 1 this is the exact adjoint of "
           "fourier_project.\n"
           "Angles may be in any order and cover any range. Uneven angles need weights: of mean 1 "
           "with the default scale, or with scale = 1 the range in rad that each angle "
           "represents.\n"
           "Without a circular mask the rows are extended by about a fifth so that nothing repeats "
           "in the corners; circle = 1 saves this. Two slices are computed as one complex image: a "
           "NaN in one slice reaches its partner.",
    .reference = "Greengard and Lee, SIAM Review 46 (2004) 443; O'Sullivan, IEEE Trans. Med. "
                 "Imaging 4 (1985) 200",
    MB_OP_PARTS_OF(mb_fourier_reconstruct_host),
    .plan = plan,
    .split = split,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 2e-5, /* float transforms of two libraries, samples at the window's edge */
};
