/*
** ramp_filter: the filter of filtered back-projection, along the detector axis of sinograms (rank 1
** to 3, f32). Each row is padded to P (zeros or its edge values), transformed, multiplied by the
** response (op_ramp_filter.h), transformed back and cropped. Rows do not touch each other: one that
** is not finite leaves its neighbors as they are. On the host every thread filters rows of its
** own, one at a time, in one padded row: the scratch does not depend on the number of rows.
*/
#include "core/multiversion.h"
#include "ops/tomography/op_ramp_filter.h"
#include "ops/tomography/parallel_args.h"
#include <omp.h>
#include <string.h>

#define PARAMS mb_ramp_filter_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("sino", MB_BIT(MB_F32), 1, 3, "sinograms; the last axis is the detector"),
    MB_PARALLEL_FILTER_ARGS(1 << 30),
    MB_FLOAT(scale, MB_ANY, 1, NULL, "factor of the filter"),
    MB_VECTOR_OPTION(
        slice_shifts, -(1 << 29), 1 << 29, "px",
        "added to the detector coordinate; one per slice of a 3-D sinogram, else one number"),
    MB_VECTOR_OPTION(weights, MB_ANY, NULL,
                     "one factor per angle (row of a slice), for uneven angles; default 1"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 1, 3, "filtered sinograms, same shape; may be sino")};

static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    (void)params;
    return cut->split->axis < arrays[MB_RAMP_FILTER_SINO].shape.rank - 1;
}

/* Slices have their shifts with them, angles their weights. */
static void piece(const mb_spec *arrays, int axis, mb_op_piece *piece, void *params, double *room)
{
    mb_ramp_filter_params *p = params;
    const int rank = arrays[MB_RAMP_FILTER_SINO].shape.rank;
    (void)room;
    if (axis == rank - 2 && p->weights.count > 0)
        p->weights = mb_vector_part(&p->weights, piece->input);
    if (axis == 0 && rank == 3 && p->slice_shifts.count > 0)
        p->slice_shifts = mb_vector_part(&p->slice_shifts, piece->input);
}

static const mb_op_split split[] = {
    MB_SPLIT_AXIS(0, .when = "it is not the axis of the detector", .adapt = adapt, .piece = piece),
    MB_SPLIT_AXIS(1, .when = "it is not the axis of the detector", .adapt = adapt, .piece = piece),
    MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 16}}, params = {filter = 'hann'}}",
    "{inputs = {{'f32', 7, 31}}, params = {padding = 'edge', cutoff = 0.7, filter = "
    "'shepp-logan'}}",
    "{inputs = {{'f32', 2, 3, 13}}, params = {pad_width = 28, scale = 0.5}}",
    "{inputs = {{'f32', 4, 3, 17}}, params = {slice_shifts = {-2.25, 0, 7, 0.5}, padding = "
    "'edge'}}",
    "{inputs = {{'f32', 2, 3, 301}}, params = {slice_shifts = {0.75, -3}, filter = 'hamming'}}",
    "{inputs = {{'f32', 3, 4, 19}}, params = {weights = {0.5, 1.75, 0, 1}, filter = 'hann'}}",
    "{inputs = {{'f32', 5, 600}}, params = {weights = {1, 0.25, 2, 1, 1.5}, padding = 'edge'}}",
    "{inputs = {{'f32', 2, 3, 301}}, params = {weights = {1, 0.5, 2}, slice_shifts = {1.5, -2}}}",
    "{inputs = {{'f32', 2, 3, 45}}, params = {weights = {3, 0.5, 1}, slice_shifts = {1.5, -2}, "
    "pad_width = 124}}"};

static mb_status check_shifts(const mb_ramp_filter_params *p, const mb_shape *shape, int64_t width)
{
    int64_t slices = mb_ramp_filter_slices(shape), padded = mb_ramp_filter_padded(p, width);
    int64_t room = (padded - width) / 2;
    if (p->slice_shifts.count == 0)
        return MB_STATUS_OK;
    if (p->slice_shifts.count != slices)
        return mb_fail(MB_STATUS_ARGUMENT, "slice_shifts",
                       "%lld slice_shifts were given and the sinogram has %lld slices",
                       (long long)p->slice_shifts.count, (long long)slices);
    for (int64_t i = 0; i < slices; i++)
        if (!(fabs(p->slice_shifts.values[i]) <= (double)room))
            return mb_fail(
                MB_STATUS_ARGUMENT, "slice_shifts",
                "element %lld of slice_shifts is %g; rows of %lld columns padded to %lld can move "
                "by %lld at most; give a pad_width of %.0f or more",
                (long long)i + 1, p->slice_shifts.values[i], (long long)width, (long long)padded,
                (long long)room,
                4 * ceil(0.25 * (double)width + 0.5 * ceil(fabs(p->slice_shifts.values[i]))));
    return MB_STATUS_OK;
}

static mb_status check_weights(const mb_ramp_filter_params *p, const mb_shape *shape)
{
    const int64_t angles = mb_ramp_filter_angles(shape);
    if (p->weights.count == 0 || p->weights.count == angles)
        return MB_STATUS_OK;
    return mb_fail(MB_STATUS_ARGUMENT, "weights",
                   "%lld weights were given and the sinogram has %lld angles",
                   (long long)p->weights.count, (long long)angles);
}

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_ramp_filter_params *p = params;
    const mb_shape *shape = &arrays[MB_RAMP_FILTER_SINO].shape;
    int64_t width = shape->dims[shape->rank - 1];
    if (width < 1 || width > 1 << 29)
        return mb_fail(
            MB_STATUS_SHAPE, "sino",
            "the sinogram's rows have %lld samples; the detector axis must have 1 to 2^29",
            (long long)width);
    if (p->pad_width != 0 && (p->pad_width < width || p->pad_width % 4 != 0))
        return mb_fail(MB_STATUS_ARGUMENT, "pad_width",
                       "pad_width is %lld; it must be a multiple of 4 and at least the width %lld, "
                       "or 0 for automatic",
                       (long long)p->pad_width, (long long)width);
    MB_TRY(check_shifts(p, shape, width));
    MB_TRY(check_weights(p, shape));
    arrays[MB_RAMP_FILTER_RESULT] = arrays[MB_RAMP_FILTER_SINO];
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_ramp_filter_params *p = params;
    const mb_shape *shape = &arrays[MB_RAMP_FILTER_SINO].shape;
    const mb_device_facts *facts = &planner->device->facts;
    bool host = facts->compute_capability == 0;
    int64_t width = shape->dims[shape->rank - 1], padded = mb_ramp_filter_padded(p, width);
    bool fused = mb_ramp_filter_fused(facts, padded);
    int64_t batch = host ? 1 : mb_ramp_filter_batch(padded);
    uint64_t row_bytes = 4 * (uint64_t)(host ? mb_ramp_filter_host_pitch(padded) : padded + 2);
    uint64_t held = fused ? 0 : (uint64_t)(host ? facts->threads : batch);
    int work;
    mb_planner_slot(planner, "response", 4 * (uint64_t)(padded / 2 + 1), 0, 2);
    mb_planner_slot(planner, "rows", mb_bytes_mul(row_bytes, held), 0, 2);
    mb_planner_slot(
        planner, "turned",
        host && p->slice_shifts.count > 0 ? mb_bytes_mul(row_bytes, (uint64_t)facts->threads) : 0,
        0, 2);
    mb_planner_slot(planner, "weights",
                    mb_bytes_mul(sizeof(double), host ? 0 : (uint64_t)p->weights.count), 0, 2);
    if (!fused) {
        mb_fft_desc forward = mb_fft_describe(MB_FFT_R2C, 1, &padded, batch, true);
        mb_fft_desc inverse = mb_fft_describe(MB_FFT_C2R, 1, &padded, batch, true);
        if (host) { /* the rows of two threads */
            forward.in_distance = inverse.out_distance = mb_ramp_filter_host_pitch(padded);
            forward.out_distance = inverse.in_distance = mb_ramp_filter_host_pitch(padded) / 2;
        }
        mb_planner_fft(planner, &forward, "forward work", 1, 1, &work);
        mb_planner_fft(planner, &inverse, "inverse work", 2, 2, &work);
    }
}

MB_MULTIVERSION
static void multiply(float *spectrum, const float *response, int64_t bins)
{
    for (int64_t k = 0; k < bins; k++) {
        spectrum[2 * k] *= response[k];
        spectrum[2 * k + 1] *= response[k];
    }
}

/* The response of a slice that moves: times the phase, complex. */
static void turn_response(float *turned, const float *response, double shift, int64_t padded)
{
    const double pi = 3.14159265358979323846;
    uint64_t turn = mb_ramp_filter_turn(shift, padded);
    for (int64_t k = 0; k <= padded / 2; k++) {
        double phase = pi * (double)mb_ramp_filter_phase(turn, k);
        turned[2 * k] = response[k] * (float)cos(phase);
        turned[2 * k + 1] = k < padded / 2 ? response[k] * (float)sin(phase) : 0.0F;
    }
}

MB_MULTIVERSION
static void multiply_turned(float *spectrum, const float *turned, int64_t bins)
{
    for (int64_t k = 0; k < bins; k++) {
        float real = spectrum[2 * k], imaginary = spectrum[2 * k + 1];
        spectrum[2 * k] = real * turned[2 * k] - imaginary * turned[2 * k + 1];
        spectrum[2 * k + 1] = real * turned[2 * k + 1] + imaginary * turned[2 * k];
    }
}

MB_MULTIVERSION
static void weigh(float *to, const float *from, float weight, int64_t width)
{
    for (int64_t i = 0; i < width; i++)
        to[i] = from[i] * weight;
}

/* One row: where it is read and written, and how it is filtered. */
typedef struct filtering {
    const float *from;
    float *to;
    int64_t width, padded;
    float *row;           /* padded, of this thread */
    const float *turned;  /* NULL, or the response of this row's slice */
    const double *weight; /* NULL, or that of this row's angle */
} filtering;

static mb_status filter_row(const mb_op_call *call, const filtering *f)
{
    const float *from = f->from;
    float *row = f->row;
    int64_t width = f->width, padded = f->padded;
    const mb_ramp_filter_params *p = call->params;
    int64_t left = (padded - width) / 2;
    bool edge = p->padding == MB_RAMP_PAD_EDGE;
    float before = edge ? from[0] : 0, after = edge ? from[width - 1] : 0;
    for (int64_t i = 0; i < left; i++)
        row[i] = before;
    memcpy(row + left, from, (size_t)width * 4);
    for (int64_t i = left + width; i < padded; i++)
        row[i] = after;
    MB_TRY(mb_fft_exec(call->device, call->ffts[MB_RAMP_FILTER_FORWARD], row, row,
                       call->slots[MB_RAMP_FILTER_FORWARD_WORK]));
    if (f->turned)
        multiply_turned(row, f->turned, padded / 2 + 1);
    else
        multiply(row, call->slots[MB_RAMP_FILTER_RESPONSE], padded / 2 + 1);
    MB_TRY(mb_fft_exec(call->device, call->ffts[MB_RAMP_FILTER_INVERSE], row, row,
                       call->slots[MB_RAMP_FILTER_INVERSE_WORK]));
    if (f->weight)
        weigh(f->to, row + left, (float)*f->weight, width);
    else
        memcpy(f->to, row + left, (size_t)width * 4);
    return MB_STATUS_OK;
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_ramp_filter_params *p = call->params;
    const mb_array *sino = call->arrays[MB_RAMP_FILTER_SINO];
    mb_array *result = call->arrays[MB_RAMP_FILTER_RESULT];
    int64_t width = sino->shape.dims[sino->shape.rank - 1],
            padded = mb_ramp_filter_padded(p, width);
    int64_t rows = (int64_t)mb_array_elements(sino) / width,
            pitch = mb_ramp_filter_host_pitch(padded);
    int64_t slices = mb_ramp_filter_slices(&sino->shape),
            angles = mb_ramp_filter_angles(&sino->shape);
    const double *weights = p->weights.count > 0 ? p->weights.values : NULL;
    float *response = call->slots[MB_RAMP_FILTER_RESPONSE];
    int threads = call->device->facts.threads;
    mb_status status = MB_STATUS_OK;
    mb_error error;
    /* A worker's error record is its own; the first failure is moved to the caller's. */
#pragma omp parallel num_threads(threads)
    {
        float *row = (float *)call->slots[MB_RAMP_FILTER_ROWS] + pitch * omp_get_thread_num();
        float *turned = p->slice_shifts.count > 0 ? (float *)call->slots[MB_RAMP_FILTER_TURNED] +
                                                        pitch * omp_get_thread_num()
                                                  : NULL;
        int64_t turned_slice = -1;
#pragma omp for schedule(dynamic, 64)
        for (int64_t k = 0; k <= padded / 2; k++)
            response[k] = mb_ramp_filter_response(p->filter, p->cutoff, p->scale, padded, k);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < rows; i++) {
            mb_status seen, mine;
#pragma omp atomic read
            seen = status;
            if (seen != MB_STATUS_OK)
                continue;
            mine = mb_cancel_check();
            if (turned && i / (rows / slices) != turned_slice) {
                turned_slice = i / (rows / slices);
                turn_response(turned, response, p->slice_shifts.values[turned_slice], padded);
            }
            if (mine == MB_STATUS_OK)
                mine = filter_row(
                    call,
                    &(filtering){(const float *)sino->data + mb_array_row_offset(sino, i),
                                 (float *)result->data + mb_array_row_offset(result, i), width,
                                 padded, row, turned, weights ? weights + i % angles : NULL});
            if (mine == MB_STATUS_OK)
                continue;
#pragma omp critical(mb_ramp_filter)
            if (status == MB_STATUS_OK) {
                error = *mb_error_last();
#pragma omp atomic write
                status = mine;
            }
        }
    }
    if (status != MB_STATUS_OK)
        mb_error_put(&error);
    return status;
}

const mb_op mb_op_ramp_filter = {
    .name = "ramp_filter",
    .summary = "The ramp filter of filtered back-projection along the detector axis, with a choice "
               "of windows.",
    .doc = "The ramp is the transform of the band-limited spatial kernel, which preserves the mean "
           "of the image. The windows, with q = frequency / (cutoff * Nyquist), are shepp-logan "
           "sin(pi q/2)/(pi q/2), cosine cos(pi q/2), hamming 0.54 + 0.46 cos(pi q), hann 0.5 + "
           "0.5 cos(pi q), tukey 1 up to q = 1/2 and a half cosine to 0 at 1, lanczos sin(pi "
           "q)/(pi q), parzen (1 - q)^3 (that of gridrec and tomocupy); 0 for q > 1.\n"
           "Rows are padded to pad_width P with zeros or with their first and last values, (P - "
           "width)/2 of them in front, and cropped after the filter. backproject with its default "
           "scale then gives densities per pixel.\n"
           "slice_shifts[z] moves the rows of slice z: the result at column u is the filtered row "
           "at u + slice_shifts[z], interpolated by its trigonometric polynomial. A rotation axis "
           "at center + slice_shifts[z] moves to center. Columns from beyond the detector contain "
           "the response of the filter to the padding. A shift is at most (P - width)/2 columns.\n"
           "weights[a] multiplies the filtered rows of angle a: of mean 1 for the default scale of "
           "backproject, for angles that are not even.",
    .reference = "Kak and Slaney, Principles of Computerized Tomographic Imaging (1988), ch. 3.3",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_RAMP_FILTER_SINO,
    .tolerance = 2e-6, /* float transforms of two libraries */
};
