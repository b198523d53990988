/*
** dezinger: values far from the median of their window become that median.
*/
#include "core/multiversion.h"
#include "ops/filter/op_dezinger.h"
#include "ops/op_args.h"
#include <float.h>
#include <omp.h>

#define PARAMS mb_dezinger_params

static const char *const whiches[] = {"both", "bright", "dark", NULL};

static const mb_op_arg args[] = {
    MB_MEDIAN_INPUT,
    MB_MEDIAN_SIZE,
    MB_FLOAT_REQUIRED(threshold, 0, FLT_MAX, 0, NULL,
                      "a value farther from the median than this is replaced; in the unit of the "
                      "values, or with relative a part of the median"),
    MB_BOOL(relative, false, "the threshold is a part of the median's magnitude"),
    MB_ENUM(which, whiches, MB_DEZINGER_BOTH,
            "values above the median (bright), below it (dark), or both"),
    MB_MEDIAN_MODE,
    MB_MEDIAN_COUNTED,
    MB_ARRAY_OUT("result", MB_MEDIAN_DTYPES, 2, 3, "same shape and type"),
    MB_ARRAY_OUT("counts", MB_BIT(MB_F64), 1, 1, "{values replaced}")};

static const char *const samples[] = {
    "{inputs = {{'f32', 5, 9, 70}}, params = {size = 3, threshold = 0.3}}",
    "{inputs = {{'u16', 9, 6, 37}}, params = {size = 5, threshold = 0.5, relative = true, which = "
    "'bright', mode = 'edge'}}",
    "{inputs = {{'u16', 3, 17, 133}}, params = {size = {1, 3, 3}, threshold = 100, mode = 'wrap'}}",
    "{inputs = {{'f32', 8, 9, 11}}, params = {size = 7, threshold = 0.2, which = 'dark'}}",
    "{inputs = {{'u8', 40, 131}}, params = {size = 5, threshold = 9, mode = 'reflect'}}",
    "{inputs = {{'f32', 4, 12, 20}}, params = {size = {3, 5, 1}, threshold = 0.1, which = "
    "'bright'}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_dezinger_params *p = params;
    const mb_spec *a = &arrays[MB_DEZINGER_A];
    MB_TRY(mb_median_check(&p->size, a->shape.rank));
    MB_TRY(mb_median_part_check(&p->counted, &a->shape));
    arrays[MB_DEZINGER_RESULT] = (mb_spec){true, a->dtype, a->shape};
    arrays[MB_DEZINGER_COUNTS] = (mb_spec){true, MB_F64, {1, {1}}};
    return MB_STATUS_OK;
}

static mb_rows needs(const void *params, const mb_spec *arrays, int axis, mb_rows rows)
{
    const mb_dezinger_params *p = params;
    return mb_median_needs(&p->size, p->mode, &arrays[MB_DEZINGER_A].shape, axis, rows);
}

/* Pieces share rows, whose outliers are counted once. */
static void piece(const mb_spec *arrays, int axis, mb_op_piece *part, void *params, double *room)
{
    mb_dezinger_params *p = params;
    p->counted = mb_median_part_piece(&p->counted, &arrays[MB_DEZINGER_A].shape, axis, part, room);
}

#define PARTS .needs = needs, .piece = piece, .combine = MB_COMBINE_SUM
static const mb_op_split split[] = {MB_SPLIT_AXIS(0, PARTS), MB_SPLIT_AXIS(1, PARTS),
                                    MB_SPLIT_AXIS(2, PARTS), MB_SPLIT_END};

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_dezinger_params *p = params;
    const mb_median_window w = mb_median_window_of(&p->size, p->mode, &arrays[MB_DEZINGER_A].shape);
    const bool host = planner->device->facts.compute_capability == 0;
    mb_median_slots(&w, planner);
    mb_planner_slot(planner, "tally", host ? 0 : sizeof(uint64_t), 0, 0);
}

/* A chunk of a row: its values, their medians' keys, and the columns first to end that are
** counted. */
typedef struct chunk {
    const int32_t *medians;
    int64_t count, first, end;
    float threshold;
    bool relative;
    int which;
} chunk;

#define MEND(type, median)                                                                         \
    do {                                                                                           \
        const type *values = from;                                                                 \
        type *results = to;                                                                        \
        for (int64_t i = 0; i < c->count; i++) {                                                   \
            const type m = median(c->medians[i]);                                                  \
            const float limit = mb_dezinger_limit((float)m, c->threshold, c->relative);            \
            const bool out = mb_dezinger_replaces((float)values[i], (float)m, limit, c->which);    \
            results[i] = out ? m : values[i];                                                      \
            replaced += out && i >= c->first && i < c->end;                                        \
        }                                                                                          \
    } while (0)

static inline float as_float(int32_t key)
{
    const int32_t bits = mb_median_bits(key);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns how many were replaced. */
MB_MULTIVERSION
static int64_t mend(const chunk *c, mb_dtype dtype, const void *from, void *to)
{
    int64_t replaced = 0;
    if (dtype == MB_U8)
        MEND(uint8_t, (uint8_t));
    else if (dtype == MB_U16)
        MEND(uint16_t, (uint16_t));
    else
        MEND(float, as_float);
    return replaced;
}

static void *element(const mb_array *a, int64_t z, int64_t y, int64_t x)
{
    const int64_t at = z * mb_median_plane(a) + y * mb_median_row(a) + x;
    return (char *)a->data + at * (int64_t)mb_dtype_bytes(a->dtype);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_dezinger_params *p = call->params;
    const mb_array *a = call->arrays[MB_DEZINGER_A];
    mb_array *to = call->arrays[MB_DEZINGER_RESULT];
    const mb_median_window w = mb_median_window_of(&p->size, p->mode, &a->shape);
    const mb_median_part part = mb_median_part_of(&p->counted, &a->shape);
    const uint64_t own = mb_median_rows_bytes(&w);
    const int64_t columns = mb_median_chunk_columns(&w);
    const int threads = mb_median_threads(&w, call->device->facts.threads);
    int64_t replaced = 0;
    mb_median_job job;
    mb_median_begin(&job, &w, a, call->slots[MB_DEZINGER_STEPS]);
#pragma omp parallel for schedule(static) num_threads(threads) firstprivate(job) reduction(+ : replaced)
    for (int64_t row = 0; row < w.n[0] * w.n[1]; row++) {
        const int64_t z = row / w.n[1], y = row % w.n[1];
        const bool here =
            z >= part.first[0] && z < part.end[0] && y >= part.first[1] && y < part.end[1];
        job.own = (int32_t *)((char *)call->slots[MB_DEZINGER_ROWS] +
                              own * (uint64_t)omp_get_thread_num());
        for (int64_t x = 0; x < w.n[2] && !mb_cancelled(); x += columns) {
            const chunk c = {mb_median_chunk(&job, z, y, x),
                             w.n[2] - x < columns ? w.n[2] - x : columns,
                             here ? part.first[2] - x : columns,
                             part.end[2] - x,
                             (float)p->threshold,
                             p->relative,
                             p->which};
            replaced += mend(&c, a->dtype, element(a, z, y, x), element(to, z, y, x));
        }
    }
    *(double *)call->arrays[MB_DEZINGER_COUNTS]->data = (double)replaced;
    return MB_STATUS_OK;
}

const mb_op mb_op_dezinger = {
    .name = "dezinger",
    .summary = "Replaces outliers, such as zingers: values far from the median of their window.",
    .doc =
        "A value that differs from the median of the window around it by more than threshold "
        "becomes that median, in two or three dimensions; window and edges are those of "
        "median_filter. All other values stay as they are, and integers stay integers. With "
        "relative the threshold is a part of the median's magnitude.\n"
        "A NaN stays, and counts as greater than infinity in the windows of others; mend replaces "
        "those. counts is {values replaced}.\n"
        "For projections {1, k, k} looks at each frame alone, and k at the frames before and "
        "after, too.",
    .reference = "|a - median(a)| > threshold",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
};
