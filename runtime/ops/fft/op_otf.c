/*
** otf: the transfer function of a point spread function, made where it stays: the PSF is scattered
** by wrapped index straight into the padded rows of the result, which is then transformed in place.
** There is no padded, shifted or intermediate copy: the peak is the result (and the library's work
** area).
*/
#include "ops/fft/op_otf.h"
#include "ops/op_args.h"
#include <complex.h>
#include <string.h>

#define PARAMS mb_otf_params

static const char *const forms[] = {"whole", "planes", "auto", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("psf", MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_F32), 1, 3,
                "point spread function; may be larger than the grid (it wraps)"),
    MB_VECTOR(size, 1, 1e12, "px", "extents of the real grid, one per axis of psf"),
    MB_VECTOR_OPTION(center, -1e12, 1e12, "px",
                     "0-based position of the origin in psf; default (n - 1) / 2 rounded down; "
                     "fractions shift by phase"),
    MB_FLOAT(scale, MB_ANY, 1, NULL,
             "factor; 1 / sum normalizes, 1 / N saves the scaling after the inverse transform"),
    MB_ENUM(form, forms, MB_OTF_WHOLE,
            "whole: the half spectrum; planes: only the planes that the PSF reaches, without the "
            "transform along z; auto: planes where they are few"),
    MB_INT(reach, 0, 1e12, 0, NULL,
           "in planes: at least so many on either side of the center; more are kept if the PSF "
           "reaches further"),
    MB_ARRAY_OUT("result", MB_BIT(MB_C64), 1, 3,
                 "half spectrum (..., n/2 + 1), or planes of it (2 r + 1, y, n/2 + 1)")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 4, 5}}, params = {size = {6, 8, 9}}}",
    "{inputs = {{'f32', 7, 9}}, params = {size = {8, 10}, center = {2.25, 4.5}, scale = 0.5}}",
    "{inputs = {{'u16', 11}}, params = {size = {6}, center = {3}}}",
    "{inputs = {{'f32', 4, 3, 5}}, params = {size = {20, 6, 7}, center = {1, 1.5, 2}, reach = 1, "
    "form = "
    "'planes'}}"};

/* In planes: how many, and that there can be so many. */
static mb_status check_planes(const mb_otf_params *p, const mb_shape *psf)
{
    if (psf->rank != 3)
        return mb_fail(MB_STATUS_ARGUMENT, "form",
                       "form \"planes\" is for three axes, psf has %d: give form = \"whole\"",
                       psf->rank);
    if (!mb_otf_on_plane(p, psf))
        return mb_fail(MB_STATUS_ARGUMENT, "form",
                       "form \"planes\" needs a center on a plane of psf, not at %g: give form = "
                       "\"whole\"",
                       p->center.values[0]);
    const int64_t planes = mb_otf_reached(p, psf), nz = (int64_t)p->size.values[0];
    if (!mb_otf_few_of(planes, nz))
        return mb_fail(MB_STATUS_ARGUMENT, "form",
                       "form \"planes\" takes at most %d planes, and fewer than the grid's %lld; "
                       "this PSF reaches %lld: give form = \"whole\"",
                       MB_OTF_MOST_PLANES, (long long)nz, (long long)planes);
    return MB_STATUS_OK;
}

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_otf_params *p = params;
    const mb_shape *psf = &arrays[MB_OTF_PSF].shape;
    mb_spec result = {true, MB_C64, *psf};
    MB_TRY(mb_check_axes("size", &p->size, psf->rank, false));
    MB_TRY(mb_check_whole("size", &p->size));
    if (p->center.count)
        MB_TRY(mb_check_axes("center", &p->center, psf->rank, false));
    for (int i = 0; i < psf->rank; i++) {
        if (psf->dims[i] < 1)
            return mb_fail(MB_STATUS_SHAPE, "psf", "axis %d of psf is empty", i + 1);
        result.shape.dims[i] = (int64_t)p->size.values[i];
    }
    result.shape.dims[psf->rank - 1] = result.shape.dims[psf->rank - 1] / 2 + 1;
    if (p->form == MB_OTF_PLANES)
        MB_TRY(check_planes(p, psf));
    if (mb_otf_few(p, psf))
        result.shape.dims[0] = mb_otf_few(p, psf);
    arrays[MB_OTF_RESULT] = result;
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_otf_params *p = params;
    int64_t n[3], k[3];
    mb_fft_desc desc;
    int work, rank = arrays[MB_OTF_PSF].shape.rank;
    mb_grid_vector(&p->size, 1, n);
    mb_grid_dims(&arrays[MB_OTF_PSF].shape, k);
    if (mb_otf_few(p, &arrays[MB_OTF_PSF].shape) || mb_otf_by_planes(&planner->device->facts, k, n))
        rank = 2;
    desc = mb_fft_describe(MB_FFT_R2C, rank, n + 3 - rank, 1, true);
    mb_planner_fft(planner, &desc, "work", 0, 0, &work);
}

static double sample(mb_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case MB_U8: return ((const uint8_t *)data)[i];
    case MB_U16: return ((const uint16_t *)data)[i];
    default: return (double)((const float *)data)[i];
    }
}

/* One row of the grid: every PSF row that lands on it. */
static void scatter_row(const mb_array *psf, const int64_t k[3], const int64_t n[3],
                        const int64_t center[3], int64_t z, int64_t y, double scale, float *row)
{
    memset(row, 0, (size_t)mb_grid_pitch(n[2]) * sizeof *row);
    for (int64_t sz = mb_grid_wrap(z + center[0], n[0]); sz < k[0]; sz += n[0])
        for (int64_t sy = mb_grid_wrap(y + center[1], n[1]); sy < k[1]; sy += n[1]) {
            int64_t from = (sz * k[1] + sy) * k[2], at = mb_grid_wrap(-center[2], n[2]);
            for (int64_t sx = 0; sx < k[2]; sx++) {
                row[at] += (float)(scale * sample(psf->dtype, psf->data, from + sx));
                at = at + 1 == n[2] ? 0 : at + 1;
            }
        }
}

/* exp(2 pi i k shift / n); real at the Nyquist frequency, which stands for both signs. */
static double complex phase(int64_t k, int64_t n, double shift)
{
    double angle = 2 * acos(-1.0) * (double)mb_otf_frequency(k, n) * shift / (double)n;
    return 2 * k == n ? cos(angle) : cos(angle) + I * sin(angle);
}

static void shift_row(const int64_t n[3], const double rest[3], int64_t z, int64_t y, float *row)
{
    double complex factor = phase(z, n[0], rest[0]) * phase(y, n[1], rest[1]);
    double complex step = cexp(I * (2 * acos(-1.0) * rest[2] / (double)n[2])), turn = 1;
    for (int64_t x = 0; x <= n[2] / 2; x++) {
        double complex w = factor * (2 * x == n[2] ? creal(turn) : turn);
        double complex v = w * ((double)row[2 * x] + I * (double)row[2 * x + 1]);
        row[2 * x] = (float)creal(v);
        row[2 * x + 1] = (float)cimag(v);
        turn *= step;
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_otf_params *p = call->params;
    const mb_array *psf = call->arrays[MB_OTF_PSF];
    float *grid = call->arrays[MB_OTF_RESULT]->data;
    int64_t n[3], k[3], center[3];
    double rest[3];
    mb_grid_vector(&p->size, 1, n);
    mb_grid_dims(&psf->shape, k);
    mb_otf_center(p, &psf->shape, center, rest);
    const int64_t few = mb_otf_few(p, &psf->shape), planes = few ? few : 1;
    if (few)
        mb_otf_stop_at_planes(few, n, center);
    int64_t rows = n[0] * n[1], pitch = mb_grid_pitch(n[2]);
    int threads = rows * n[2] < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < rows; row++)
        if (!mb_cancelled())
            scatter_row(psf, k, n, center, row / n[1], row % n[1], p->scale, grid + row * pitch);
    for (int64_t i = 0; i < planes; i++) {
        float *at = grid + i * n[1] * pitch;
        MB_TRY(mb_fft_exec(call->device, call->ffts[MB_OTF_FFT], at, at, call->slots[MB_OTF_WORK]));
    }
    if (rest[0] == 0 && rest[1] == 0 && rest[2] == 0)
        return MB_STATUS_OK;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < rows; row++)
        if (!mb_cancelled())
            shift_row(n, rest, row / n[1], row % n[1], grid + row * pitch);
    return MB_STATUS_OK;
}

const mb_op mb_op_otf = {
    .name = "otf",
    .summary = "Transfer function of a point spread function on a grid of any size.",
    .doc = "The sample at `center` becomes the origin of the grid. The other samples follow with "
           "wrapped indices; samples at the same place are added. The result is the half spectrum "
           "of that grid, as from rfft over all axes.\n"
           "The default center is the middle, (n - 1) / 2 rounded down, as in mode same of "
           "scipy.signal. numpy.fft.fftshift puts the origin at n / 2 rounded down, which differs "
           "for even extents.\n"
           "A PSF of few planes needs little memory in form \"planes\": apply_otf and rl_step make "
           "the transform along z while they multiply. The planes begin as far below the center as "
           "they end above it. Form \"auto\" chooses planes if the grid has three axes, the center "
           "is on a plane of the PSF, and the planes are at most 31 and fewer than the grid's.",
    .reference = "H[k] = sum over j of h[j] exp(-2 pi i k (j - c) / n)",
    MB_OP_PLANNED_PARTS,
    .uncut = "it is one transform over all axes",
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 2e-6, /* float transforms of two libraries */
};
