/*
** What a Richardson-Lucy step divides by: H^T(window), the back-projection of the image's own
** window. rl_update and rl_consensus share it. Three forms: none (it is 1: circular); an array on
** the grid (bad pixels); or the table, the summed_area of the normalized PSF, with which it is
** never stored: H^T of the window (the image, at the origin of the grid) at p is the sum of the PSF
** over c - p <= j < c - p + N, which is 8 look-ups. Positions beyond the window are also those
** before it, by wrapping. A tile of the grid begins at `first`, which may be negative.
*/
#ifndef MB_OPS_RL_NORMALIZER_H
#define MB_OPS_RL_NORMALIZER_H

#include "core/both.h"
#include "ops/array/padded_grid.h"

typedef struct mb_rl_normalizer_params {
    mb_vector window, center; /* with table: image extents, whole center of the PSF */
    double floor;
} mb_rl_normalizer_params;

/* The two arrays, and the parameters; PARAMS has the member `normalizer`. */
#define MB_RL_NORMALIZER_ARRAYS                                                                    \
    MB_ARRAY_IN_OPTION("table", MB_BIT(MB_F64), 1, 3,                                              \
                       "summed_area of the normalized PSF: gives the normalizer"),                 \
        MB_ARRAY_IN_OPTION("normalizer", MB_BIT(MB_F32), 1, 3,                                     \
                           "normalizer on the grid: the back-projected weights")
#define MB_RL_NORMALIZER_ARGS                                                                      \
    MB_VECTOR_NAMED("window", false, normalizer.window, 1, 1e12, "px",                             \
                    "with table: extents of the image, which is at the origin of the grid"),       \
        MB_VECTOR_NAMED("center", false, normalizer.center, 0, 1e12, "px",                         \
                        "with table: 0-based position of the origin in the PSF, whole numbers"),   \
        MB_NUMBER("floor", MB_ARG_FLOAT, false, normalizer.floor, 0, 1e30, 1e-3, NULL,             \
                  "nothing was measured where the normalizer is at most this value")

/* Checks table and normalizer against the grid, or against a tile, which may lie anywhere. */
static inline mb_status mb_rl_normalizer_check(const mb_rl_normalizer_params *p, bool tile,
                                               const mb_shape *grid, const mb_spec *table,
                                               const mb_spec *normalizer)
{
    if (table->present && normalizer->present)
        return mb_fail(MB_STATUS_ARGUMENT, "normalizer", "give table or normalizer, not both");
    if (normalizer->present && !mb_shape_equal(&normalizer->shape, grid))
        return mb_fail(MB_STATUS_SHAPE, "normalizer", "normalizer must have the shape of the grid");
    if (!table->present)
        return MB_STATUS_OK;
    if (table->shape.rank != grid->rank || p->window.count != grid->rank ||
        p->center.count != grid->rank)
        return mb_fail(MB_STATUS_ARGUMENT, "table",
                       "table, window and center must have one axis or number for each of the %d "
                       "axes of the grid",
                       grid->rank);
    MB_TRY(mb_check_whole("center", &p->center));
    for (int i = 0; i < grid->rank; i++) {
        double extent = (double)table->shape.dims[i] - 1, window = p->window.values[i];
        if (p->center.values[i] >= extent)
            return mb_fail(MB_STATUS_ARGUMENT, "center",
                           "axis %d: center %g lies outside a PSF of %g elements", i + 1,
                           p->center.values[i], extent);
        if (!tile && window + extent - 1 > (double)grid->dims[i])
            return mb_fail(MB_STATUS_SHAPE, "estimate",
                           "axis %d: a window of %g and a PSF of %g need a grid of %g, not %lld",
                           i + 1, window, extent, window + extent - 1, (long long)grid->dims[i]);
    }
    return MB_STATUS_OK;
}

/* Range low ... high - 1 of PSF indices that count at position p of an axis: grid P, window N, PSF
** extent K, center c. */
MB_BOTH static inline void mb_rl_normalizer_range(int64_t p, int64_t P, int64_t N, int64_t K,
                                                  int64_t c, int64_t *low, int64_t *high)
{
    if (p >= N + c)
        p -= P;
    *low = c - p < 0 ? 0 : c - p > K ? K : c - p;
    *high = c - p + N < 0 ? 0 : c - p + N > K ? K : c - p + N;
}

/* A normalizer as kernels use it: plain numbers and pointers, both NULL where it is 1. */
typedef struct mb_rl_normalizer {
    int64_t grid[3], first[3], window[3], center[3], table_dims[3], table_strides[3], steps[3];
    int rank;
    const double *table;
    const float *values;
    double floor;
} mb_rl_normalizer;

static inline mb_rl_normalizer mb_rl_normalizer_make(const mb_rl_normalizer_params *p,
                                                     const mb_shape *grid, const mb_array *table,
                                                     const mb_array *values)
{
    mb_rl_normalizer n;
    mb_grid_dims(grid, n.grid);
    for (int i = 0; i < 3; i++) {
        int own = i - (3 - grid->rank);
        n.first[i] = 0;
        n.table_strides[i] = table && own >= 0 ? table->strides[own] : 0;
        n.steps[i] = values && own >= 0 ? values->strides[own] : 0;
    }
    mb_grid_vector(&p->window, 1, n.window);
    mb_grid_vector(&p->center, 0, n.center);
    mb_grid_dims(table ? &table->shape : grid, n.table_dims);
    n.rank = grid->rank;
    n.table = table ? (const double *)table->data : NULL;
    n.values = values ? (const float *)values->data : NULL;
    n.floor = p->floor;
    return n;
}

/* What one grid row needs: a row of the array, or up to four lines of the table, by high y and high
** z (line i belongs to the upper end in z where i & 1, in y where i >> 1; NULL: a missing axis,
** which has only an upper end). */
typedef struct mb_rl_normalizer_row {
    const float *values;
    const double *lines[4];
} mb_rl_normalizer_row;

MB_BOTH static inline mb_rl_normalizer_row mb_rl_normalizer_row_of(const mb_rl_normalizer *n,
                                                                   int64_t row)
{
    const int64_t z = row / n->grid[1], y = row % n->grid[1];
    mb_rl_normalizer_row r = {n->values ? n->values + z * n->steps[0] + y * n->steps[1] : NULL,
                              {NULL, NULL, NULL, NULL}};
    int64_t position[2] = {n->first[0] + z, n->first[1] + y}, at[2][2] = {{-1, 0}, {-1, 0}};
    if (!n->table)
        return r;
    for (int i = 0; i < 2; i++)
        if (i >= 3 - n->rank)
            mb_rl_normalizer_range(position[i], n->grid[i], n->window[i], n->table_dims[i] - 1,
                                   n->center[i], &at[i][0], &at[i][1]);
    for (int i = 0; i < 4; i++) {
        int64_t a = at[0][i & 1], b = at[1][i >> 1];
        if (a >= 0 && b >= 0)
            r.lines[i] = n->table + a * n->table_strides[0] + b * n->table_strides[1];
    }
    return r;
}

/* Sum of the PSF over the lines' box, below the element at x. */
MB_BOTH static inline double mb_rl_normalizer_sum(const mb_rl_normalizer_row *r, int64_t x)
{
    double sum = r->lines[3][x];
    if (r->lines[2])
        sum -= r->lines[2][x];
    if (r->lines[1])
        sum -= r->lines[1][x];
    return r->lines[0] ? sum + r->lines[0][x] : sum;
}

/* The normalizer at column x of the row. */
MB_BOTH static inline double mb_rl_normalizer_at(const mb_rl_normalizer *n,
                                                 const mb_rl_normalizer_row *r, int64_t x)
{
    int64_t low, high;
    if (r->values)
        return (double)r->values[x * n->steps[2]];
    if (!n->table)
        return 1;
    mb_rl_normalizer_range(n->first[2] + x, n->grid[2], n->window[2], n->table_dims[2] - 1,
                           n->center[2], &low, &high);
    return mb_rl_normalizer_sum(r, high * n->table_strides[2]) -
           mb_rl_normalizer_sum(r, low * n->table_strides[2]);
}

#endif
