/*
** fourier_project: parallel-beam projection by the direct Fourier method, the exact transpose of
** fourier_reconstruct without its filter. volume (rows, ny, nx) or (ny, nx), f32, any row strides
** -> (rows, angles, cols) or (angles, cols). Steps and slots: op_fourier_project.h. Host kernel:
** fourier_project_host.c.
*/
#include "ops/tomography/op_fourier_project.h"
#include "ops/tomography/parallel_args.h"

#define PARAMS mb_fourier_project_params

static const char *const accuracies[] = {"fast", "exact", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("volume", MB_BIT(MB_F32), 2, 3,
                "slices (row, y, x), or one (y, x); with roi that part of them"),
    MB_VECTOR(angles, MB_ANY, "rad", "any number of angles in any order"),
    MB_INT(cols, 0, 1 << 20, 0, "px", "detector columns; 0: nx of the full slice"),
    MB_PARALLEL_DETECTOR_ARGS,
    MB_VECTOR_OPTION(size, 1, 1 << 20, "px",
                     "full slice {ny, nx} or n; default that of the volume"),
    MB_VECTOR_OPTION(roi, 0, 1 << 20, "px",
                     "the part of the full slice that the volume holds, {y0, y1, x0, x1}, 0-based; "
                     "y1 and x1 are excluded; the rest is 0; needs size"),
    MB_FLOAT(circle, 0, 10, 0, "half-width",
             "ignore pixels outside this fraction of half the smaller side; 0: use all pixels"),
    MB_FLOAT(scale, MB_ANY, 1, NULL, "factor of the sums; 1 gives line integrals in pixel units"),
    MB_ENUM(accuracy, accuracies, MB_FOURIER_FAST, "error of the gridding: fast 7e-5, exact 1e-6"),
    MB_INT(pairs, 0, MB_FOURIER_PAIRS_MOST, 0, NULL,
           "most pairs of slices computed together; fewer take less scratch; 0: automatic"),
    MB_FOURIER_PERIOD_ARG,
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3,
                 "sinograms (row, angle, column), or one (angle, column)")};

static const mb_op_split split[] = MB_SPLIT_STACK(mb_packet_pair);

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 17, 17}}, params = {angles = {0, 0.6, 1.2, 1.8, 2.4}}}",
    "{inputs = {{'f32', 19, 23}}, params = {angles = {0, 0.4, 4.0, 1.3, 1.7, 2.2, -0.6}, cols = "
    "20, center = 8.25, circle = 0.9, accuracy = 'exact'}}",
    "{inputs = {{'f32', 18, 13, 21}}, params = {angles = {2.1, 0.1, 1.1}, shifts = {0.5, -1, 2}, "
    "cols = 31, size = 31, roi = {5, 18, 10, 31}, scale = 0.5, pairs = 2, period = 62}}"};

/* The volume holds the slices, or the region of them that is given. */
static mb_status check_volume(const mb_fourier_project_params *p, const mb_parallel_geometry *g,
                              int64_t high, int64_t wide)
{
    if (p->roi.count && !p->size.count)
        return mb_fail(MB_STATUS_ARGUMENT, "size",
                       "roi says which part of the slices the volume is; give their size too");
    MB_TRY(mb_parallel_check_region(g));
    if (g->y1 - g->y0 != high || g->x1 - g->x0 != wide)
        return mb_fail(MB_STATUS_SHAPE, "volume",
                       "the volume's slices are %lld x %lld; %s %lld x %lld", (long long)high,
                       (long long)wide, p->roi.count ? "roi is" : "size is",
                       (long long)(g->y1 - g->y0), (long long)(g->x1 - g->x0));
    return MB_STATUS_OK;
}

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_fourier_project_params *p = params;
    const mb_shape *shape = &arrays[MB_FOURIER_PROJECT_VOLUME].shape;
    const int64_t high = shape->dims[shape->rank - 2], wide = shape->dims[shape->rank - 1];
    mb_spec result = {true, MB_F32, *shape};
    double size[2];
    if (p->angles.count < 1 || p->angles.count > 1 << 20)
        return mb_fail(MB_STATUS_ARGUMENT, "angles", "%lld angles were given; give 1 to 2^20",
                       (long long)p->angles.count);
    if (high < 1 || wide < 1 || high > 1 << 20 || wide > 1 << 20)
        return mb_fail(MB_STATUS_SHAPE, "volume",
                       "the volume's slices are %lld x %lld; each extent must be 1 to 2^20",
                       (long long)high, (long long)wide);
    MB_TRY(mb_parallel_check_count("shifts", &p->shifts, p->angles.count));
    MB_TRY(mb_parallel_check_image(&p->size, &p->roi));
    const mb_fourier_reconstruct_params adjoint =
        mb_fourier_project_adjoint(p, shape, size, &result.shape);
    const mb_parallel_geometry g = mb_fourier_geometry(&adjoint, &result.shape);
    MB_TRY(mb_fourier_check_period(p->period, g.cols));
    MB_TRY(check_volume(p, &g, high, wide));
    arrays[MB_FOURIER_PROJECT_RESULT] = result;
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_device_facts *facts = &planner->device->facts;
    mb_fourier_project_job job;
    mb_fourier_project_begin(&job, params, &arrays[MB_FOURIER_PROJECT_VOLUME].shape, facts);
    mb_fourier_layout *l = &job.l;
    if (l->samples == 0)
        l->samples = mb_fourier_library_samples(&job.adjoint, &job.g);
    if (l->grid == 0)
        l->grid = mb_fft_good_size(mb_fourier_grid(job.adjoint.accuracy, &job.g));
    mb_fourier_project_batch(&job, facts);
    const uint64_t pairs = (uint64_t)l->pairs, high = (uint64_t)(job.g.y1 - job.g.y0);
    const uint64_t cells = (uint64_t)l->grid, rows = (uint64_t)job.g.angles * (uint64_t)l->samples;
    const uint64_t thread = (uint64_t)mb_fourier_project_host_pitch(l->samples, l->grid);
    int work;
    mb_fourier_plan_tables(planner, &job.g, 4);
    mb_planner_slot(planner, "rows",
                    job.host ? mb_bytes_mul(4 * thread, (uint64_t)facts->threads) : 0, 1, 4);
    mb_planner_slot(planner, "lines", mb_bytes_mul(8 * pairs * (l->own ? high : 0), cells), 1, 2);
    mb_planner_slot(planner, "cells", mb_bytes_mul(8 * pairs * cells, cells), l->own ? 2 : 1,
                    job.host ? 4 : 3);
    mb_planner_slot(planner, "samples", mb_bytes_mul(job.host ? 0 : 8 * pairs, rows), 3, 4);
    if (!l->own) {
        const int64_t plane[] = {l->grid, l->grid};
        mb_fft_desc image = mb_fft_describe(MB_FFT_C2C_FORWARD, job.host ? 1 : 2, plane, 1, true);
        mb_planner_fft(planner, &image, "grid work", job.host ? 1 : 2, 2, &work);
    }
    if (!l->fused) {
        mb_fft_desc row =
            mb_fft_describe(MB_FFT_C2C_INVERSE, 1, &l->samples, job.host ? 1 : job.g.angles, true);
        mb_planner_fft(planner, &row, "row work", job.host ? 3 : 4, 4, &work);
    }
}

const mb_op mb_op_fourier_project = {
    .name = "fourier_project",
    .summary = "Parallel-beam projection by the direct Fourier method: 2-D FFT, rays, 1-D FFTs.",
    .doc =
        "The geometry is that of project and fourier_reconstruct: pixel (y, x) falls on u = X cos "
        "t + Y sin t + center + shift with X = x - (nx-1)/2 and Y = (ny-1)/2 - y. Its shadow is "
        "band-limited: bin b of the row gets sin(pi (u - b)) / (pi (u - b)) of its value, or "
        "rather the periodic kernel of rows of N columns without their Nyquist term, N being as "
        "long as fourier_reconstruct makes it. So with scale = 1 the rows are line integrals in "
        "pixel units of the band-limited image, at every angle alike. A part outside the detector "
        "is lost. The time hardly grows with the number of angles.\n"
        "The exact adjoint, <A x, y> = <x, A' y>, is fourier_reconstruct with filter = 'none', "
        "scale = 1 (the same scale), size = {ny, nx} and the same other options: A' y is the sum "
        "over angles of rows read at u. Sharp edges ring in the rows, as in any band-limited "
        "model; project has a model without.\n"
        "Two slices are computed as one complex image: a NaN in one slice reaches its partner.",
    .reference = "Greengard and Lee, SIAM Review 46 (2004) 443; Fessler and Sutton, IEEE Trans. "
                 "Signal Process. 51 (2003) 560",
    MB_OP_PARTS_OF(mb_fourier_project_host),
    .plan = plan,
    .split = split,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 2e-5, /* float transforms of two libraries, samples at the window's edge */
};
