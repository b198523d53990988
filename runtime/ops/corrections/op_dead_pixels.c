/*
** dead_pixels: the pixels of a detector that see no light, or whose value never changes.
*/
#include "ops/corrections/op_dead_pixels.h"
#include "ops/op_args.h"
#include <float.h>
#include <string.h>

#define PARAMS mb_dead_pixels_params

enum { BLOCK = 64 };

#define ACCEPTED (MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_I32) | MB_BIT(MB_F16) | MB_BIT(MB_F32))

static const char *const rules[] = {"dim", "constant", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("frames", ACCEPTED, 3, 3,
                "flat fields, or for the rule constant projections (n, h, w)"),
    MB_ARRAY_IN_OPTION("darks", ACCEPTED, 3, 3,
                       "frames without beam (m, h, w); without them the dark is 0"),
    MB_ENUM(rule, rules, MB_DEAD_PIXELS_DIM,
            "dim: the mean of frames less that of darks is at most least; constant: all frames "
            "have the same value there, and there are two at least"),
    MB_FLOAT(least, 0, FLT_MAX, 0, "counts", "of the rule dim"),
    MB_ARRAY_OUT("mask", MB_BIT(MB_U8), 2, 2, "1 where the pixel is dead, else 0 (h, w)"),
    MB_ARRAY_OUT("counts", MB_BIT(MB_F64), 1, 1, "{dead pixels}")};

#define PIXELS(n)                                                                                  \
    {                                                                                              \
        .axis = n, .result_axis = n - 1, .alike = 1u << MB_DEAD_PIXELS_DARKS,                      \
        .combine = MB_COMBINE_SUM                                                                  \
    }
static const mb_op_split split[] = {PIXELS(1), PIXELS(2), MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'u16', 3, 5, 70}, {'u16', 2, 5, 70}}, params = {least = 100}}",
    "{inputs = {{'f32', 2, 4, 9}}}", "{inputs = {{'u8', 2, 6, 40}}, params = {rule = 'constant'}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_shape *frames = &arrays[MB_DEAD_PIXELS_FRAMES].shape;
    const mb_spec *darks = &arrays[MB_DEAD_PIXELS_DARKS];
    (void)params;
    if (frames->dims[0] == 0 || (darks->present && darks->shape.dims[0] == 0))
        return mb_fail(MB_STATUS_SHAPE, frames->dims[0] == 0 ? "frames" : "darks",
                       "%s has no frames; give one at least",
                       frames->dims[0] == 0 ? "frames" : "darks");
    if (darks->present &&
        (darks->shape.dims[1] != frames->dims[1] || darks->shape.dims[2] != frames->dims[2]))
        return mb_fail(MB_STATUS_SHAPE, "darks",
                       "darks has %lld x %lld pixels and frames has %lld x %lld: they must agree",
                       (long long)darks->shape.dims[1], (long long)darks->shape.dims[2],
                       (long long)frames->dims[1], (long long)frames->dims[2]);
    arrays[MB_DEAD_PIXELS_MASK] = (mb_spec){true, MB_U8, {2, {frames->dims[1], frames->dims[2]}}};
    arrays[MB_DEAD_PIXELS_COUNTS] = (mb_spec){true, MB_F64, {1, {1}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    (void)params, (void)arrays;
    mb_planner_slot(planner, "tally",
                    planner->device->facts.compute_capability == 0 ? 0 : sizeof(uint64_t), 0, 0);
}

#define SEE(type, expression)                                                                      \
    do {                                                                                           \
        const type *values = (const type *)stack->data + at;                                       \
        for (int64_t i = 0; i < n; i++)                                                            \
            mb_dead_pixel_see(&pixels[i], (double)expression(values[i]));                          \
    } while (0)

/* n pixels of a row from x on, of all frames. */
static void see(const mb_array *stack, int64_t y, int64_t x, int64_t n, mb_dead_pixel *pixels)
{
    memset(pixels, 0, (size_t)n * sizeof *pixels);
    for (int64_t k = 0; stack && k < stack->shape.dims[0]; k++) {
        const int64_t at = k * stack->strides[0] + y * stack->strides[1] + x;
        switch (stack->dtype) {
        case MB_U8: SEE(uint8_t, ); break;
        case MB_U16: SEE(uint16_t, ); break;
        case MB_I32: SEE(int32_t, ); break;
        case MB_F16: SEE(uint16_t, mb_half_to_float); break;
        default: SEE(float, ); break;
        }
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_dead_pixels_params *p = call->params;
    const mb_array *frames = call->arrays[MB_DEAD_PIXELS_FRAMES],
                   *darks = call->arrays[MB_DEAD_PIXELS_DARKS];
    mb_array *mask = call->arrays[MB_DEAD_PIXELS_MASK];
    const int64_t rows = frames->shape.dims[1], columns = frames->shape.dims[2];
    int64_t dead = 0;
    const int threads = call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : dead)
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < columns && !mb_cancelled(); x += BLOCK) {
            mb_dead_pixel pixels[BLOCK], dark[BLOCK];
            const int64_t n = columns - x < BLOCK ? columns - x : BLOCK;
            uint8_t *to = (uint8_t *)mask->data + y * mask->strides[0] + x;
            see(frames, y, x, n, pixels);
            see(darks, y, x, n, dark);
            for (int64_t i = 0; i < n; i++) {
                to[i] = mb_dead_pixel_is(&pixels[i], &dark[i], p->rule, p->least);
                dead += to[i];
            }
        }
    *(double *)call->arrays[MB_DEAD_PIXELS_COUNTS]->data = (double)dead;
    return MB_STATUS_OK;
}

const mb_op mb_op_dead_pixels = {
    .name = "dead_pixels",
    .summary = "Finds the pixels of a detector that see no light, or whose value never changes.",
    .doc = "Makes a mask from flat fields and darks (rule dim), which also finds pixels that are "
           "always bright; or from projections (rule constant). A pixel that is NaN in a frame is "
           "dim. mend replaces the pixels of a mask.",
    .reference = "mean(flats) - mean(darks) <= least",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
};
