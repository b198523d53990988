/*
** Separable filters: one pass along each filtered axis. What box_filter, gaussian_filter and
** adaptive_threshold share, on the host and in CUDA kernels.
**
** A pass sees an array as (outer, n, inner), n along its axis: element (o, i, c) becomes the
** mean, or the weighted sum with a sampled Gaussian, of elements i - before ... i + after of its
** line. What lies beyond a line comes from mb_pad_source, so boundaries are those of `pad`.
** Between passes values are f32. Means are running sums, which begin afresh every
** mb_separable_segment elements of a line: such a segment is what a mean depends on, besides its
** window, and so the packet of an axis that is cut. Inputs and results may have any row strides
** (mb_separable_lines); scratch is dense.
**
** Memory. Host: a pass reads MB_SEPARABLE_LINES whole lines into a thread's own buffer and writes
** them back, so it may run in place: the only scratch is one buffer per thread. CUDA: passes go
** from one array to another, hence one array of scratch for two passes or more.
*/
#ifndef MB_OPS_SEPARABLE_H
#define MB_OPS_SEPARABLE_H

#include "array/array.h"
#include "core/both.h"
#include "ops/array/op_pad.h"
#include <math.h>

#define MB_SEPARABLE_LINES 16
/* Zeros beside each pass's weights: kernels that make so many neighbors at once read on. */
#define MB_SEPARABLE_EDGE 8

typedef struct mb_separable_pass {
    int axis;
    bool last; /* of the array's axes */
    int64_t outer, n, inner;
    int64_t before, after;
    double sigma;  /* 0: the mean */
    int64_t table; /* where the middle weight is in the table of weights */
} mb_separable_pass;

typedef struct mb_separable {
    int count; /* at least one pass */
    mb_separable_pass pass[MB_MAX_RANK];
    int64_t weights; /* floats of the table */
    int mode;        /* mb_pad_mode */
    float value;
} mb_separable;

/* Several axes as one index: those that lie close are joined, so a dense array and a plain pitch
** need no division. */
typedef struct mb_separable_axes {
    int count; /* at least 1 */
    int64_t dims[MB_MAX_RANK], strides[MB_MAX_RANK];
} mb_separable_axes;

/* Where an array has the lines of a pass: element (o, i, c) is at offset(outer, o) +
** offset(inner, c) + i * step. */
typedef struct mb_separable_lines {
    int64_t step;
    mb_separable_axes outer, inner;
} mb_separable_lines;

static MB_BOTH inline int64_t mb_separable_offset(const mb_separable_axes *axes, int64_t index)
{
    int64_t offset = 0;
    for (int k = axes->count - 1; k > 0; k--) {
        offset += index % axes->dims[k] * axes->strides[k];
        index /= axes->dims[k];
    }
    return offset + index * axes->strides[0];
}

/* Names of mb_pad_mode as far as filters take them. */
extern const char *const mb_separable_modes[];

/* The arguments that all three filters have, in the order of their tables. */
#define MB_SEPARABLE_INPUT                                                                         \
    MB_ARRAY_IN("a", MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_F32), 1, MB_MAX_RANK,              \
                "image, volume or stack")
#define MB_SEPARABLE_ARGS                                                                          \
    MB_VECTOR_OPTION(axes, -MB_MAX_RANK, MB_MAX_RANK, NULL,                                        \
                     "axes to filter; 1-based, negative from the end; default all"),               \
        MB_ENUM(mode, mb_separable_modes, MB_PAD_SYMMETRIC,                                        \
                "values beyond the edges, as in pad (scipy.ndimage calls symmetric reflect, "      \
                "reflect mirror, and edge nearest)"),                                              \
        MB_FLOAT(value, MB_ANY, 0, NULL, "constant of mode constant")

/* numbers has one number, or one for each filtered axis; axes are whole, in range, and
** different. */
mb_status mb_separable_check(const char *name, const mb_vector *numbers, const mb_vector *axes,
                             int rank);
/* The scratch of a filter from one array to another: see above. */
uint64_t mb_separable_scratch_bytes(const mb_separable *s, const mb_shape *shape,
                                    const mb_device_facts *facts);
/* Host: the threads' line buffers. */
uint64_t mb_separable_buffer_bytes(const mb_separable *s, int threads);
/* Host: all passes from `a` (u8, u16 or f32) to `to`, which has these strides (NULL: dense). */
void mb_separable_run(const mb_separable *s, const mb_array *a, float *to, const int64_t *strides,
                      const float *weights, float *buffers);
/* Host: the table of all weights. */
void mb_separable_table(const mb_separable *s, float *table);

static inline void mb_separable_join(mb_separable_axes *axes, int64_t dim, int64_t stride)
{
    const int last = axes->count - 1;
    if (dim == 1)
        return;
    if (last >= 0 && axes->strides[last] == stride * dim) {
        axes->dims[last] *= dim;
        axes->strides[last] = stride;
    } else {
        axes->dims[axes->count] = dim;
        axes->strides[axes->count++] = stride;
    }
}

static inline void mb_separable_dense(const mb_shape *shape, int64_t strides[MB_MAX_RANK])
{
    int64_t size = 1;
    for (int i = shape->rank - 1; i >= 0; size *= shape->dims[i--])
        strides[i] = size;
}

/* Where an array of these strides (NULL: a dense one) has the lines of a pass. */
static inline mb_separable_lines
mb_separable_lines_of(const mb_separable_pass *p, const mb_shape *shape, const int64_t *strides)
{
    mb_separable_lines lines = {0};
    int64_t dense[MB_MAX_RANK] = {0};
    mb_separable_dense(shape, dense);
    if (!strides)
        strides = dense;
    lines.step = strides[p->axis];
    for (int i = 0; i < shape->rank; i++)
        if (i != p->axis)
            mb_separable_join(i < p->axis ? &lines.outer : &lines.inner, shape->dims[i],
                              strides[i]);
    if (lines.outer.count == 0)
        lines.outer.count = 1; /* of one element: its stride is 0 */
    if (lines.inner.count == 0)
        lines.inner.count = 1;
    return lines;
}

/* Threads for an array of this many elements. */
static inline int mb_separable_threads(const mb_shape *shape, int threads)
{
    return mb_shape_elements(shape) < 16384 ? 1 : threads;
}

/* The number that belongs to an axis (0-based); `absent` where it is not filtered. */
static inline double mb_separable_number(const mb_vector *numbers, const mb_vector *axes, int axis,
                                         int rank, double absent)
{
    if (axes->count == 0)
        return numbers->values[numbers->count == 1 ? 0 : axis];
    for (int64_t i = 0; i < axes->count; i++) {
        int named = (int)axes->values[i];
        if ((named > 0 ? named - 1 : rank + named) == axis)
            return numbers->values[numbers->count == 1 ? 0 : i];
    }
    return absent;
}

static inline void mb_separable_add(mb_separable *s, const mb_shape *shape, int axis,
                                    int64_t before, int64_t after, double sigma)
{
    mb_separable_pass *p = &s->pass[s->count++];
    p->axis = axis;
    p->last = axis == shape->rank - 1;
    p->outer = p->inner = 1;
    for (int i = 0; i < shape->rank; i++)
        *(i < axis   ? &p->outer
          : i > axis ? &p->inner
                     : &p->n) =
            i == axis ? shape->dims[i] : (i < axis ? p->outer : p->inner) * shape->dims[i];
    p->before = before;
    p->after = after;
    p->sigma = sigma;
    p->table = 0;
    if (sigma > 0) {
        p->table = s->weights + MB_SEPARABLE_EDGE + before;
        s->weights += 2 * MB_SEPARABLE_EDGE + 2 * before + 1;
    }
}

/* An array that is filtered along no axis still has to be copied: a mean over one element. */
static inline void mb_separable_end(mb_separable *s, const mb_shape *shape)
{
    if (s->count == 0)
        mb_separable_add(s, shape, shape->rank - 1, 0, 0, 0);
}

/* A mean over `size` elements, as scipy.ndimage.uniform_filter places it: size / 2 of them
** before. */
static inline void mb_separable_add_box(mb_separable *s, const mb_shape *shape, int axis,
                                        int64_t size)
{
    if (size > 1)
        mb_separable_add(s, shape, axis, size / 2, size - 1 - size / 2, 0);
}

/* Elements of a line after which the sum of a window of `size` begins afresh. That costs the window:
** long ones for large windows. Along the last axis a GPU's warp takes 32 elements at a time. */
MB_BOTH static inline int64_t mb_separable_segment(int64_t size, bool last)
{
    const int64_t least = last ? 1024 : 64;
    return 2 * size > least ? 2 * size : least;
}

/* The radius of scipy.ndimage.gaussian_filter. */
static inline int64_t mb_separable_radius(double sigma, double truncate)
{
    return sigma > 0 ? (int64_t)(truncate * sigma + 0.5) : 0;
}

static inline void mb_separable_add_gaussian(mb_separable *s, const mb_shape *shape, int axis,
                                             double sigma, double truncate)
{
    int64_t radius = mb_separable_radius(sigma, truncate);
    if (radius > 0)
        mb_separable_add(s, shape, axis, radius, radius, sigma);
}

/* Sum of the samples of a Gaussian of this reach, and one of its weights; k is 0 in the middle. */
static inline double mb_separable_sum(const mb_separable_pass *p)
{
    double sum = 0;
    for (int64_t k = p->before; k > 0; k--)
        sum += 2 * exp(-0.5 * (double)k * (double)k / (p->sigma * p->sigma));
    return sum + 1;
}

static inline float mb_separable_weight(const mb_separable_pass *p, double sum, int64_t k)
{
    if (k < -p->before || k > p->before)
        return 0;
    return (float)(exp(-0.5 * (double)k * (double)k / (p->sigma * p->sigma)) / sum);
}

/* The rows of a piece: `reach` rows beside those of the result, from the beginning of a packet on;
** all of them where values come from the other end. */
static inline mb_rows mb_separable_needs(int mode, int64_t n, int64_t reach, int64_t packet,
                                         mb_rows rows)
{
    if (mode == MB_PAD_WRAP && reach > 0)
        return (mb_rows){rows.first - n, rows.end + n};
    return (mb_rows){rows.first - (reach + packet - 1) / packet * packet, rows.end + reach};
}

/* How a filter may be cut. `window`: int64_t (*)(const params *, int axis, int rank), the extent of
** its window; `means`: bool (*)(const params *), whether it is a mean. */
#define MB_SEPARABLE_SPLIT(type, window, means)                                                    \
    static int64_t packet(const void *params, const mb_spec *arrays, int axis,                     \
                          const mb_device *device)                                                 \
    {                                                                                              \
        const int rank = arrays[0].shape.rank;                                                     \
        const int64_t size = window(params, axis, rank);                                           \
        (void)device;                                                                              \
        return means(params) && size > 1 ? mb_separable_segment(size, axis == rank - 1) : 1;       \
    }                                                                                              \
    static mb_rows needs(const void *params, const mb_spec *arrays, int axis, mb_rows rows)        \
    {                                                                                              \
        const type *p = params;                                                                    \
        const mb_shape *shape = &arrays[0].shape;                                                  \
        return mb_separable_needs(p->mode, shape->dims[axis], window(p, axis, shape->rank) / 2,    \
                                  packet(params, arrays, axis, NULL), rows);                       \
    }                                                                                              \
    static const mb_op_split split[] = MB_SPLIT_AXES(.needs = needs, .packet = packet)

#endif
