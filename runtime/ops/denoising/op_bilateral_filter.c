/*
** bilateral_filter: the mean of the neighbors that are close in place and in value.
*/
#include "core/multiversion.h"
#include "ops/denoising/op_bilateral_filter.h"
#include "ops/op_args.h"
#include <omp.h>
#include <string.h>

#define PARAMS mb_bilateral_filter_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 2, 3, "image, stack of slices or volume (z, y, x)"),
    MB_FLOAT_REQUIRED(sigma_value, 1e-18, 1e18, 0, NULL,
                      "standard deviation of the weight of values, in units of the data"),
    MB_FLOAT(sigma_spatial, 1e-3, 1e3, 1, "px", "standard deviation of the weight of distances"),
    MB_INT(radius, 0, MB_BILATERAL_MOST, 0, "px",
           "neighbors on each side along an axis; 0: 3 sigma_spatial, rounded up, at least 2"),
    MB_INT(dimensions, 2, 3, 2, NULL, "2: each slice by itself; 3: the volume as a whole"),
    MB_ENUM(mode, mb_separable_modes, MB_PAD_SYMMETRIC,
            "values beyond the edges, as in pad (scipy.ndimage calls symmetric reflect, reflect "
            "mirror, and edge nearest)"),
    MB_FLOAT(value, MB_ANY, 0, NULL, "constant of mode constant"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "same shape")};

static const char *const samples[] = {
    "{inputs = {{'f32', 4, 19, 37}}, params = {sigma_value = 0.3}}",
    "{inputs = {{'f32', 9, 11, 18}}, params = {sigma_value = 0.2, sigma_spatial = 0.7, dimensions "
    "= 3, mode = 'constant', value = 0.5}}",
    "{inputs = {{'f32', 40, 33}}, params = {sigma_value = 0.5, radius = 5, mode = 'wrap'}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_bilateral_filter_params *p = params;
    const int64_t radius = mb_bilateral_radius(p);
    if (p->dimensions > arrays[MB_BILATERAL_FILTER_A].shape.rank)
        return mb_fail(MB_STATUS_SHAPE, "dimensions",
                       "dimensions is 3, but the array has 2 axes; give dimensions = 2 or a volume "
                       "(z, y, x)");
    if (radius > MB_BILATERAL_MOST)
        return mb_fail(MB_STATUS_ARGUMENT, "sigma_spatial",
                       "sigma_spatial %g takes %lld neighbors on each side; the most are %d: give "
                       "radius, or filter a binned array",
                       p->sigma_spatial, (long long)radius, MB_BILATERAL_MOST);
    arrays[MB_BILATERAL_FILTER_RESULT] = arrays[MB_BILATERAL_FILTER_A];
    return MB_STATUS_OK;
}

static mb_rows needs(const void *params, const mb_spec *arrays, int axis, mb_rows rows)
{
    const mb_bilateral_filter_params *p = params;
    const mb_shape *shape = &arrays[0].shape;
    if (axis < shape->rank - p->dimensions)
        return rows;
    return mb_separable_needs(p->mode, shape->dims[axis], mb_bilateral_radius(p), 1, rows);
}

static const mb_op_split split[] = {MB_SPLIT_AXIS(0, .needs = needs),
                                    MB_SPLIT_AXIS(1, .needs = needs, .adapt = mb_whole_rows_adapt,
                                                  .when = "it is not the last axis"),
                                    MB_SPLIT_END};

/* Floats of a thread: a row with its continuation on both sides, and the sums of two rows. */
static int64_t room_of(const mb_bilateral_filter_params *p, int64_t columns)
{
    return columns + 2 * mb_bilateral_radius(p) + 4 * columns;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_shape *shape = &arrays[MB_BILATERAL_FILTER_A].shape;
    const mb_device_facts *facts = &planner->device->facts;
    const uint64_t bytes =
        mb_bytes_mul((uint64_t)room_of(params, shape->dims[shape->rank - 1]), sizeof(float));
    mb_planner_slot(planner, "rows",
                    facts->compute_capability ? 0 : mb_bytes_mul(bytes, (uint64_t)facts->threads),
                    0, 0);
}

/* 2^y for y in -126 ... 0, to 2 ulp: the fraction by a polynomial, the whole part by the exponent. */
static inline float power_of_two(float y)
{
    const float shifted = y + 12582912.0f, f = y - (shifted - 12582912.0f);
    float made = 1.5403530e-4f;
    int32_t whole, bits;
    made = made * f + 1.3333558e-3f;
    made = made * f + 9.6181291e-3f;
    made = made * f + 5.5504109e-2f;
    made = made * f + 0.24022651f;
    made = made * f + 0.69314718f;
    made = made * f + 1.0f;
    memcpy(&whole, &shifted, 4);
    memcpy(&bits, &made, 4);
    bits += (int32_t)((uint32_t)whole << 23);
    memcpy(&made, &bits, 4);
    return made;
}

/* The neighbors at one distance along x: sums of weights, and of weighted differences. */
MB_MULTIVERSION static void add_neighbors(int64_t n, const float *restrict c,
                                          const float *restrict near, float value, float distance,
                                          float *restrict sum, float *restrict weights)
{
    for (int64_t x = 0; x < n; x++) {
        const float d = near[x] - c[x], y = d * d * value + distance;
        const bool counts = y > MB_BILATERAL_LEAST; /* false for NaN */
        const float w = counts ? power_of_two(counts ? y : 0) : 0;
        sum[x] += w * (counts ? d : 0);
        weights[x] += w;
    }
}

MB_MULTIVERSION static void add_row(int64_t n, float weight, const float *restrict sum,
                                    const float *restrict weights, float *restrict all)
{
    for (int64_t x = 0; x < n; x++) {
        all[x] += weight * sum[x];
        all[n + x] += weight * weights[x];
    }
}

/* An image or volume and what a row needs of it. */
typedef struct source {
    const float *data;
    int64_t plane, row, planes, rows, columns, radius;
    int mode;
    float value;
} source;

/* The row with its continuation; the row before the first or after the last one, too. */
static void gather(const source *s, int64_t z, int64_t y, float *to)
{
    const int64_t r = s->radius, n = s->columns, own_z = mb_pad_source(s->mode, z, s->planes);
    const int64_t own_y = mb_pad_source(s->mode, y, s->rows);
    if (own_z < 0 || own_y < 0) {
        for (int64_t x = 0; x < n + 2 * r; x++)
            to[x] = s->value;
        return;
    }
    const float *from = s->data + own_z * s->plane + own_y * s->row;
    memcpy(to + r, from, (size_t)n * sizeof *to);
    for (int64_t i = 1; i <= r; i++) {
        const int64_t before = mb_pad_source(s->mode, -i, n);
        const int64_t after = mb_pad_source(s->mode, n - 1 + i, n);
        to[r - i] = before < 0 ? s->value : from[before];
        to[r + n - 1 + i] = after < 0 ? s->value : from[after];
    }
}

static void filter_row(const source *s, const mb_bilateral_filter_params *p, int64_t z, int64_t y,
                       float *result, float *room)
{
    const int64_t r = s->radius, n = s->columns, deep = s->planes > 1 || p->dimensions == 3 ? r : 0;
    const float *c = s->data + z * s->plane + y * s->row, value = mb_bilateral_value(p);
    float *near = room, *all = room + n + 2 * r, *sum = all + 2 * n;
    memset(all, 0, (size_t)(2 * n) * sizeof *all);
    for (int64_t dz = -deep; dz <= deep; dz++)
        for (int64_t dy = -r; dy <= r; dy++) {
            const double far = mb_bilateral_distance(p, dz) + mb_bilateral_distance(p, dy);
            gather(s, z + dz, y + dy, near);
            memset(sum, 0, (size_t)(2 * n) * sizeof *sum);
            for (int64_t dx = -r; dx <= r; dx++)
                add_neighbors(n, c, near + r + dx, value, (float)mb_bilateral_distance(p, dx), sum,
                              sum + n);
            add_row(n, (float)exp2(far), sum, sum + n, all);
        }
    for (int64_t x = 0; x < n; x++)
        result[x] = all[n + x] > 0 ? c[x] + all[x] / all[n + x] : c[x];
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_bilateral_filter_params *p = call->params;
    const mb_array *a = call->arrays[MB_BILATERAL_FILTER_A];
    const mb_array *result = call->arrays[MB_BILATERAL_FILTER_RESULT];
    const mb_bilateral_extents n = mb_bilateral_extents_of(p, &a->shape);
    const int rank = a->shape.rank;
    const int64_t plane = rank == 3 ? a->strides[0] : 0, row = a->strides[rank - 2];
    const int64_t to_plane = rank == 3 ? result->strides[0] : 0, to_row = result->strides[rank - 2];
    const int64_t rows = n.slices * n.planes * n.rows, room = room_of(p, n.columns);
    const int threads = rows * n.columns < 4096 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
    for (int64_t i = 0; i < rows; i++) {
        const int64_t z = i / n.rows, y = i % n.rows, slice = n.slices > 1 ? z : 0;
        const source s = {(const float *)a->data + slice * plane,
                          plane,
                          row,
                          n.planes,
                          n.rows,
                          n.columns,
                          mb_bilateral_radius(p),
                          p->mode,
                          (float)p->value};
        if (!mb_cancelled() && n.columns > 0)
            filter_row(&s, p, z - slice, y, (float *)result->data + z * to_plane + y * to_row,
                       (float *)call->slots[MB_BILATERAL_FILTER_ROWS] +
                           omp_get_thread_num() * room);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_bilateral_filter = {
    .name = "bilateral_filter",
    .summary = "Smooths with weights for distance and for difference of values: edges stay.",
    .doc =
        "Each value becomes the mean of its neighbors within radius along each axis, with weights "
        "exp(-distance^2 / (2 sigma_spatial^2)) exp(-difference^2 / (2 sigma_value^2)). The "
        "neighborhood is a square or a cube.\n"
        "Neighbors that are not finite do not count, nor do those of a weight below about 2^-120. "
        "Values that are not finite stay as they are.",
    .reference = "C. Tomasi, R. Manduchi, ICCV (1998)",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 2e-6,
};
