/*
** adaptive_threshold: which elements exceed the level around them.
*/
#include "ops/filter/op_adaptive_threshold.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"

#define PARAMS mb_adaptive_threshold_params

static const char *const methods[] = {"gaussian", "mean", NULL};

static const mb_op_arg args[] = {
    MB_SEPARABLE_INPUT,
    MB_VECTOR(size, 1, 1e6, "px",
              "odd extents of the neighborhood: one number, or one for each filtered axis"),
    MB_SEPARABLE_ARGS,
    MB_ENUM(method, methods, MB_ADAPTIVE_THRESHOLD_GAUSSIAN,
            "local level: mean weighted by a Gaussian of sigma (size - 1) / 6, or mean of the box"),
    MB_FLOAT(offset, MB_ANY, 0, NULL, "subtracted from the local level before the comparison"),
    MB_INT(foreground, 1, 255, 1, NULL,
           "result where the element is above the level; 255 suits a picture"),
    MB_BOOL(invert, false, "mark the elements that are not above the level, such as dark objects"),
    MB_ARRAY_OUT("result", MB_BIT(MB_U8), 1, MB_MAX_RANK, "foreground or 0, same shape")};

static const char *const samples[] = {
    "{inputs = {{'f32', 41, 37}}, params = {size = {7, 11}, offset = 0.01}}",
    "{inputs = {{'u16', 3, 40, 33}}, params = {size = 9, axes = {2, 3}, method = 'mean', "
    "foreground = 255}}",
    "{inputs = {{'f32', 6, 13, 17}}, params = {size = {3, 5, 9}, method = 'mean', mode = 'edge', "
    "invert = true}}",
    "{inputs = {{'f32', 2, 1, 2, 9, 2, 11}}, params = {size = {3, 5}, axes = {4, 6}}}",
    "{inputs = {{'f32', 3, 140, 5}}, params = {size = {1, 7, 3}, method = 'mean'}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_adaptive_threshold_params *p = params;
    const mb_shape *shape = &arrays[MB_ADAPTIVE_THRESHOLD_A].shape;
    MB_TRY(mb_separable_check("size", &p->size, &p->axes, shape->rank));
    for (int64_t i = 0; i < p->size.count; i++)
        if (fmod(p->size.values[i], 2) != 1)
            return mb_fail(MB_STATUS_ARGUMENT, "size", "element %lld of size is %g; it must be odd",
                           (long long)i + 1, p->size.values[i]);
    arrays[MB_ADAPTIVE_THRESHOLD_RESULT] = (mb_spec){true, MB_U8, *shape};
    return MB_STATUS_OK;
}

static int64_t window(const mb_adaptive_threshold_params *p, int axis, int rank)
{
    double size = mb_separable_number(&p->size, &p->axes, axis, rank, 1);
    return p->method == MB_ADAPTIVE_THRESHOLD_MEAN
               ? (int64_t)size
               : 2 * mb_separable_radius(mb_adaptive_threshold_sigma(size),
                                         MB_ADAPTIVE_THRESHOLD_TRUNCATE) +
                     1;
}

static bool means(const mb_adaptive_threshold_params *p)
{
    return p->method == MB_ADAPTIVE_THRESHOLD_MEAN;
}

MB_SEPARABLE_SPLIT(mb_adaptive_threshold_params, window, means);

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_shape *shape = &arrays[MB_ADAPTIVE_THRESHOLD_A].shape;
    const mb_device_facts *facts = &planner->device->facts;
    mb_separable s = mb_adaptive_threshold_passes(params, shape);
    uint64_t level = mb_bytes_mul(mb_shape_elements(shape), sizeof(float));
    bool host = facts->compute_capability == 0;
    int threads = mb_separable_threads(shape, facts->threads);
    mb_planner_slot(planner, "weights", mb_bytes_mul((uint64_t)s.weights, sizeof(float)), 0, 0);
    mb_planner_slot(planner, "local level", host || s.count > 1 ? level : 0, 0, 0);
    mb_planner_slot(planner, "other level", !host && s.count > 2 ? level : 0, 0, 0);
    mb_planner_slot(planner, "lines", host ? mb_separable_buffer_bytes(&s, threads) : 0, 0, 0);
}

enum { BLOCK = 65536 }; /* elements that a thread takes at a time */

#define COMPARE(type)                                                                              \
    for (int64_t i = 0; i < w.count; i++)                                                          \
    out[i * w.stride[0]] = (float)((const type *)a->data + w.offset[1])[i * w.stride[1]] >         \
                                   at[i * w.stride[2]] - offset                                    \
                               ? above                                                             \
                               : below
/* A piece of a walk over the result, `a` and the level. */
static void compare_piece(const mb_adaptive_threshold_params *p, mb_walk_piece w,
                          const mb_array *result, const mb_array *a, const float *level)
{
    uint8_t *out = (uint8_t *)result->data + w.offset[0];
    const float *at = level + w.offset[2], offset = (float)p->offset;
    const uint8_t above = p->invert ? 0 : (uint8_t)p->foreground;
    const uint8_t below = p->invert ? (uint8_t)p->foreground : 0;
    if (a->dtype == MB_U8)
        COMPARE(uint8_t);
    else if (a->dtype == MB_U16)
        COMPARE(uint16_t);
    else
        COMPARE(float);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_adaptive_threshold_params *p = call->params;
    const mb_array *a = call->arrays[MB_ADAPTIVE_THRESHOLD_A];
    const mb_array *result = call->arrays[MB_ADAPTIVE_THRESHOLD_RESULT];
    float *level = call->slots[MB_ADAPTIVE_THRESHOLD_LOCAL];
    float *weights = call->slots[MB_ADAPTIVE_THRESHOLD_WEIGHTS];
    int64_t dense[MB_MAX_RANK];
    const int64_t *strides[] = {result->strides, a->strides, dense};
    mb_separable_dense(&a->shape, dense);
    const mb_walk w = mb_walk_make(&a->shape, 3, strides, BLOCK);
    int threads = mb_separable_threads(&a->shape, call->device->facts.threads);
    mb_separable s = mb_adaptive_threshold_passes(p, &a->shape);
    if (weights)
        mb_separable_table(&s, weights);
    mb_separable_run(&s, a, level, NULL, weights, call->slots[MB_ADAPTIVE_THRESHOLD_BUFFERS]);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < w.pieces; i++)
        if (!mb_cancelled())
            compare_piece(p, mb_walk_at(&w, i), result, a, level);
    return MB_STATUS_OK;
}

const mb_op mb_op_adaptive_threshold = {
    .name = "adaptive_threshold",
    .summary =
        "Marks elements that are brighter than their surroundings: a > local level - offset.",
    .doc = "The local level is the Gaussian-weighted mean or the mean of the neighborhood. "
           "Boundaries are treated as in box_filter. Values and conventions are those of "
           "skimage.filters.threshold_local; its mode reflect is called symmetric here.\n"
           "Use axes = {2, 3} for a stack of images.",
    .reference = "P. D. Wellner, Adaptive thresholding for the DigitalDesk, 1993; "
                 "skimage.filters.threshold_local",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
};
