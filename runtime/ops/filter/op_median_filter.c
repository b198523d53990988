/*
** median_filter: the median of a window around every element.
*/
#include "ops/filter/op_median_filter.h"
#include "ops/op_args.h"
#include <omp.h>

#define PARAMS mb_median_filter_params

static const mb_op_arg args[] = {
    MB_MEDIAN_INPUT, MB_MEDIAN_SIZE, MB_MEDIAN_MODE,
    MB_ARRAY_OUT("result", MB_MEDIAN_DTYPES, 2, 3, "medians, same shape and type")};

static const char *const samples[] = {
    "{inputs = {{'f32', 5, 9, 70}}, params = {size = 3}}",
    "{inputs = {{'f32', 9, 6, 37}}, params = {size = 5, mode = 'edge'}}",
    "{inputs = {{'u16', 3, 17, 33}}, params = {size = {1, 3, 3}, mode = 'wrap'}}",
    "{inputs = {{'u16', 8, 9, 11}}, params = {size = 7}}",
    "{inputs = {{'u8', 40, 131}}, params = {size = {5, 5}, mode = 'reflect'}}",
    "{inputs = {{'f32', 21, 65}}, params = {size = 7}}",
    "{inputs = {{'f32', 2, 12, 20}}, params = {size = {1, 9, 15}}}",
    "{inputs = {{'f32', 4, 6, 9}}, params = {size = {3, 5, 1}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_median_filter_params *p = params;
    const mb_spec *a = &arrays[MB_MEDIAN_FILTER_A];
    MB_TRY(mb_median_check(&p->size, a->shape.rank));
    arrays[MB_MEDIAN_FILTER_RESULT] = (mb_spec){true, a->dtype, a->shape};
    return MB_STATUS_OK;
}

static mb_rows needs(const void *params, const mb_spec *arrays, int axis, mb_rows rows)
{
    const mb_median_filter_params *p = params;
    return mb_median_needs(&p->size, p->mode, &arrays[MB_MEDIAN_FILTER_A].shape, axis, rows);
}

static const mb_op_split split[] = {MB_SPLIT_AXIS(0, .needs = needs),
                                    MB_SPLIT_AXIS(1, .needs = needs),
                                    MB_SPLIT_AXIS(2, .needs = needs), MB_SPLIT_END};

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_median_filter_params *p = params;
    const mb_median_window w =
        mb_median_window_of(&p->size, p->mode, &arrays[MB_MEDIAN_FILTER_A].shape);
    mb_median_slots(&w, planner);
}

/* Medians to elements. */
static void store(const int32_t *keys, int64_t count, mb_dtype dtype, void *data, int64_t at)
{
    for (int64_t i = 0; i < count; i++)
        switch (dtype) {
        case MB_U8: ((uint8_t *)data)[at + i] = (uint8_t)keys[i]; break;
        case MB_U16: ((uint16_t *)data)[at + i] = (uint16_t)keys[i]; break;
        default: ((int32_t *)data)[at + i] = mb_median_bits(keys[i]); break;
        }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_median_filter_params *p = call->params;
    const mb_array *a = call->arrays[MB_MEDIAN_FILTER_A];
    mb_array *to = call->arrays[MB_MEDIAN_FILTER_RESULT];
    const mb_median_window w = mb_median_window_of(&p->size, p->mode, &a->shape);
    const uint64_t own = mb_median_rows_bytes(&w);
    const int64_t chunk = mb_median_chunk_columns(&w);
    const int threads = mb_median_threads(&w, call->device->facts.threads);
    mb_median_job job;
    mb_median_begin(&job, &w, a, call->slots[MB_MEDIAN_FILTER_STEPS]);
#pragma omp parallel for schedule(static) num_threads(threads) firstprivate(job)
    for (int64_t row = 0; row < w.n[0] * w.n[1]; row++) {
        const int64_t z = row / w.n[1], y = row % w.n[1];
        job.own = (int32_t *)((char *)call->slots[MB_MEDIAN_FILTER_ROWS] +
                              own * (uint64_t)omp_get_thread_num());
        for (int64_t x = 0; x < w.n[2] && !mb_cancelled(); x += chunk)
            store(mb_median_chunk(&job, z, y, x), w.n[2] - x < chunk ? w.n[2] - x : chunk,
                  to->dtype, to->data, z * mb_median_plane(to) + y * mb_median_row(to) + x);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_median_filter = {
    .name = "median_filter",
    .summary = "Median of a window around every element, in two or three dimensions.",
    .doc = "The window has an odd extent along each axis and its element in the middle, at most "
           "1023 elements. Values beyond the edges follow mode; the default is that of the other "
           "filters and of scipy.ndimage.median_filter. A result is always a value of the window, "
           "so integers stay integers.\n"
           "NaN counts as greater than infinity, as in numpy.sort: the median is NaN where more "
           "than half of the window is.",
    .reference = "scipy.ndimage.median_filter; merge exchange: K. E. Batcher, 1968",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
};
