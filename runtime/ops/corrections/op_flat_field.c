/*
** flat_field: raw frames to transmission, (data - dark) / (flat - dark) per detector pixel. data
** (n, h, w), darks (nd, h, w), flats (nf, h, w), each optional but data -> result f32 (n, h, w),
** counts f64[3]. The dark frame and the denominators are made once (mean or median over frames, one
** denominator for each group of flats), then every sample is one division.
*/
#include "core/kth_smallest.h"
#include "core/multiversion.h"
#include "ops/corrections/op_flat_field.h"
#include "ops/op_args.h"
#include <float.h>
#include <math.h>
#include <omp.h>

#define PARAMS mb_flat_field_params

enum { BLOCK = 256 };

#define ACCEPTED (MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_I32) | MB_BIT(MB_F16) | MB_BIT(MB_F32))

static const char *const modes[] = {"mean", "median", NULL};
static const char *const dark_modes[] = {"same", "mean", "median", NULL};

#define FRAMES(name_, required_, doc_)                                                             \
    {                                                                                              \
        .name = name_, .kind = MB_ARG_IN, .required = required_, .dtypes = ACCEPTED,               \
        .rank_min = 3, .rank_max = 3, .unit = "counts", .doc = doc_                                \
    }

static const mb_op_arg args[] = {
    FRAMES("data", true, "raw frames (n, h, w): projection, row, column"),
    FRAMES("darks", false, "frames without beam (nd, h, w); without them the dark is 0"),
    FRAMES("flats", false, "frames without sample (nf, h, w); without them the denominator is 1"),
    MB_ENUM(mode, modes, MB_FLAT_FIELD_MEAN,
            "how flats, and darks, are combined into one frame each"),
    MB_ENUM(dark_mode, dark_modes, MB_FLAT_FIELD_DARK_SAME,
            "how darks are combined; same: as flats"),
    MB_FLOAT(floor, FLT_MIN, FLT_MAX, 1e-7, "counts",
             "least denominator; a smaller flat - dark is raised to it"),
    MB_FLOAT(nonfinite, -FLT_MAX, FLT_MAX, 1, NULL, "replaces results that are NaN or infinite"),
    MB_BOOL(count_raised, true,
            "count detector pixels with a raised denominator; false for further angles of a scan "
            "in pieces"),
    MB_VECTOR_OPTION(groups, 1, 1 << 20, NULL,
                     "flats in each group, in the order of flats; default: one group"),
    MB_VECTOR_OPTION(positions, -1e12, 1e12, "frames",
                     "where each group lies in the scan, ascending; for several groups"),
    MB_VECTOR_OPTION(frames, -1e12, 1e12, "frames",
                     "where each frame of data lies in the scan; for several groups"),
    MB_VECTOR_OPTION(scale, FLT_MIN, FLT_MAX, NULL,
                     "factor of each frame of data, such as usual / own current of the ring"),
    MB_VECTOR_OPTION(flat_scale, FLT_MIN, FLT_MAX, NULL, "factor of each frame of flats"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 3, 3,
                 "transmission (n, h, w); may be data if data is f32"),
    MB_ARRAY_OUT("counts", MB_BIT(MB_F64), 1, 1,
                 "{replaced samples, detector pixels with a raised denominator, samples <= 0}")};

/* Pixels with a raised denominator are counted once, not in every piece along the angles. */
static void piece(const mb_spec *arrays, int axis, mb_op_piece *piece, void *params, double *room)
{
    mb_flat_field_params *p = params;
    (void)arrays, (void)axis, (void)room;
    p->count_raised &= piece->rows.first == 0;
    if (p->frames.count)
        p->frames = mb_vector_part(&p->frames, piece->input);
    if (p->scale.count)
        p->scale = mb_vector_part(&p->scale, piece->input);
}

#define PIXELS                                                                                     \
    .alike = 1u << MB_FLAT_FIELD_DARKS | 1u << MB_FLAT_FIELD_FLATS, .combine = MB_COMBINE_SUM
static const mb_op_split split[] = {MB_SPLIT_AXIS(0, .combine = MB_COMBINE_SUM, .piece = piece),
                                    MB_SPLIT_AXIS(1, PIXELS), MB_SPLIT_AXIS(2, PIXELS),
                                    MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'u16', 5, 3, 17}, {'u16', 2, 3, 17}, {'u16', 3, 3, 17}}}",
    "{inputs = {{'f32', 3, 2, 11}, {'f32', 3, 2, 11}, {'f32', 4, 2, 11}}, params = {mode = "
    "'median', nonfinite = 0}}",
    "{inputs = {{'u8', 2, 5, 7}}}",
    "{inputs = {{'u16', 6, 2, 13}, {'u16', 2, 2, 13}, {'u16', 5, 2, 13}}, params = {groups = "
    "{2, 1, 2}, positions = {0, 3.5, 9}, frames = {1, 2, 3.5, 5, 8, 11}, scale = {1, 2, 0.5, 1, 3, "
    "0.1}}}",
    "{inputs = {{'f32', 3, 3, 9}, {'f32', 3, 3, 9}, {'f32', 4, 3, 9}}, params = {mode = 'median', "
    "dark_mode = 'mean', flat_scale = {1, 0.9, 1.1, 2}}}"};

static mb_status check_frames(const char *name, const mb_spec *frames, const mb_spec *data)
{
    char have[64], want[64];
    if (!frames->present)
        return MB_STATUS_OK;
    if (frames->shape.dims[0] == 0)
        return mb_fail(MB_STATUS_SHAPE, name, "%s has no frames; leave it out", name);
    if (frames->shape.dims[1] != data->shape.dims[1] ||
        frames->shape.dims[2] != data->shape.dims[2])
        return mb_fail(MB_STATUS_SHAPE, name,
                       "%s is %s and data is %s: frames must agree in rows and columns", name,
                       mb_shape_format(&frames->shape, have, sizeof have),
                       mb_shape_format(&data->shape, want, sizeof want));
    return MB_STATUS_OK;
}

/* One number for each frame of data or of flats. */
static mb_status check_list(const char *name, const mb_vector *list, const mb_spec *frames,
                            const char *of)
{
    const int64_t count = frames->present ? frames->shape.dims[0] : 0;
    if (list->count && list->count != count)
        return mb_fail(MB_STATUS_ARGUMENT, name,
                       "%s has %lld numbers for %lld frames of %s; give one each", name,
                       (long long)list->count, (long long)count, of);
    return MB_STATUS_OK;
}

static mb_status check_groups(const mb_flat_field_params *p, const mb_spec *arrays)
{
    const mb_spec *flats = &arrays[MB_FLAT_FIELD_FLATS];
    const int64_t have = flats->present ? flats->shape.dims[0] : 0;
    double sum = 0;
    MB_TRY(check_list("frames", &p->frames, &arrays[MB_FLAT_FIELD_DATA], "data"));
    MB_TRY(check_list("scale", &p->scale, &arrays[MB_FLAT_FIELD_DATA], "data"));
    MB_TRY(check_list("flat_scale", &p->flat_scale, flats, "flats"));
    MB_TRY(mb_check_whole("groups", &p->groups));
    for (int64_t i = 0; i < p->groups.count; i++)
        sum += p->groups.values[i];
    if (p->groups.count && sum != (double)have)
        return mb_fail(MB_STATUS_ARGUMENT, "groups", "groups has %g flats in all; there are %lld",
                       sum, (long long)have);
    if (p->groups.count < 2)
        return MB_STATUS_OK;
    if (p->positions.count != p->groups.count)
        return mb_fail(MB_STATUS_ARGUMENT, "positions",
                       "positions has %lld numbers for %lld groups; give one each",
                       (long long)p->positions.count, (long long)p->groups.count);
    for (int64_t i = 1; i < p->positions.count; i++)
        if (!(p->positions.values[i] > p->positions.values[i - 1]))
            return mb_fail(MB_STATUS_ARGUMENT, "positions",
                           "element %lld of positions is %g, after %g; positions must ascend",
                           (long long)i + 1, p->positions.values[i], p->positions.values[i - 1]);
    if (!p->frames.count && arrays[MB_FLAT_FIELD_DATA].shape.dims[0] > 0)
        return mb_fail(MB_STATUS_ARGUMENT, "frames",
                       "flats have %lld groups, but frames is not given: it says where each frame "
                       "of data lies in the scan",
                       (long long)p->groups.count);
    return MB_STATUS_OK;
}

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_spec *data = &arrays[MB_FLAT_FIELD_DATA];
    MB_TRY(check_frames("darks", &arrays[MB_FLAT_FIELD_DARKS], data));
    MB_TRY(check_frames("flats", &arrays[MB_FLAT_FIELD_FLATS], data));
    MB_TRY(check_groups(params, arrays));
    arrays[MB_FLAT_FIELD_RESULT] = (mb_spec){true, MB_F32, data->shape};
    arrays[MB_FLAT_FIELD_COUNTS] = (mb_spec){true, MB_F64, {1, {3}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_flat_field_params *p = params;
    const mb_spec *data = &arrays[MB_FLAT_FIELD_DATA];
    const mb_spec *darks = &arrays[MB_FLAT_FIELD_DARKS], *flats = &arrays[MB_FLAT_FIELD_FLATS];
    const mb_device_facts *facts = &planner->device->facts;
    bool host = facts->compute_capability == 0, listed = mb_flat_field_listed(p);
    uint64_t frame =
        mb_bytes_mul(mb_bytes_mul((uint64_t)data->shape.dims[1], (uint64_t)data->shape.dims[2]), 4);
    uint64_t most = 0;
    if (darks->present)
        most = (uint64_t)darks->shape.dims[0];
    if (flats->present && (uint64_t)flats->shape.dims[0] > most)
        most = (uint64_t)flats->shape.dims[0];
    mb_planner_slot(planner, "dark", darks->present ? frame : 0, 0, 1);
    mb_planner_slot(planner, "denominator",
                    flats->present ? mb_bytes_mul(frame, (uint64_t)mb_flat_field_groups(p)) : 0, 0,
                    1);
    const bool median =
        p->mode == MB_FLAT_FIELD_MEDIAN || mb_flat_field_mode_of_darks(p) == MB_FLAT_FIELD_MEDIAN;
    mb_planner_slot(planner, "values",
                    host && median ? mb_bytes_mul(most, 4 * (uint64_t)facts->threads) : 0, 0, 0);
    mb_planner_slot(planner, "tally", host ? 0 : 3 * sizeof(uint64_t), 0, 1);
    mb_planner_slot(
        planner, "frame list",
        listed ? mb_bytes_mul((uint64_t)data->shape.dims[0], sizeof(mb_flat_field_frame)) : 0, 0,
        1);
    mb_planner_slot(planner, "flat list",
                    listed && flats->present
                        ? mb_bytes_mul((uint64_t)flats->shape.dims[0], sizeof(mb_flat_field_flat))
                        : 0,
                    0, 0);
}

#define READ(type, expression)                                                                     \
    do {                                                                                           \
        const type *s = (const type *)array->data + at;                                            \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = (float)expression(s[i]);                                                       \
    } while (0)

MB_MULTIVERSION
void mb_flat_field_read(const mb_array *array, int64_t frame, int64_t y, int64_t x, int64_t n,
                        float *to)
{
    int64_t at = frame * array->strides[0] + y * array->strides[1] + x;
    switch (array->dtype) {
    case MB_U8: READ(uint8_t, ); break;
    case MB_U16: READ(uint16_t, ); break;
    case MB_I32: READ(int32_t, ); break;
    case MB_F16: READ(uint16_t, mb_half_to_float); break;
    default: READ(float, ); break;
    }
}

static void mean_samples(const mb_array *frames, int64_t y, int64_t x, int64_t n, float *to)
{
    double sums[BLOCK] = {0};
    for (int64_t k = 0; k < frames->shape.dims[0]; k++) {
        mb_flat_field_read(frames, k, y, x, n, to);
        for (int64_t i = 0; i < n; i++)
            sums[i] += (double)to[i];
    }
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)(sums[i] / (double)frames->shape.dims[0]);
}

/* As numpy: the mean of the two middle values for an even count; NaN if any is NaN. */
static float median(float *values, int64_t n)
{
    float upper, lower;
    for (int64_t i = 0; i < n; i++)
        if (isnan(values[i]))
            return NAN;
    upper = mb_kth_smallest(values, n, n / 2);
    if (n % 2)
        return upper;
    lower = values[0];
    for (int64_t i = 1; i < n / 2; i++)
        lower = values[i] > lower ? values[i] : lower;
    return (float)(0.5 * ((double)lower + (double)upper));
}

static void median_samples(const mb_array *frames, int64_t y, int64_t x, int64_t n, float *to,
                           float *values)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < frames->shape.dims[0]; k++)
            mb_flat_field_read(frames, k, y, x + i, 1, values + k);
        to[i] = median(values, frames->shape.dims[0]);
    }
}

/* This thread's room for the values of a pixel, for a median. */
static float *values_of(const mb_op_call *call)
{
    const uint64_t per_thread =
        call->slot_bytes[MB_FLAT_FIELD_VALUES] / 4 / (uint64_t)call->device->facts.threads;
    return (float *)call->slots[MB_FLAT_FIELD_VALUES] + per_thread * (uint64_t)omp_get_thread_num();
}

static void combine(const mb_op_call *call, int mode, const mb_array *frames, int64_t y, int64_t x,
                    int64_t n, float *to)
{
    if (mode == MB_FLAT_FIELD_MEAN)
        mean_samples(frames, y, x, n, to);
    else
        median_samples(frames, y, x, n, to, values_of(call));
}

/* The flats first to first + count - 1, each less the dark and times its factor, combined. */
static void combine_group(const mb_op_call *call, int64_t first, int64_t count, int64_t y,
                          int64_t x, int64_t n, const float *dark, float *to)
{
    const mb_flat_field_params *p = call->params;
    const mb_array *flats = call->arrays[MB_FLAT_FIELD_FLATS];
    const mb_flat_field_flat *list = call->slots[MB_FLAT_FIELD_FLAT_LIST];
    if (p->mode == MB_FLAT_FIELD_MEAN) {
        double sums[BLOCK] = {0};
        for (int64_t j = first; j < first + count; j++) {
            mb_flat_field_read(flats, j, y, x, n, to);
            for (int64_t i = 0; i < n; i++)
                sums[i] += (double)list[j].scale * ((double)to[i] - (dark ? (double)dark[i] : 0));
        }
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)(sums[i] / (double)count);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float *values = values_of(call);
        for (int64_t j = 0; j < count; j++) {
            mb_flat_field_read(flats, first + j, y, x + i, 1, values + j);
            values[j] = list[first + j].scale * (values[j] - (dark ? dark[i] : 0.0f));
        }
        to[i] = median(values, count);
    }
}

/* The denominators of all groups for n samples; returns how many were raised in any of them. */
static int64_t listed_denominators(const mb_op_call *call, int64_t y, int64_t x, int64_t n,
                                   const float *dark)
{
    const mb_flat_field_params *p = call->params;
    const mb_array *flats = call->arrays[MB_FLAT_FIELD_FLATS];
    const mb_flat_field_flat *list = call->slots[MB_FLAT_FIELD_FLAT_LIST];
    const int64_t h = flats->shape.dims[1], w = flats->shape.dims[2];
    float *to = (float *)call->slots[MB_FLAT_FIELD_DENOMINATOR] + y * w + x;
    int any[BLOCK] = {0};
    int64_t raised = 0;
    for (int64_t j = 0; j < flats->shape.dims[0]; j++) {
        if (!list[j].count)
            continue;
        combine_group(call, j + 1 - list[j].count, list[j].count, y, x, n, dark, to);
        for (int64_t i = 0; i < n; i++) {
            int clamped;
            to[i] = mb_flat_field_denominator(to[i], (float)p->floor, &clamped);
            any[i] |= clamped;
        }
        to += h * w;
    }
    for (int64_t i = 0; i < n; i++)
        raised += any[i];
    return raised;
}

/* Fills the two frames; returns how many denominators were raised. */
static int64_t make_frames(const mb_op_call *call)
{
    const mb_flat_field_params *p = call->params;
    const mb_array *data = call->arrays[MB_FLAT_FIELD_DATA];
    const mb_array *darks = call->arrays[MB_FLAT_FIELD_DARKS],
                   *flats = call->arrays[MB_FLAT_FIELD_FLATS];
    float *dark = call->slots[MB_FLAT_FIELD_DARK],
          *denominator = call->slots[MB_FLAT_FIELD_DENOMINATOR];
    int64_t h = data->shape.dims[1], w = data->shape.dims[2], raised = 0;
    const int threads = call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : raised)
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w && !mb_cancelled(); x += BLOCK) {
            int64_t n = w - x < BLOCK ? w - x : BLOCK, at = y * w + x;
            if (darks)
                combine(call, mb_flat_field_mode_of_darks(p), darks, y, x, n, dark + at);
            if (!flats)
                continue;
            if (call->slots[MB_FLAT_FIELD_FLAT_LIST]) {
                raised += listed_denominators(call, y, x, n, darks ? dark + at : NULL);
                continue;
            }
            combine(call, p->mode, flats, y, x, n, denominator + at);
            for (int64_t i = 0; i < n; i++) {
                int clamped;
                float difference = denominator[at + i] - (darks ? dark[at + i] : 0.0f);
                denominator[at + i] =
                    mb_flat_field_denominator(difference, (float)p->floor, &clamped);
                raised += clamped;
            }
        }
    return raised;
}

MB_MULTIVERSION
static void subtract(float *values, const float *dark, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        values[i] -= dark[i];
}

MB_MULTIVERSION
static void divide_by(float *values, const float *divisor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        values[i] /= divisor[i];
}

MB_MULTIVERSION
static void divide_between(float *values, const float *low, const float *high,
                           mb_flat_field_frame f, int64_t n)
{
    if (f.part == 0) /* one group alone, even where another one is not finite */
        for (int64_t i = 0; i < n; i++)
            values[i] = values[i] * f.scale / low[i];
    else
        for (int64_t i = 0; i < n; i++)
            values[i] = values[i] * f.scale / (low[i] + f.part * (high[i] - low[i]));
}

/* Stores finite values and the substitute of others; counts both kinds of bad ones. */
MB_MULTIVERSION
static void mend(float *to, const float *values, float substitute, int64_t n, int *bad, int *low)
{
    int not_finite = 0, not_positive = 0;
    for (int64_t i = 0; i < n; i++) {
        const int finite = fabsf(values[i]) <= FLT_MAX; /* false for NaN too */
        not_finite += !finite;
        not_positive += finite & (values[i] <= 0);
        to[i] = finite ? values[i] : substitute;
    }
    *bad = not_finite;
    *low = not_positive;
}

/* Samples of one row of a frame as transmissions, not yet mended. */
static void divide(const mb_op_call *call, int64_t frame, int64_t at, int64_t many, float *values)
{
    const mb_array *data = call->arrays[MB_FLAT_FIELD_DATA];
    const float *dark = call->slots[MB_FLAT_FIELD_DARK],
                *denominator = call->slots[MB_FLAT_FIELD_DENOMINATOR];
    const mb_flat_field_frame *list = call->slots[MB_FLAT_FIELD_FRAME_LIST];
    if (dark)
        subtract(values, dark + at, many);
    if (list) {
        const int64_t pixels = data->shape.dims[1] * data->shape.dims[2];
        const mb_flat_field_frame f = list[frame];
        if (denominator)
            divide_between(values, denominator + f.group * pixels + at,
                           denominator + f.next * pixels + at, f, many);
        else
            for (int64_t i = 0; i < many; i++)
                values[i] *= f.scale;
    } else if (denominator)
        divide_by(values, denominator + at, many);
}

/* Fills the lists of a listed call. */
static void make_lists(const mb_op_call *call)
{
    mb_flat_field_frame *frames = call->slots[MB_FLAT_FIELD_FRAME_LIST];
    mb_flat_field_flat *flats = call->slots[MB_FLAT_FIELD_FLAT_LIST];
    if (frames)
        for (int64_t i = 0; i < call->arrays[MB_FLAT_FIELD_DATA]->shape.dims[0]; i++)
            frames[i] = mb_flat_field_frame_at(call->params, i);
    if (flats) {
        const int64_t count = call->arrays[MB_FLAT_FIELD_FLATS]->shape.dims[0];
        for (int64_t j = 0; j < count; j++)
            flats[j] = mb_flat_field_flat_at(call->params, count, j);
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_flat_field_params *p = call->params;
    const mb_array *data = call->arrays[MB_FLAT_FIELD_DATA];
    mb_array *result = call->arrays[MB_FLAT_FIELD_RESULT],
             *counts = call->arrays[MB_FLAT_FIELD_COUNTS];
    int64_t n = data->shape.dims[0], h = data->shape.dims[1], w = data->shape.dims[2];
    int64_t replaced = 0, not_positive = 0, raised = 0;
    float substitute = (float)p->nonfinite;
    double *tally = counts->data;
    const int threads = call->device->facts.threads;
    make_lists(call);
    if (n * h * w > 0)
        raised = make_frames(call);
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : replaced, not_positive)
    for (int64_t row = 0; row < n * h; row++) {
        if (mb_cancelled())
            continue;
        int64_t frame = row / h, y = row % h;
        float *to = (float *)result->data + frame * result->strides[0] + y * result->strides[1];
        for (int64_t x = 0; x < w; x += BLOCK) {
            float values[BLOCK];
            int64_t many = w - x < BLOCK ? w - x : BLOCK;
            int bad, low;
            mb_flat_field_read(data, frame, y, x, many, values);
            divide(call, frame, y * w + x, many, values);
            mend(to + x, values, substitute, many, &bad, &low);
            replaced += bad;
            not_positive += low;
        }
    }
    tally[MB_FLAT_FIELD_NONFINITE * counts->strides[0]] = (double)replaced;
    tally[MB_FLAT_FIELD_CLAMPED * counts->strides[0]] = p->count_raised ? (double)raised : 0;
    tally[MB_FLAT_FIELD_NOT_POSITIVE * counts->strides[0]] = (double)not_positive;
    return MB_STATUS_OK;
}

const mb_op mb_op_flat_field = {
    .name = "flat_field",
    .summary = "Raw frames to transmission: (data - dark) / (flat - dark).",
    .doc =
        "The dark frame and the flat frame are the mean (in double precision) or the median over "
        "darks and flats. Without darks the dark frame is 0; without flats the denominator is 1.\n"
        "Flats in several groups, taken before, between and after the data, are combined group by "
        "group, and each frame of data is divided by what lies linearly between the two groups "
        "around it; before the first group and after the last one, by that group. scale and "
        "flat_scale multiply data - dark and flat - dark frame by frame: with the ratio of a usual "
        "to the frame's own ring current they take a beam that decays or is refilled out.\n"
        "flat - dark below floor is raised to floor. Results that are not finite are replaced by "
        "nonfinite. counts is {samples replaced, detector pixels raised, samples <= 0 among the "
        "rest}.\n"
        "Work in chunks of rows cuts all three stacks alike; in chunks of angles, darks and flats "
        "stay whole.",
    .reference = "(I - D) / (F - D)",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_FLAT_FIELD_DATA,
    .tolerance = 1e-6, /* one float division; double sums in another order */
};
