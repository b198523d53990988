/*
** What fft, rfft and irfft share: transforms over the trailing one to three axes, batched over the
** others. `last` is the number of samples of the last axis of the real side.
*/
#ifndef MB_OPS_TRAILING_AXES_H
#define MB_OPS_TRAILING_AXES_H

#include "ops/op_args.h"

#define MB_TRAILING_ARG MB_INT(axes, 1, 3, 1, NULL, "how many trailing axes to transform")

static inline mb_status mb_trailing_check(const mb_shape *shape, int64_t axes)
{
    if (axes > shape->rank)
        return mb_fail(MB_STATUS_ARGUMENT, "axes", "axes is %lld and the array has %d axes",
                       (long long)axes, shape->rank);
    for (int i = shape->rank - (int)axes; i < shape->rank; i++)
        if (shape->dims[i] < 1)
            return mb_fail(MB_STATUS_SHAPE, "a",
                           "axis %d is empty; a transform needs at least one point", i + 1);
    return MB_STATUS_OK;
}

/* The batch may be cut. `axes` is what the operator's parameters say. */
static inline bool mb_trailing_adapt(const mb_spec *arrays, int64_t axes, const mb_op_cut *cut)
{
    return cut->split->axis < arrays[0].shape.rank - axes;
}

#define MB_TRAILING_SPLIT                                                                          \
    static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)                   \
    {                                                                                              \
        return mb_trailing_adapt(arrays, ((const PARAMS *)params)->axes, cut);                     \
    }                                                                                              \
    static const mb_op_split split[] =                                                             \
        MB_SPLIT_AXES(.when = "the axis is not transformed", .adapt = adapt)

/* The same for transforms of real data, which a GPU's library makes in ways that depend on how many
** there are. */
#define MB_TRAILING_REAL_SPLIT                                                                     \
    static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)                   \
    {                                                                                              \
        return (!cut->device || cut->device->facts.compute_capability == 0) &&                     \
               mb_trailing_adapt(arrays, ((const PARAMS *)params)->axes, cut);                     \
    }                                                                                              \
    static const mb_op_split split[] =                                                             \
        MB_SPLIT_AXES(.when = "the axis is not transformed, on the host", .adapt = adapt)

static inline mb_fft_desc mb_trailing_describe(mb_fft_kind kind, const mb_shape *shape,
                                               int64_t axes, int64_t last, bool in_place)
{
    int64_t dims[3] = {0}, batch = 1;
    const int first = shape->rank - (int)axes;
    for (int i = 0; i < first; i++)
        batch *= shape->dims[i];
    for (int i = 0; i < axes; i++)
        dims[i] = shape->dims[first + i];
    dims[axes - 1] = last;
    return mb_fft_describe(kind, (int)axes, dims, batch, in_place);
}

/* Divides `count` floats on the host by the number of points of a transform. */
static inline void mb_trailing_normalize(mb_device *device, float *values, int64_t count,
                                         int64_t points)
{
    const float factor = (float)(1.0 / (double)points);
    int threads = count < 65536 ? 1 : device->facts.threads;
#pragma omp parallel for simd schedule(static) num_threads(threads)
    for (int64_t i = 0; i < count; i++)
        values[i] *= factor;
}

#endif
