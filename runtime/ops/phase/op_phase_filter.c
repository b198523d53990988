/*
** phase_filter: a real filter of frames (rank 2 or 3, f32), by Fourier transforms of padded frames.
** On the host, threads share the rows and then the columns of one frame after the other
** (op_phase_filter.h); the columns of a tile pass through buffers of the thread.
*/
#include "ops/phase/op_phase_filter.h"
#include "core/multiversion.h"
#include "ops/each_item.h"
#include <float.h>
#include <string.h>

#define PARAMS mb_phase_filter_params

static const char *const methods[] = {"paganin", "generalized", "ctf", "farago", NULL};
static const char *const paddings[] = {"edge", "reflect", "symmetric", "constant", "none", NULL};
static const char *const sizes[] = {"power", "smooth", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("image", MB_BIT(MB_F32), 2, 3,
                "frames of transmission (..., row, column); the last axis dense"),
    MB_VECTOR(fresnel, 0, 1e12, NULL,
              "wavelength * distance / pixel size^2, the inverse Fresnel number of a pixel: one "
              "number, or one for rows and one for columns"),
    MB_ENUM(method, methods, MB_PHASE_PAGANIN, "the filter, see below"),
    MB_FLOAT(delta_beta, 1e-6, 1e12, 250, NULL, "delta / beta of the material"),
    MB_FLOAT(low, FLT_MIN, 1e6, 1e-5, NULL, "ctf: regularization of low frequencies"),
    MB_FLOAT(high, FLT_MIN, 1e6, 0.2, NULL, "ctf: regularization of high frequencies"),
    MB_ENUM(padding, paddings, MB_PHASE_PAD_EDGE,
            "what is around a frame; none: the frame repeats itself"),
    MB_FLOAT(value, MB_ANY, 1, NULL, "of constant padding; 1 is the open beam"),
    MB_ENUM(size, sizes, MB_PHASE_SIZE_POWER,
            "the padded extents: powers of two, or the next products of 2, 3, 5 and 7"),
    MB_VECTOR_OPTION(padded, 1, 1 << 30, "px",
                     "the padded extents instead: one number, or one for rows and one for columns"),
    MB_BOOL(log, false, "return -ln of the filtered values: line integrals"),
    MB_FLOAT(min, FLT_MIN, FLT_MAX, 1e-6, NULL, "smallest value before the logarithm"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "filtered frames, same shape; may be image")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 30, 41}}, params = {fresnel = 0.5}}",
    "{inputs = {{'f32', 3, 9, 31}}, params = {fresnel = {0.4, 0.7}, method = 'generalized', "
    "padding = 'reflect', delta_beta = 100, size = 'smooth'}}",
    "{inputs = {{'f32', 2, 11, 8}}, params = {fresnel = 0.9, method = 'ctf', delta_beta = 20, "
    "padding = 'symmetric'}}",
    "{inputs = {{'f32', 2, 33, 33}}, params = {fresnel = 3.5, method = 'ctf', delta_beta = 30, low "
    "= 1e-3, padding = 'constant', padded = 64, value = 0}}",
    "{inputs = {{'f32', 13, 7}}, params = {fresnel = 1.5, method = 'farago', delta_beta = 10, "
    "padding = 'none'}}",
    "{inputs = {{'f32', 3, 21, 50}}, params = {fresnel = 2, log = true, padded = {64, 512}}}"};

/* Rows and columns of a frame, and of the padded one. */
static void extents(const mb_phase_filter_params *p, const mb_shape *shape, int64_t n[2],
                    int64_t padded[2])
{
    for (int i = 0; i < 2; i++) {
        n[i] = shape->dims[shape->rank - 2 + i];
        padded[i] = mb_phase_padded(p, i, n[i]);
    }
}

static mb_status check_padded(const mb_phase_filter_params *p, const int64_t n[2])
{
    if (p->padded.count == 0)
        return MB_STATUS_OK;
    MB_TRY(mb_check_axes("padded", &p->padded, 2, true));
    MB_TRY(mb_check_whole("padded", &p->padded));
    if (p->padding == MB_PHASE_PAD_NONE)
        return mb_fail(MB_STATUS_ARGUMENT, "padded",
                       "padded is given, but padding is 'none'; remove one of the two");
    for (int i = 0; i < 2; i++)
        if (mb_phase_number(&p->padded, i) < (double)n[i])
            return mb_fail(MB_STATUS_ARGUMENT, "padded",
                           "padded is %g for frames of %lld %s; give at least that many",
                           mb_phase_number(&p->padded, i), (long long)n[i], i ? "columns" : "rows");
    return MB_STATUS_OK;
}

/* The denominator cos p + delta_beta sin p must stay positive up to the highest frequency. */
static mb_status check_farago(const mb_phase_filter_params *p)
{
    const double pi = 3.14159265358979323846;
    double most = pi / 4 * (mb_phase_number(&p->fresnel, 0) + mb_phase_number(&p->fresnel, 1));
    double pole = pi - atan(1 / p->delta_beta);
    if (p->method == MB_PHASE_FARAGO && most > 0.999 * pole)
        return mb_fail(
            MB_STATUS_ARGUMENT, "fresnel",
            "the filter of Farago has a pole where the phase pi * fresnel * f^2 is %.3g; "
            "with fresnel %g it is %.3g at the highest frequency: use method 'ctf'",
            pole, mb_phase_number(&p->fresnel, 0), most);
    return MB_STATUS_OK;
}

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_phase_filter_params *p = params;
    const mb_shape *shape = &arrays[MB_PHASE_FILTER_IMAGE].shape;
    int64_t n[2], padded[2];
    MB_TRY(mb_check_axes("fresnel", &p->fresnel, 2, true));
    MB_TRY(check_farago(p));
    for (int i = 0; i < 2; i++) {
        n[i] = shape->dims[shape->rank - 2 + i];
        if (n[i] < 1 || n[i] > 1 << 29)
            return mb_fail(MB_STATUS_SHAPE, "image", "a frame has %lld %s; it must have 1 to 2^29",
                           (long long)n[i], i ? "columns" : "rows");
    }
    MB_TRY(check_padded(p, n));
    extents(p, shape, n, padded);
    if ((double)padded[0] * (double)padded[1] > (double)((int64_t)1 << 40))
        return mb_fail(MB_STATUS_SHAPE, "image",
                       "the padded frame has %lld x %lld elements; the limit is 2^40",
                       (long long)padded[0], (long long)padded[1]);
    arrays[MB_PHASE_FILTER_RESULT] = arrays[MB_PHASE_FILTER_IMAGE];
    return MB_STATUS_OK;
}

/* ---- plan ---- */

static uint64_t tiles_of(const int64_t padded[2])
{
    return (uint64_t)((padded[1] / 2 + MB_PHASE_COLUMNS) / MB_PHASE_COLUMNS);
}

/* Rows of a tile. Odd, or the lines of a row in all tiles would compete for a few lines of the
** cache. */
static int64_t rows_of(const int64_t n[2])
{
    return n[0] | 1;
}

static void plan_host(mb_planner *planner, const int64_t n[2], const int64_t padded[2])
{
    const uint64_t half = (uint64_t)(padded[0] / 2 + 1) * (uint64_t)(padded[1] / 2 + 1);
    int work;
    mb_planner_slot(planner, "spectrum",
                    mb_bytes_mul(8 * MB_PHASE_COLUMNS * tiles_of(padded), (uint64_t)rows_of(n)), 0,
                    0);
    mb_planner_slot(planner, "response", mb_bytes_mul(4, half), 0, 0);
    mb_planner_slot(planner, "lines",
                    mb_bytes_mul(4 * (uint64_t)mb_phase_host_line(padded),
                                 (uint64_t)planner->device->facts.threads),
                    0, 0);
    mb_planner_slot(planner, "twiddles", 0, 0, 0);
    for (int i = 0; i < 4; i++) {
        static const mb_fft_kind kinds[] = {MB_FFT_R2C, MB_FFT_C2R, MB_FFT_C2C_FORWARD,
                                            MB_FFT_C2C_INVERSE};
        mb_fft_desc desc = mb_fft_describe(kinds[i], 1, &padded[i < 2], 1, true);
        const int64_t line = mb_phase_host_line(padded); /* two lines of a thread, aligned */
        desc.in_distance = i == 0 ? line : line / 2;
        desc.out_distance = i == 1 ? line : line / 2;
        mb_planner_fft(planner, &desc, "work", 0, 0, &work);
    }
}

static void plan_cuda(mb_planner *planner, int64_t frames, const int64_t n[2],
                      const int64_t padded[2])
{
    const bool fused = mb_phase_fused(&planner->device->facts, padded);
    const int64_t points =
        fused ? mb_phase_frame_points(n[0], padded) * mb_phase_batch(frames, n[0], padded)
              : padded[0] * (padded[1] / 2 + 1);
    int work;
    mb_planner_slot(planner, "spectrum", mb_bytes_mul(8, (uint64_t)points), 0, 0);
    mb_planner_slot(planner, "response", 0, 0, 0);
    mb_planner_slot(planner, "lines", 0, 0, 0);
    mb_planner_slot(
        planner, "twiddles",
        fused ? 8 * (uint64_t)(mb_phase_table(padded[0]) + mb_phase_table(padded[1])) : 0, 0, 0);
    for (int i = 0; i < 2 && !fused; i++) {
        mb_fft_desc desc = mb_fft_describe(i ? MB_FFT_C2R : MB_FFT_R2C, 2, padded, 1, true);
        mb_planner_fft(planner, &desc, "work", 0, 0, &work);
    }
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_shape *shape = &arrays[MB_PHASE_FILTER_IMAGE].shape;
    int64_t n[2], padded[2];
    extents(params, shape, n, padded);
    for (int i = 0; i < 2; i++)
        mb_planner_slot(planner, i ? "columns' table" : "rows' table",
                        12 * (uint64_t)(padded[i] / 2 + 1), 0, 0);
    mb_planner_slot(planner, "sources", 4 * (uint64_t)(padded[0] + padded[1]), 0, 0);
    if (planner->device->facts.compute_capability == 0)
        plan_host(planner, n, padded);
    else
        plan_cuda(planner, shape->rank == 3 ? shape->dims[0] : 1, n, padded);
}

/* ---- the host's kernel ---- */

typedef struct job {
    const mb_op_call *call;
    const mb_phase_filter_params *p;
    int64_t n[2], padded[2], bins;
    mb_phase_response response;
    const int32_t *rows, *columns; /* sources */
    float *spectrum;               /* [tile][row][MB_PHASE_COLUMNS], complex */
    float constant;                /* of padding, less 1 */
    const float *from;             /* a frame */
    float *to;
    int64_t from_pitch, to_pitch;
} job;

static mb_status transform(const job *j, int fft, float *data)
{
    return mb_fft_exec(j->call->device, j->call->ffts[fft], data, data,
                       j->call->slots[MB_PHASE_FILTER_WORK + fft]);
}

MB_MULTIVERSION
static void pad_row(const job *j, const float *from, float *row)
{
    const int64_t n = j->n[1];
    for (int64_t x = 0; x < n; x++)
        row[x] = from[x] - 1.0F;
    for (int64_t x = n; x < j->padded[1]; x++)
        row[x] = j->columns[x] < 0 ? j->constant : row[j->columns[x]];
}

/* A part of the spectrum of a row, of which `left` are left, to or from a tile. */
static void copy_part(float *to, const float *from, int64_t left)
{
    if (left >= MB_PHASE_COLUMNS)
        memcpy(to, from, 8 * MB_PHASE_COLUMNS);
    else
        memcpy(to, from, 8 * (size_t)left);
}

/* A thread's own memory. */
static float *line_of(const job *j, int thread)
{
    return (float *)j->call->slots[MB_PHASE_FILTER_LINES] + mb_phase_host_line(j->padded) * thread;
}

static mb_status row_forth(const void *given, int64_t y, int thread)
{
    const job *j = given;
    float *row = line_of(j, thread);
    const int64_t step = 2 * MB_PHASE_COLUMNS * rows_of(j->n);
    float *to = j->spectrum + 2 * MB_PHASE_COLUMNS * y;
    pad_row(j, j->from + y * j->from_pitch, row);
    MB_TRY(transform(j, MB_PHASE_FILTER_FORWARD, row));
    for (int64_t k = 0; k < j->bins; k += MB_PHASE_COLUMNS, to += step)
        copy_part(to, row + 2 * k, j->bins - k);
    return MB_STATUS_OK;
}

/* -ln of a row, NaN stays NaN. */
static void minus_log(float *to, int64_t n, float min)
{
    for (int64_t x = 0; x < n; x++)
        to[x] = -logf(to[x] < min ? min : to[x]);
}

static mb_status row_back(const void *given, int64_t y, int thread)
{
    const job *j = given;
    float *row = line_of(j, thread);
    const int64_t step = 2 * MB_PHASE_COLUMNS * rows_of(j->n);
    const float *from = j->spectrum + 2 * MB_PHASE_COLUMNS * y, offset = j->response.offset;
    float *to = j->to + y * j->to_pitch;
    for (int64_t k = 0; k < j->bins; k += MB_PHASE_COLUMNS, from += step)
        copy_part(row + 2 * k, from, j->bins - k);
    MB_TRY(transform(j, MB_PHASE_FILTER_INVERSE, row));
    for (int64_t x = 0; x < j->n[1]; x++)
        to[x] = row[x] + offset;
    if (j->p->log)
        minus_log(to, j->n[1], (float)j->p->min);
    return MB_STATUS_OK;
}

/* The columns of a tile, padded. */
static void pad_columns(const job *j, const float *tile, bool first, float *columns)
{
    const int64_t pitch = mb_phase_host_column(j->padded[0]);
    for (int64_t y = 0; y < j->padded[0]; y++) {
        const int64_t source = y < j->n[0] ? y : j->rows[y];
        const float *from = tile + 2 * MB_PHASE_COLUMNS * source;
        for (int64_t c = 0; c < MB_PHASE_COLUMNS; c++)
            if (source >= 0)
                memcpy(columns + c * pitch + 2 * y, from + 2 * c, 8);
            else
                memset(columns + c * pitch + 2 * y, 0, 8);
        if (source < 0 && first)
            columns[2 * y] = j->constant * (float)j->padded[1];
    }
}

MB_MULTIVERSION
static void multiply(float *column, const float *response, int64_t padded)
{
    const int64_t half = padded / 2;
    for (int64_t k = 0; k <= half; k++) {
        column[2 * k] *= response[k];
        column[2 * k + 1] *= response[k];
    }
    for (int64_t k = half + 1; k < padded; k++) {
        column[2 * k] *= response[padded - k];
        column[2 * k + 1] *= response[padded - k];
    }
}

static mb_status filter_tile(const void *given, int64_t item, int thread)
{
    const job *j = given;
    float *columns = line_of(j, thread);
    float *tile = j->spectrum + 2 * MB_PHASE_COLUMNS * rows_of(j->n) * item;
    const float *response = j->call->slots[MB_PHASE_FILTER_RESPONSE];
    const int64_t x0 = item * MB_PHASE_COLUMNS, left = j->bins - x0,
                  count = left < MB_PHASE_COLUMNS ? left : MB_PHASE_COLUMNS;
    pad_columns(j, tile, x0 == 0, columns);
    for (int64_t c = 0; c < count; c++) {
        float *column = columns + c * mb_phase_host_column(j->padded[0]);
        MB_TRY(transform(j, MB_PHASE_FILTER_COLUMN_FORWARD, column));
        multiply(column, response + (x0 + c) * (j->padded[0] / 2 + 1), j->padded[0]);
        MB_TRY(transform(j, MB_PHASE_FILTER_COLUMN_INVERSE, column));
    }
    for (int64_t y = 0; y < j->n[0]; y++)
        for (int64_t c = 0; c < MB_PHASE_COLUMNS; c++)
            memcpy(tile + 2 * (MB_PHASE_COLUMNS * y + c),
                   columns + c * mb_phase_host_column(j->padded[0]) + 2 * y, 8);
    return MB_STATUS_OK;
}

static mb_status fill_response(const void *given, int64_t x, int thread)
{
    const job *j = given;
    const int64_t rows = j->padded[0] / 2 + 1;
    float *to = (float *)j->call->slots[MB_PHASE_FILTER_RESPONSE] + x * rows;
    (void)thread;
    for (int64_t y = 0; y < rows; y++)
        to[y] = mb_phase_response_at(&j->response, j->call->slots[MB_PHASE_FILTER_ROW_TABLE], rows,
                                     y, j->call->slots[MB_PHASE_FILTER_COLUMN_TABLE], j->bins, x);
    return MB_STATUS_OK;
}

static void make_tables(const job *j)
{
    int32_t *sources = j->call->slots[MB_PHASE_FILTER_SOURCES];
    for (int i = 0; i < 2; i++) {
        mb_phase_axis(j->p, i, j->padded[i], j->call->slots[MB_PHASE_FILTER_ROW_TABLE + i]);
        for (int64_t k = 0; k < j->padded[i]; k++)
            *sources++ = mb_phase_source(j->p->padding, k, j->n[i], j->padded[i]);
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_array *image = call->arrays[MB_PHASE_FILTER_IMAGE];
    mb_array *result = call->arrays[MB_PHASE_FILTER_RESULT];
    const int rank = image->shape.rank;
    const int64_t frames = rank == 3 ? image->shape.dims[0] : 1;
    job j = {.call = call, .p = call->params, .spectrum = call->slots[MB_PHASE_FILTER_SPECTRUM]};
    extents(j.p, &image->shape, j.n, j.padded);
    j.bins = j.padded[1] / 2 + 1;
    j.response = mb_phase_response_of(j.p, j.padded);
    j.rows = call->slots[MB_PHASE_FILTER_SOURCES];
    j.columns = j.rows + j.padded[0];
    j.constant = (float)(j.p->value - 1);
    j.from_pitch = image->strides[rank - 2];
    j.to_pitch = result->strides[rank - 2];
    make_tables(&j);
    MB_TRY(mb_each_item(call, j.bins, fill_response, &j));
    for (int64_t i = 0; i < frames; i++) {
        j.from = (const float *)image->data + (rank == 3 ? i * image->strides[0] : 0);
        j.to = (float *)result->data + (rank == 3 ? i * result->strides[0] : 0);
        MB_TRY(mb_each_item(call, j.n[0], row_forth, &j));
        MB_TRY(mb_each_item(call, (int64_t)tiles_of(j.padded), filter_tile, &j));
        MB_TRY(mb_each_item(call, j.n[0], row_back, &j));
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_phase_filter = {
    .name = "phase_filter",
    .summary = "Phase retrieval from one distance: Paganin, generalized Paganin, CTF, Farago.",
    .doc =
        "A frame of transmission I (intensity over flat field) is padded, multiplied in Fourier "
        "space, and cropped. With the frequency f in cycles per pixel, the phase p = pi * fresnel "
        "* f^2 and r = delta_beta, the factors are\n"
        "paganin 1 / (1 + r p); generalized the same with f^2 = (sin^2 pi fx + sin^2 pi fy) / "
        "pi^2, for features near the pixel size; farago 1 / (cos p + r sin p), refused where it "
        "has a pole. They keep the mean, and give the transmission in the plane of contact, or "
        "with log its -ln, the line integrals.\n"
        "ctf s / (2 s^2 + e) of I - 1, with s = sin p + cos(p) / r, gives the phase shift in rad, "
        "negative behind matter. e is low below the first maximum of s along the rows, f = sqrt(1 "
        "/ (2 fresnel)) or 0.5, high above it, with an error function of width 0.01 between.\n"
        "Around a frame its edge values repeat, by default. The padded extent is chosen to leave "
        "room for 9 times the length over which the filter of Paganin decays, sqrt(r * fresnel / "
        "(4 pi)) pixels, on either side, at most for the frame itself; for ctf and farago it is at "
        "least twice the extent. Values that are not finite make their whole frame NaN, and no "
        "other frame.\n"
        "On an NVIDIA GPU of compute capability 8.0 or later, padded extents of 64, 512, 1024, "
        "2048 and 4096 (as the shared memory permits) are transformed by kernels of Moonbeam, "
        "others by the FFT library, frame by frame.",
    .reference = "D. Paganin et al., J. Microsc. 206, 33 (2002); D. M. Paganin et al., J. Opt. 22, "
                 "115607 (2020); T. Farago et al., Opt. Lett. 49, 5159 (2024); B. Yu et al., Opt. "
                 "Express 26, 11110 (2018)",
    MB_OP_PLANNED_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_PHASE_FILTER_IMAGE,
    .split = mb_stack_split,
    .tolerance = 5e-6, /* float transforms of two libraries */
};
