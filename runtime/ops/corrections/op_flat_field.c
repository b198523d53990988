/*
** flat_field: raw frames to transmission, (data - dark) / (flat - dark) per detector pixel. data
** (n, h, w), darks (nd, h, w), flats (nf, h, w), each optional but data -> result f32 (n, h, w),
** counts f64[3]. The dark frame and the denominator are made once (mean or median over frames),
** then every sample is one division.
*/
#include "core/kth_smallest.h"
#include "ops/corrections/op_flat_field.h"
#include "ops/op_args.h"
#include <float.h>
#include <math.h>
#include <omp.h>

#define PARAMS mb_flat_field_params

enum { BLOCK = 256 };

#define ACCEPTED (MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_I32) | MB_BIT(MB_F16) | MB_BIT(MB_F32))

static const char *const modes[] = {"mean", "median", NULL};

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
            "how darks and flats are combined into one frame each"),
    MB_FLOAT(floor, FLT_MIN, FLT_MAX, 1e-7, "counts",
             "least denominator; a smaller flat - dark is raised to it"),
    MB_FLOAT(nonfinite, -FLT_MAX, FLT_MAX, 1, NULL, "replaces results that are NaN or infinite"),
    MB_BOOL(count_raised, true,
            "count detector pixels with a raised denominator; false for further angles of a scan "
            "in pieces"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 3, 3,
                 "transmission (n, h, w); may be data if data is f32"),
    MB_ARRAY_OUT("counts", MB_BIT(MB_F64), 1, 1,
                 "{replaced samples, detector pixels with a raised denominator, samples <= 0}"),
    {.name = NULL}};

/* Pixels with a raised denominator are counted once, not in every piece along the angles. */
static void piece(const mb_spec *arrays, int axis, mb_op_piece *piece, void *params, double *room)
{
    (void)arrays;
    (void)axis;
    (void)room;
    ((mb_flat_field_params *)params)->count_raised &= piece->rows.first == 0;
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
    "{inputs = {{'u8', 2, 5, 7}}}", NULL};

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

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_spec *data = &arrays[MB_FLAT_FIELD_DATA];
    (void)params;
    MB_TRY(check_frames("darks", &arrays[MB_FLAT_FIELD_DARKS], data));
    MB_TRY(check_frames("flats", &arrays[MB_FLAT_FIELD_FLATS], data));
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
    bool host = facts->compute_capability == 0;
    uint64_t frame =
        mb_bytes_mul(mb_bytes_mul((uint64_t)data->shape.dims[1], (uint64_t)data->shape.dims[2]), 4);
    uint64_t most = 0;
    if (darks->present)
        most = (uint64_t)darks->shape.dims[0];
    if (flats->present && (uint64_t)flats->shape.dims[0] > most)
        most = (uint64_t)flats->shape.dims[0];
    mb_planner_slot(planner, "dark", darks->present ? frame : 0, 0, 1);
    mb_planner_slot(planner, "denominator", flats->present ? frame : 0, 0, 1);
    mb_planner_slot(planner, "values",
                    host && p->mode == MB_FLAT_FIELD_MEDIAN
                        ? mb_bytes_mul(most, 4 * (uint64_t)facts->threads)
                        : 0,
                    0, 0);
    mb_planner_slot(planner, "tally", host ? 0 : 3 * sizeof(uint64_t), 0, 1);
}

#define READ(type, expression)                                                                     \
    do {                                                                                           \
        const type *s = (const type *)array->data + at;                                            \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = (float)expression(s[i]);                                                       \
    } while (0)

/* n samples from (frame, y, x) on. */
static void read_samples(const mb_array *array, int64_t frame, int64_t y, int64_t x, int64_t n,
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
        read_samples(frames, k, y, x, n, to);
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
            read_samples(frames, k, y, x + i, 1, values + k);
        to[i] = median(values, frames->shape.dims[0]);
    }
}

static void combine(const mb_op_call *call, const mb_array *frames, int64_t y, int64_t x, int64_t n,
                    float *to)
{
    const mb_flat_field_params *p = call->params;
    if (p->mode == MB_FLAT_FIELD_MEAN)
        mean_samples(frames, y, x, n, to);
    else {
        uint64_t per_thread =
            call->slot_bytes[MB_FLAT_FIELD_VALUES] / 4 / (uint64_t)call->device->facts.threads;
        median_samples(frames, y, x, n, to,
                       (float *)call->slots[MB_FLAT_FIELD_VALUES] +
                           per_thread * (uint64_t)omp_get_thread_num());
    }
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
                combine(call, darks, y, x, n, dark + at);
            if (!flats)
                continue;
            combine(call, flats, y, x, n, denominator + at);
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

static mb_status run_host(const mb_op_call *call)
{
    const mb_flat_field_params *p = call->params;
    const mb_array *data = call->arrays[MB_FLAT_FIELD_DATA];
    mb_array *result = call->arrays[MB_FLAT_FIELD_RESULT],
             *counts = call->arrays[MB_FLAT_FIELD_COUNTS];
    const float *dark = call->slots[MB_FLAT_FIELD_DARK],
                *denominator = call->slots[MB_FLAT_FIELD_DENOMINATOR];
    int64_t n = data->shape.dims[0], h = data->shape.dims[1], w = data->shape.dims[2];
    int64_t replaced = 0, not_positive = 0, raised = n * h * w > 0 ? make_frames(call) : 0;
    float substitute = (float)p->nonfinite;
    double *tally = counts->data;
    const int threads = call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : replaced, not_positive)
    for (int64_t row = 0; row < n * h; row++) {
        if (mb_cancelled())
            continue;
        int64_t frame = row / h, y = row % h;
        float *to = (float *)result->data + frame * result->strides[0] + y * result->strides[1];
        for (int64_t x = 0; x < w; x += BLOCK) {
            float values[BLOCK];
            int64_t many = w - x < BLOCK ? w - x : BLOCK;
            int bad = 0, low = 0;
            read_samples(data, frame, y, x, many, values);
            if (dark)
                for (int64_t i = 0; i < many; i++)
                    values[i] -= dark[y * w + x + i];
            if (denominator)
                for (int64_t i = 0; i < many; i++)
                    values[i] /= denominator[y * w + x + i];
            for (int64_t i = 0; i < many; i++) {
                int finite = fabsf(values[i]) <= FLT_MAX; /* false for NaN too */
                bad += !finite;
                low += finite & (values[i] <= 0);
                to[x + i] = finite ? values[i] : substitute;
            }
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
        "The dark frame and the flat frame are the mean (in double precision) or the median "
        "over darks and flats. Without darks the dark frame is 0; without flats the denominator "
        "is 1.\n"
        "flat - dark below floor is raised to floor. Results that are not finite are replaced "
        "by nonfinite. counts is {samples replaced, detector pixels raised, samples <= 0 among "
        "the rest}.\n"
        "Work in chunks of rows cuts all three stacks alike; in chunks of angles, darks and flats "
        "stay whole.",
    .reference = "(I - D) / (F - D)",
    .category = "corrections",
    MB_OP_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_FLAT_FIELD_DATA,
    .split = split,
    .tolerance = 1e-6, /* one float division; double sums in another order */
    .plan = plan,
};
