/*
** The host kernel of fourier_project: the parts of fourier_reconstruct_host.c in the opposite
** order, each transposed. The image goes column by column into transforms along y, a few columns at
** a time, and from there into the cells; then lines are transformed along x. A thread takes rays:
** it reads their samples from the cells of two pairs, one weight for both, and makes rows of them.
** A result depends on its pair alone, whatever the threads.
*/
#include "core/multiversion.h"
#include "ops/tomography/fourier_reconstruct_host.h"
#include "ops/tomography/op_fourier_project.h"
#include <string.h>

typedef struct job {
    const mb_op_call *call;
    mb_fourier_project_job sizes;
    mb_gridding gridding;
    int64_t samples, grid, pairs; /* pairs of this batch */
    int64_t first;                /* slice of this batch */
    const mb_fourier_angle *angles;
    const mb_gridding_ray *rays;
    const float *deapodise;
    float *cells;
} job;

int64_t mb_fourier_project_host_pitch(int64_t samples, int64_t grid)
{
    const int64_t rows = 4 * mb_fourier_host_row(0, samples),
                  columns = MB_FOURIER_HOST_COLUMNS * mb_fourier_host_column(grid);
    return rows > columns ? rows : columns;
}

/* Slice `z` of the volume at line y. */
static const float *volume_line(const job *j, int64_t z, int64_t y)
{
    const mb_array *volume = j->call->arrays[MB_FOURIER_PROJECT_VOLUME];
    const int rank = volume->shape.rank;
    return (const float *)volume->data + (rank == 3 ? z * volume->strides[0] : 0) +
           y * volume->strides[rank - 2];
}

static mb_status transform(const job *j, int fft, float *data)
{
    return mb_fft_exec(j->call->device, j->call->ffts[fft], data, data,
                       j->call->slots[MB_FOURIER_PROJECT_WORK + fft]);
}

/* Up to MB_FOURIER_HOST_COLUMNS columns of a pair of slices, transformed along y, into its
** cells. */
static mb_status make_columns(const void *state, int64_t item, float *scratch)
{
    const job *j = state;
    const mb_parallel_geometry *g = &j->sizes.g;
    const int64_t high = g->y1 - g->y0, wide = g->x1 - g->x0, grid = j->grid;
    const int64_t blocks = (wide + MB_FOURIER_HOST_COLUMNS - 1) / MB_FOURIER_HOST_COLUMNS;
    const int64_t q = item / blocks, x0 = item % blocks * MB_FOURIER_HOST_COLUMNS;
    const int64_t z = j->first + 2 * q, pitch = mb_fourier_host_column(grid);
    const int64_t count = wide - x0 < MB_FOURIER_HOST_COLUMNS ? wide - x0 : MB_FOURIER_HOST_COLUMNS;
    const double scale = g->scale / (double)j->samples;
    int64_t place[MB_FOURIER_HOST_COLUMNS];
    float factor[MB_FOURIER_HOST_COLUMNS];
    for (int64_t i = 0; i < count; i++) {
        const int64_t xs = x0 + i - wide / 2;
        const float weight = (float)(scale * (double)j->deapodise[xs < 0 ? -xs : xs]);
        place[i] = xs < 0 ? xs + grid : xs;
        factor[i] = xs % 2 ? -weight : weight;
    }
    memset(scratch, 0, sizeof(float) * (size_t)(count * pitch));
    for (int64_t y = 0; y < high; y++) {
        const int64_t ys = y - high / 2;
        float *to = scratch + 2 * (ys < 0 ? ys + grid : ys);
        const float weight = j->deapodise[ys < 0 ? -ys : ys],
                    signed_weight = ys % 2 ? -weight : weight;
        for (int64_t part = 0; part < 2 && z + part < g->rows; part++) {
            const float *from = volume_line(j, z + part, y) + x0;
            for (int64_t i = 0; i < count; i++)
                if (mb_parallel_inside(g, g->y0 + y, g->x0 + x0 + i))
                    to[i * pitch + part] = from[i] * (signed_weight * factor[i]);
        }
    }
    for (int64_t i = 0; i < count; i++)
        MB_TRY(transform(j, MB_FOURIER_PROJECT_IMAGE, scratch + i * pitch));
    for (int64_t y = 0; y < grid; y++) {
        float *line = j->cells + 2 * (q * grid + y) * grid;
        for (int64_t i = 0; i < count; i++)
            memcpy(line + 2 * place[i], scratch + i * pitch + 2 * y, 8);
    }
    return MB_STATUS_OK;
}

/* Lines of the cells along x; the image leaves a gap in their middle. */
static mb_status transform_line(const void *state, int64_t item, float *scratch)
{
    const job *j = state;
    const int64_t wide = j->sizes.g.x1 - j->sizes.g.x0, right = wide - wide / 2;
    float *line = j->cells + 2 * item * j->grid;
    (void)scratch;
    memset(line + 2 * right, 0, sizeof(float) * 2 * (size_t)(j->grid - wide));
    return transform(j, MB_FOURIER_PROJECT_IMAGE, line);
}

/*
** Samples. A window covers the AROUND x AROUND cells from 3 before to 4 behind the cell that a
** sample lies in; one line of them, complex, is two vectors.
*/
enum { AROUND = 8, BEFORE = 3, TOGETHER = 2 };
typedef float eight_floats __attribute__((vector_size(32)));
typedef int32_t eight_ints __attribute__((vector_size(32)));

/* The window's lines lie `pitch` floats apart; those of the second pair start `pair_step` after
** those of the first, and its value goes `value_step` after. (dx, dy): the sample from its cell. */
__attribute__((always_inline)) static inline void
read_sample(const mb_gridding *g, int degree, const eight_floats *poly, const float *window,
            int64_t pitch, int64_t pair_step, int pairs, float dx, float dy, float *value,
            int64_t value_step)
{
    enum { VECTORS = 3 }; /* weights of cells 0-3, each twice, 4-7, and of lines */
    const eight_floats twice = {0, 0, 1, 1, 2, 2, 3, 3}, once = {0, 1, 2, 3, 4, 5, 6, 7};
    eight_floats t[VECTORS] = {twice - (BEFORE + dx), twice + (4 - BEFORE - dx),
                               once - (BEFORE + dy)};
    eight_floats w[VECTORS];
    for (int i = 0; i < VECTORS; i++) {
        t[i] = 1.0f + t[i] * t[i] * g->minus_inv_half2;
        w[i] = poly[degree];
    }
#pragma GCC unroll 16
    for (int d = degree - 1; d >= 0; d--)
        for (int i = 0; i < VECTORS; i++)
            w[i] = w[i] * t[i] + poly[d];
    for (int i = 0; i < VECTORS; i++)
        w[i] = (eight_floats)((eight_ints)w[i] & (t[i] >= 0.0f)); /* 0 where t < 0 */
    for (int p = 0; p < pairs; p++) {
        eight_floats left = {0}, right = {0}, sum;
        const float *line = window + p * pair_step;
#pragma GCC unroll 8
        for (int i = 0; i < AROUND; i++, line += pitch) {
            eight_floats a, b;
            memcpy(&a, line, sizeof a);
            memcpy(&b, line + 8, sizeof b);
            left += a * w[2][i];
            right += b * w[2][i];
        }
        sum = left * w[0] + right * w[1];
        value[p * value_step] = (sum[0] + sum[2]) + (sum[4] + sum[6]);
        value[p * value_step + 1] = (sum[1] + sum[3]) + (sum[5] + sum[7]);
    }
}

/* The window around cell (x, y) of a pair of the periodic grid, where it crosses the grid's
** edge. */
static void copy_window(const float *cells, int64_t grid, int64_t x, int64_t y, float *window)
{
    for (int i = 0; i < AROUND; i++)
        for (int k = 0; k < AROUND; k++) {
            const int64_t u = (x - BEFORE + k + grid) % grid, v = (y - BEFORE + i + grid) % grid;
            memcpy(window + 2 * (i * AROUND + k), cells + 2 * (v * grid + u), 8);
        }
}

/* Samples of ray `ray` of pairs q ..., in the order of frequencies from -N/2 to N/2 - 1. */
__attribute__((always_inline)) static inline void read_ray(const job *j, int degree, int pairs,
                                                           int64_t q, int64_t ray, float *values,
                                                           int64_t value_step)
{
    const mb_gridding *g = &j->gridding;
    const mb_gridding_ray *r = &j->rays[ray];
    const int64_t grid = j->grid, middle = grid / 2, half = j->samples / 2;
    const double cx = (double)r->cx + (double)r->cx_low, sy = (double)r->sy + (double)r->sy_low;
    const float *cells = j->cells + 2 * q * grid * grid;
    eight_floats poly[MB_GRIDDING_DEGREE + 1];
    float edge[TOGETHER * 2 * AROUND * AROUND];
    for (int d = 0; d <= degree; d++)
        poly[d] = (eight_floats){0} + g->poly[d];
    for (int k = -g->top; k <= g->top; k++) {
        const double px = k * cx + (double)middle, py = k * sy + (double)middle; /* not negative */
        const int64_t x = (int64_t)px, y = (int64_t)py;
        const float dx = (float)(px - (double)x), dy = (float)(py - (double)y);
        float *value = values + 2 * (k + half);
        if (x >= BEFORE && y >= BEFORE && x - BEFORE + AROUND <= grid &&
            y - BEFORE + AROUND <= grid) {
            read_sample(g, degree, poly, cells + 2 * ((y - BEFORE) * grid + x - BEFORE), 2 * grid,
                        2 * grid * grid, pairs, dx, dy, value, value_step);
        } else {
            for (int p = 0; p < pairs; p++)
                copy_window(cells + 2 * p * grid * grid, grid, x, y,
                            edge + 2 * p * AROUND * AROUND);
            read_sample(g, degree, poly, edge, 2 * AROUND, 2 * AROUND * AROUND, pairs, dx, dy,
                        value, value_step);
        }
    }
}

MB_MULTIVERSION
static void read_rays(const job *j, int pairs, int64_t q, int64_t ray, float *values, int64_t step)
{
    const bool fast = j->gridding.degree == MB_FOURIER_FAST_DEGREE;
    if (fast && pairs == TOGETHER)
        read_ray(j, MB_FOURIER_FAST_DEGREE, TOGETHER, q, ray, values, step);
    else if (fast)
        read_ray(j, MB_FOURIER_FAST_DEGREE, 1, q, ray, values, step);
    else if (pairs == TOGETHER)
        read_ray(j, MB_GRIDDING_DEGREE, TOGETHER, q, ray, values, step);
    else
        read_ray(j, MB_GRIDDING_DEGREE, 1, q, ray, values, step);
}

/* Samples times the conjugate of their phases, in the order of a transform; the lowest frequency is
** 0. */
MB_MULTIVERSION
static void turn_back(const float *values, const float *phase, float *row, int64_t samples)
{
    const int64_t half = samples / 2;
    row[2 * half] = row[2 * half + 1] = 0;
    for (int64_t i = 1; i < samples; i++) {
        const int64_t k = i < half ? i + half : i - half;
        const float re = values[2 * i], im = values[2 * i + 1];
        row[2 * k] = re * phase[2 * i] + im * phase[2 * i + 1];
        row[2 * k + 1] = im * phase[2 * i] - re * phase[2 * i + 1];
    }
}

/* Row a of slices z and z + 1: the real and the imaginary parts. NULL: zeros. */
static void put_rows(const job *j, int64_t z, int64_t a, const float *row)
{
    const mb_array *result = j->call->arrays[MB_FOURIER_PROJECT_RESULT];
    const int rank = result->shape.rank;
    for (int64_t part = 0; part < 2 && z + part < j->sizes.g.rows; part++) {
        float *to = (float *)result->data + (rank == 3 ? (z + part) * result->strides[0] : 0) +
                    a * result->strides[rank - 2];
        for (int64_t b = 0; b < j->sizes.g.cols; b++)
            to[b] = row ? row[2 * b + part] : 0.0f;
    }
}

/* The rows of ray s, of all pairs. */
static mb_status make_rows(const void *state, int64_t s, float *scratch)
{
    const job *j = state;
    const int64_t a = j->rays[s].angle, row = mb_fourier_host_row(0, j->samples);
    const mb_fourier_angle *angle = &j->angles[a];
    float *values = scratch, *turned = scratch + 2 * row, *phase = scratch + 3 * row;
    if (angle->weight == 0) {
        for (int64_t q = 0; q < j->pairs; q++)
            put_rows(j, j->first + 2 * q, a, NULL);
        return MB_STATUS_OK;
    }
    mb_fourier_host_phases(angle, j->samples, phase);
    for (int64_t q = 0; q < j->pairs; q += TOGETHER) {
        const int pairs = j->pairs - q < TOGETHER ? 1 : TOGETHER;
        read_rays(j, pairs, q, s, values, row);
        for (int p = 0; p < pairs; p++) {
            turn_back(values + p * row, phase, turned, j->samples);
            MB_TRY(transform(j, MB_FOURIER_PROJECT_ROW, turned));
            put_rows(j, j->first + 2 * (q + p), a, turned);
        }
    }
    return MB_STATUS_OK;
}

mb_status mb_fourier_project_host(const mb_op_call *call)
{
    job j = {.call = call};
    mb_fourier_project_planned(&j.sizes, call);
    const mb_parallel_geometry *g = &j.sizes.g;
    const int64_t batch = j.sizes.l.pairs;
    const int64_t blocks = (g->x1 - g->x0 + MB_FOURIER_HOST_COLUMNS - 1) / MB_FOURIER_HOST_COLUMNS;
    j.samples = j.sizes.l.samples;
    j.grid = j.sizes.l.grid;
    j.angles = call->slots[MB_FOURIER_ANGLES];
    j.rays = call->slots[MB_FOURIER_RAYS];
    j.deapodise = call->slots[MB_FOURIER_DEAPODISE];
    j.cells = call->slots[MB_FOURIER_PROJECT_CELLS];
    j.gridding = mb_fourier_gridding(j.sizes.adjoint.accuracy, g, j.samples, j.grid);
    mb_fourier_host_tables(call, &j.sizes.adjoint, g, &j.gridding);
    const mb_fourier_host_threads threads = {call, &j, call->slots[MB_FOURIER_PROJECT_ROWS],
                                             mb_fourier_project_host_pitch(j.samples, j.grid)};
    for (j.first = 0; j.first < g->rows; j.first += 2 * batch) {
        const int64_t left = (g->rows - j.first + 1) / 2;
        j.pairs = left < batch ? left : batch;
        MB_TRY(mb_fourier_host_parallel(&threads, j.pairs * blocks, make_columns));
        MB_TRY(mb_fourier_host_parallel(&threads, j.pairs * j.grid, transform_line));
        MB_TRY(mb_fourier_host_parallel(&threads, g->angles, make_rows));
        MB_TRY(mb_cancel_check());
    }
    return MB_STATUS_OK;
}
