/*
** Grids of in-place real transforms. A grid of extents P (one to three axes) stands in memory as
** rows of 2 * (Px/2 + 1) floats, of which Px are samples and the rest is room for the spectrum:
** "padded rows". The operators of convolution and deconvolution treat every rank as three axes,
** absent leading ones having extent 1.
*/
#ifndef MB_OPS_PADDED_GRID_H
#define MB_OPS_PADDED_GRID_H

#include "core/both.h"
#include "ops/op_args.h"

/* Floats of a padded row of n samples. */
static inline int64_t mb_grid_pitch(int64_t n)
{
    return 2 * (n / 2 + 1);
}

/* Extents as three axes. */
static inline void mb_grid_dims(const mb_shape *shape, int64_t dims[3])
{
    for (int i = 0; i < 3; i++) {
        int own = i - (3 - shape->rank);
        dims[i] = own < 0 ? 1 : shape->dims[own];
    }
}

/* Strides as three axes, 0 for absent leading ones. */
static inline void mb_grid_strides(const mb_array *array, int64_t strides[3])
{
    for (int i = 0; i < 3; i++) {
        int own = i - (3 - array->shape.rank);
        strides[i] = own < 0 ? 0 : array->strides[own];
    }
}

/* Whole numbers of a vector as three axes, `missing` for absent leading ones. */
static inline void mb_grid_vector(const mb_vector *vector, int64_t missing, int64_t values[3])
{
    for (int i = 0; i < 3; i++) {
        int64_t own = i - (3 - vector->count);
        values[i] = own < 0 ? missing : (int64_t)vector->values[own];
    }
}

/* value modulo n, 0 ... n - 1. */
static inline int64_t mb_grid_wrap(int64_t value, int64_t n)
{
    int64_t rest = value % n;
    return rest < 0 ? rest + n : rest;
}

/* An array as three axes: extents, and steps in elements. `data` is NULL without an array. */
typedef struct mb_grid_view {
    int64_t n[3], step[3];
    void *data;
} mb_grid_view;

static inline mb_grid_view mb_grid_view_of(const mb_array *array)
{
    mb_grid_view view = {{0, 0, 0}, {0, 0, 0}, NULL};
    if (!array)
        return view;
    mb_grid_dims(&array->shape, view.n);
    mb_grid_strides(array, view.step);
    view.data = array->data;
    return view;
}

/* Where row (z, y) of a view begins. */
MB_BOTH static inline int64_t mb_grid_row(const mb_grid_view *view, int64_t z, int64_t y)
{
    return z * view->step[0] + y * view->step[1];
}

/* Whether the last axis of the array is dense, or there is no array. */
static inline bool mb_grid_dense(const mb_array *array)
{
    return !array || array->strides[array->shape.rank - 1] == 1;
}

static inline mb_status mb_grid_check_weights(const mb_spec *image, const mb_spec *weights)
{
    if (weights->present && !mb_shape_equal(&weights->shape, &image->shape))
        return mb_fail(MB_STATUS_SHAPE, "weights", "weights must have the shape of image");
    return MB_STATUS_OK;
}

/* Checks an image, and weights of its shape if any, at the origin of a grid of padded rows, which
** an operator calls blurred. */
static inline mb_status mb_grid_check_image(const mb_shape *grid, const mb_spec *image,
                                            const mb_spec *weights)
{
    const int last = grid->rank - 1;
    if (image->shape.rank != grid->rank)
        return mb_fail(MB_STATUS_SHAPE, "image", "image has %d axes and the grid has %d",
                       image->shape.rank, grid->rank);
    if (grid->dims[last] < 2 || grid->dims[last] % 2)
        return mb_fail(MB_STATUS_SHAPE, "blurred",
                       "rows have %lld elements; padded rows have 2 * (n/2 + 1)",
                       (long long)grid->dims[last]);
    for (int i = 0; i <= last; i++) {
        const int64_t room = grid->dims[i] - (i == last);
        if (image->shape.dims[i] > room)
            return mb_fail(MB_STATUS_SHAPE, "image",
                           "axis %d: the image has %lld elements and the grid has room for %lld; "
                           "give a larger grid",
                           i + 1, (long long)image->shape.dims[i], (long long)room);
    }
    return mb_grid_check_weights(image, weights);
}

/* ---- arguments of the pointwise steps ---- */

/* A measured value as the steps for Poisson noise take it: counts are not negative. NaN stays. */
MB_BOTH static inline float mb_grid_counts(float value)
{
    return value < 0 ? 0 : value;
}

#define MB_GRID_BACKGROUND_ARG                                                                     \
    MB_FLOAT(background, 0, 1e30, 0, NULL,                                                         \
             "counts that lie under every value of blurred: they are added to it")

#define MB_GRID_IMAGE_ARG(what)                                                                    \
    MB_ARRAY_IN("image", MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_F32), 1, 3,                    \
                what ", at the origin of the grid")
#define MB_GRID_WEIGHTS_ARG(of)                                                                    \
    MB_ARRAY_IN_OPTION("weights", MB_BIT(MB_F32), 1, 3,                                            \
                       "like image: factors of " of ", 0 for bad pixels")

/* ---- sums of the pointwise steps: their `metric` ---- */

/* The sums are made in this many parts and added in a fixed order: the bits are the same for any
** number of threads. Part b takes the rows from rows * b / MB_GRID_BLOCKS to the first row of the
** next part, and has a cell of doubles in the slot "partials". */
#define MB_GRID_BLOCKS 1024

/* Declares the slot; 0 bytes a cell without metrics. */
static inline void mb_grid_plan(mb_planner *planner, uint64_t cell_bytes)
{
    mb_planner_slot(planner, "partials", MB_GRID_BLOCKS * cell_bytes, 0, 0);
}

/* The arguments `metrics` and `metric` of an operator with sums. */
#define MB_GRID_METRIC_ARGS(metrics_doc, metric_doc)                                               \
    MB_BOOL(metrics, false, metrics_doc), MB_ARRAY_OUT("metric", MB_BIT(MB_F64), 1, 1, metric_doc)

/* On the host: the sum of all cells, as many doubles of it as metric has. No cells: without
** metrics. */
static inline void mb_grid_fold(const void *cells, uint64_t cell_bytes, const mb_array *metric)
{
    if (!cells)
        return;
    double *sums = (double *)metric->data;
    for (int64_t i = 0; i < metric->shape.dims[0]; i++) {
        const double *part = (const double *)cells + i;
        double sum = 0;
        for (int block = 0; block < MB_GRID_BLOCKS; block++, part += cell_bytes / sizeof *part)
            sum += *part;
        sums[i * metric->strides[0]] = sum;
    }
}

/* A term of the I-divergence: y log(y / b) - y + b, with its limit b at y = 0. */
MB_BOTH static inline double mb_grid_divergence(double y, double b)
{
    return y > 0 ? y * log(y / b) - y + b : b - y;
}

/* The cell of a step that replaces an estimate: sums of the new one, squared change, squares of the
** new one. */
typedef struct mb_grid_change {
    double sum, change, squares;
} mb_grid_change;

MB_BOTH static inline void mb_grid_change_add(mb_grid_change *cell, float old, float value)
{
    double change = (double)value - (double)old;
    cell->sum += (double)value;
    cell->change += change * change;
    cell->squares += (double)value * (double)value;
}

#endif
