/*
** stripes_wavelet: removes stripes by damping the vertical details of a wavelet transform (Munch
** 2009), on the host: tables, profiles, subtraction (op_stripes_wavelet.h).
*/
#include "core/multiversion.h"
#include "ops/op_args.h"
#include "ops/stripes/op_stripes_wavelet.h"
#include <float.h>
#include <omp.h>
#include <string.h>

#define PARAMS mb_stripes_wavelet_params
#define LANES 16 /* profiles that are filtered side by side */

static const char *const wavelets[] = {
    "db1",   "db2",   "db3",   "db4",   "db5",   "db6",   "db7",   "db8",   "db9",   "db10",
    "db11",  "db12",  "db13",  "db14",  "db15",  "db16",  "db17",  "db18",  "db19",  "db20",
    "sym2",  "sym3",  "sym4",  "sym5",  "sym6",  "sym7",  "sym8",  "sym9",  "sym10", "sym11",
    "sym12", "sym13", "sym14", "sym15", "sym16", "sym17", "sym18", "sym19", "sym20", NULL};
static const char *const boundaries[] = {"symmetric", "periodic", NULL};
static const char *const paddings[] = {"none", "angles", "columns", "both", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("sino", MB_BIT(MB_F32), 2, 3,
                "sinograms (row, angle, column), or one (angle, column)"),
    MB_ENUM(wavelet, wavelets, 4,
            "Daubechies' wavelets db1 (Haar) to db20, and his least asymmetric ones"),
    MB_FLOAT(sigma, FLT_MIN, 1e6, 2, "cycles",
             "width of the damping along the angles: greater values remove shorter stripes"),
    MB_INT(level, 0, MB_WAVELET_LEVELS, 0, NULL,
           "levels of the transform: greater values remove wider stripes; 0: as many as the "
           "greater extent can be halved"),
    MB_ENUM(boundary, boundaries, MB_WAVELET_SYMMETRIC,
            "how sinograms go on beyond their edges in the transform"),
    MB_ENUM(padding, paddings, MB_WAVELET_PAD_NONE,
            "angles: zeros, an eighth in all; columns: edge values, half the width on both sides; "
            "both: a tenth of the smaller extent, at most 150, with means and edge values"),
    MB_FLOAT(origin, 0, 1, 0, "cycles",
             "center of the damping in bands with an even number of rows; 0 removes constant "
             "stripes, other values leave a part"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "same shape; may be sino")};

static const char *const samples[] = {
    "{inputs = {{'f32', 6, 37, 41}}, params = {level = 3}}",
    "{inputs = {{'f32', 3, 70, 33}}, params = {wavelet = 'sym16', sigma = 1, level = 4, padding = "
    "'angles', origin = 0.5}}",
    "{inputs = {{'f32', 2, 33, 150}}, params = {wavelet = 'db15', sigma = 1, level = 6, boundary = "
    "'periodic', padding = 'columns'}}",
    "{inputs = {{'f32', 64, 50}}, params = {wavelet = 'db9', sigma = 30, level = 2, padding = "
    "'both', origin = 1}}",
    "{inputs = {{'f32', 2, 1, 1}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    (void)params;
    arrays[MB_STRIPES_WAVELET_RESULT] = arrays[MB_STRIPES_WAVELET_SINO];
    return MB_STATUS_OK;
}

/* Floats of one of the two buffers of a thread's rows. */
static int64_t rows_room(const mb_wavelet_plan *w)
{
    int64_t most = w->width[0];
    for (int k = 1; k <= w->levels; k++)
        most = w->width[k] > most ? w->width[k] : most;
    return (most + 1) * LANES;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_shape *shape = &arrays[MB_STRIPES_WAVELET_SINO].shape;
    const mb_device *device = planner->device;
    int64_t angles = shape->dims[shape->rank - 2], columns = shape->dims[shape->rank - 1];
    mb_wavelet_plan w = mb_wavelet_plan_make(params, angles, columns);
    uint64_t threads = (uint64_t)device->facts.threads, cascade, rows;
    if (mb_modes_on_cuda(device)) {
        cascade = mb_wavelet_cuda_cascade_bytes(&w);
        rows = mb_wavelet_cuda_rows_bytes(&w, device, shape->rank == 3 ? shape->dims[0] : 1);
    } else {
        cascade = mb_bytes_mul(2 * threads * sizeof(double), (uint64_t)mb_wavelet_cascade(&w));
        rows = mb_bytes_mul(2 * threads * sizeof(float), (uint64_t)rows_room(&w));
    }
    mb_modes_plan(planner, shape->rank == 3 ? shape->dims[0] : 1, angles, columns,
                  mb_wavelet_modes(&w));
    mb_planner_slot(planner, "cascade", cascade, 0, 0);
    mb_planner_slot(planner, "rows", rows, 0, 0);
}

/* ---- tables ---- */

/* The coefficients of a mode at level 1, in one of the two buffers. */
static const double *coefficients(const mb_wavelet_plan *w, int64_t mode, bool transposed,
                                  double *buffer)
{
    double *now = buffer, *next = buffer + mb_wavelet_cascade(w);
    int level = mb_wavelet_level(w, mode);
    for (int64_t m = 0; m < w->rows[level]; m++)
        now[m] = mb_wavelet_wave(w, mode, m);
    for (int k = level; k > 1; k--) {
        double *keep = now;
        for (int64_t i = 0; i < w->rows[k - 1]; i++)
            next[i] = mb_wavelet_up(w, now, w->rows[k], w->rows[k - 1], i, transposed);
        now = next;
        next = keep;
    }
    return now;
}

static void fill_mode(const mb_modes *m, const mb_wavelet_plan *w, int64_t mode, double *buffer)
{
    const double *v = coefficients(w, mode, true, buffer);
    double mean = 0, factor = mb_wavelet_factor(w, mode);
    if (w->padding == MB_WAVELET_PAD_BOTH)
        for (int64_t i = 0; i < w->rows[0]; i++)
            if (i < w->before || i >= w->before + w->angles)
                mean += mb_wavelet_up(w, v, w->rows[1], w->rows[0], i, true);
    mean /= (double)w->angles;
    for (int64_t a = 0; a < w->angles; a++)
        *mb_modes_p(m, mode, a) =
            (float)(mean + mb_wavelet_up(w, v, w->rows[1], w->rows[0], w->before + a, true));
    v = coefficients(w, mode, false, buffer);
    for (int64_t a = 0; a < w->angles; a++)
        *mb_modes_q(m, a, mode) =
            (float)(factor * mb_wavelet_up(w, v, w->rows[1], w->rows[0], w->before + a, false));
}

/* ---- profiles ---- */

typedef struct mb_wavelet_step {
    const mb_wavelet_plan *w;
    const float *filter;
    int64_t n, count; /* values, coefficients */
} mb_wavelet_step;

/* Coefficients of values, of all lanes. */
MB_MULTIVERSION
static void analyze(const mb_wavelet_step *step, const float *restrict from, float *restrict to)
{
    const mb_wavelet_plan *w = step->w;
    int64_t s = w->boundary == MB_WAVELET_PERIODIC ? w->length / 2 : 1, last = w->length - 1;
    for (int64_t m = 0; m < step->count; m++) {
        float sum[LANES] = {0};
        int64_t top = 2 * m + s;
        if (top - last >= 0 && top < step->n) {
            for (int64_t t = 0; t <= last; t++)
                for (int lane = 0; lane < LANES; lane++)
                    sum[lane] += step->filter[t] * from[(top - t) * LANES + lane];
        } else {
            for (int64_t t = 0; t <= last; t++) {
                const float *v = from + mb_wavelet_place(w, top - t, step->n) * LANES;
                for (int lane = 0; lane < LANES; lane++)
                    sum[lane] += step->filter[t] * v[lane];
            }
        }
        memcpy(to + m * LANES, sum, sizeof sum);
    }
}

/* Values of coefficients: the inverse of `analyze`, of one of the two bands. */
MB_MULTIVERSION
static void synthesize(const mb_wavelet_step *step, const float *restrict from, float *restrict to)
{
    const mb_wavelet_plan *w = step->w;
    bool periodic = w->boundary == MB_WAVELET_PERIODIC;
    int64_t s = periodic ? w->length / 2 : 1, period = 2 * step->count;
    int64_t low = periodic ? 1 - w->length / 2 : 0;
    int64_t high = periodic ? period - 2 + w->length / 2 : step->n - 1;
    for (int64_t i = 0; i < step->n; i++) {
        float sum[LANES] = {0};
        int64_t start = periodic ? i - (i - low) / period * period : i;
        for (int64_t j = start; j <= high; j += period) {
            int64_t first = j - s < 0 ? 0 : (j - s + 1) / 2, end = j - s + w->length - 1;
            end = end < 0 ? 0 : end / 2 + 1;
            end = end < step->count ? end : step->count;
            for (int64_t m = first; m < end; m++)
                for (int lane = 0; lane < LANES; lane++)
                    sum[lane] += step->filter[2 * m + s - j] * from[m * LANES + lane];
            if (!periodic)
                break;
        }
        memcpy(to + i * LANES, sum, sizeof sum);
    }
}

/* Down to the details of a level, and back, on values of LANES profiles in `rows`; they end in the
** buffer that is returned. */
static float *details(const mb_wavelet_plan *w, int level, float *rows, float *other)
{
    float *keep;
    for (int k = 1; k <= level; k++) {
        mb_wavelet_step step = {w, k == level ? w->high_f : w->low_f, w->width[k - 1], w->width[k]};
        analyze(&step, rows, other);
        keep = rows, rows = other, other = keep;
    }
    for (int k = level; k >= 1; k--) {
        mb_wavelet_step step = {w, k == level ? w->high_f : w->low_f, w->width[k - 1], w->width[k]};
        synthesize(&step, rows, other);
        keep = rows, rows = other, other = keep;
    }
    return rows;
}

/* Profiles first ... first + many - 1 of one level, of sinogram `i` of the group. */
static void filter_profiles(const mb_modes *m, const mb_wavelet_plan *w, int64_t i, int64_t first,
                            int64_t many, float *rows)
{
    float *other = rows + rows_room(w);
    int64_t columns = w->columns, pitch = m->modes * MB_MODES_TILE;
    const float *t = m->t + (i * m->tiles * m->modes + first) * MB_MODES_TILE;
    float *s = m->s + (i * m->tiles * m->modes + first) * MB_MODES_TILE;
    memset(rows, 0, sizeof(float) * (size_t)(w->width[0] * LANES));
    for (int64_t x = 0; x < w->width[0]; x++) {
        int64_t c = x - w->left;
        c = c < 0 ? 0 : c < columns ? c : columns - 1;
        const float *from = t + c / MB_MODES_TILE * pitch + c % MB_MODES_TILE;
        for (int64_t lane = 0; lane < many; lane++)
            rows[x * LANES + lane] = from[lane * MB_MODES_TILE];
    }
    rows = details(w, mb_wavelet_level(w, first), rows, other);
    for (int64_t c = 0; c < m->tiles * MB_MODES_TILE; c++) {
        float *to = s + c / MB_MODES_TILE * pitch + c % MB_MODES_TILE;
        for (int64_t lane = 0; lane < many; lane++)
            to[lane * MB_MODES_TILE] = c < columns ? rows[(w->left + c) * LANES + lane] : 0;
    }
}

/* Batches of at most LANES profiles of a level. */
static int64_t batches_of(const mb_wavelet_plan *w, int level)
{
    return mb_modes_up(w->first[level] - w->first[level - 1], LANES);
}

static void filter_batch(const mb_modes *m, const mb_wavelet_plan *w, int64_t i, int64_t batch,
                         float *rows)
{
    int level = 1;
    for (; batch >= batches_of(w, level); level++)
        batch -= batches_of(w, level);
    int64_t first = w->first[level - 1] + batch * LANES, left = w->first[level] - first;
    filter_profiles(m, w, i, first, left < LANES ? left : LANES, rows);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_array *sino = call->arrays[MB_STRIPES_WAVELET_SINO];
    int rank = sino->shape.rank;
    mb_wavelet_plan w =
        mb_wavelet_plan_make(call->params, sino->shape.dims[rank - 2], sino->shape.dims[rank - 1]);
    mb_modes m = mb_modes_of(call, mb_wavelet_modes(&w));
    double *cascade = call->slots[MB_STRIPES_WAVELET_CASCADE];
    float *rows = call->slots[MB_STRIPES_WAVELET_ROWS];
    int64_t batches = 0;
    for (int k = 1; k <= w.levels; k++)
        batches += batches_of(&w, k);
#pragma omp parallel for schedule(dynamic) num_threads(m.threads)
    for (int64_t mode = 0; mode < m.modes; mode++)
        if (!mb_cancelled())
            fill_mode(&m, &w, mode, cascade + 2 * mb_wavelet_cascade(&w) * omp_get_thread_num());
    for (int64_t first = 0; first < m.sinograms.count; first += MB_MODES_HOST_GROUP) {
        int64_t left = m.sinograms.count - first;
        int64_t many = left < MB_MODES_HOST_GROUP ? left : MB_MODES_HOST_GROUP;
        mb_modes_project(&m, first, many);
#pragma omp parallel for schedule(dynamic) num_threads(m.threads)
        for (int64_t job = 0; job < many * batches; job++)
            if (!mb_cancelled())
                filter_batch(&m, &w, job / batches, job % batches,
                             rows + 2 * rows_room(&w) * omp_get_thread_num());
        mb_modes_subtract(&m, first, many, false);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_stripes_wavelet = {
    .name = "stripes_wavelet",
    .summary =
        "Removes stripes from sinograms: vertical details of a wavelet transform are damped.",
    .doc =
        "Each level of the transform has a band of details along the columns, smooth along the "
        "angles. The Fourier transform of the band along the angles is multiplied by 1 - exp(-f^2 "
        "/ (2 sigma^2)), f in cycles per band, and the transform is inverted. With an origin o, "
        "where the band has an even number of rows, f + o stands for f, and the real part is "
        "taken. Frequencies of which less than 1e-6 goes are left alone.\n"
        "What is damped is computed and subtracted, not the whole transformed: work and scratch "
        "grow with sigma times the number of levels, up to the number of angles. symmetric repeats "
        "the edge values, periodic begins again, after one more last value where the extent is "
        "odd.\n"
        "A NaN spreads over its sinogram, and to no other. out = sino works in place.",
    .reference = "B. Muench, P. Trtik, F. Marone, M. Stampanoni, Stripe and ring artifact removal "
                 "with combined wavelet-Fourier filtering, Opt. Express 17 (2009) 8567",
    MB_OP_PLANNED_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_STRIPES_WAVELET_SINO,
    .split = mb_stack_split,
    .tolerance = 1e-5, /* sums of another order */
};
