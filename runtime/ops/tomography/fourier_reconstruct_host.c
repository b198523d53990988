/*
** The host kernel of fourier_reconstruct: FFTW and OpenMP. Rows: a thread pads, filters, crops,
** transforms and stores one pair of rows at a time. Gridding: a thread fills a part of the grids of
** two pairs, sample by sample in the order of the sorted rays; the cells and lines around a sample
** are the vector. A cell's sum has one order, whatever the threads. Then lines are transformed
** along x, and the columns that the image needs along y, a few at a time.
*/
#include "ops/tomography/fourier_reconstruct_host.h"
#include "core/multiversion.h"
#include "ops/each_item.h"
#include <stdlib.h>
#include <string.h>

typedef struct job {
    const mb_op_call *call;
    const mb_fourier_reconstruct_params *p;
    mb_parallel_geometry g;
    mb_gridding gridding;
    int64_t padded, samples, grid;
    int image;     /* FFT of a line of the grid */
    int64_t pairs; /* gridded in this batch */
    int64_t first; /* slice of this batch */
    const mb_fourier_angle *angles;
    const mb_gridding_ray *rays;
    const int32_t *starts;
    const float *response, *deapodise;
    double keep;
    float *polar, *cells;
} job;

static int by_turn(const void *a, const void *b)
{
    const mb_gridding_ray *p = a, *q = b;
    if (p->turn != q->turn)
        return p->turn < q->turn ? -1 : 1;
    return p->angle < q->angle ? -1 : 1;
}

void mb_fourier_host_tables(const mb_op_call *call, const mb_fourier_reconstruct_params *p,
                            const mb_parallel_geometry *g, const mb_gridding *gridding)
{
    mb_fourier_angle *angles = call->slots[MB_FOURIER_ANGLES];
    mb_gridding_ray *rays = call->slots[MB_FOURIER_RAYS];
    int32_t *starts = call->slots[MB_FOURIER_STARTS];
    float *deapodise = call->slots[MB_FOURIER_DEAPODISE];
    int64_t ray = 0;
    for (int64_t a = 0; a < g->angles; a++) {
        const double t = p->angles.values[a];
        angles[a] = mb_fourier_angle_of(g, t, p->shifts.count ? p->shifts.values[a] : 0.0,
                                        p->weights.count ? p->weights.values[a] : 1.0);
        rays[a] = mb_fourier_ray_of(gridding, false, t, (int32_t)a);
    }
    qsort(rays, (size_t)g->angles, sizeof *rays, by_turn);
    for (int b = 0; b <= gridding->buckets; b++) {
        while (ray < g->angles && rays[ray].turn < mb_fourier_bucket(gridding, b))
            ray++;
        starts[b] = (int32_t)(b == gridding->buckets ? g->angles : ray);
    }
    for (int64_t x = 0; x <= mb_fourier_side(g) / 2; x++)
        deapodise[x] = (float)mb_gridding_deapodise(gridding, x);
}

/* Slice `z` of the sinogram at angle a; NULL past the last slice. */
static const float *sino_row(const job *j, int64_t z, int64_t a)
{
    const mb_array *sino = j->call->arrays[MB_FOURIER_SINO];
    int rank = sino->shape.rank;
    if (z >= j->g.rows)
        return NULL;
    return (const float *)sino->data + (rank == 3 ? z * sino->strides[0] : 0) +
           a * sino->strides[rank - 2];
}

/* Real or imaginary part of the padded row, differenced: rounded once, as by the GPU's fmaf. */
MB_MULTIVERSION
static void put_part(const job *j, const float *from, float *row, int part)
{
    const int64_t left = (j->padded - j->g.cols) / 2, cols = j->g.cols, end = left + cols;
    const bool edge = from && j->p->padding == MB_RAMP_PAD_EDGE;
    const double before = edge ? from[0] : 0, after = edge ? from[cols - 1] : 0, keep = j->keep;
    double previous = end < j->padded ? after : from ? from[cols - 1] : 0;
    row += part;
    for (int64_t i = 0; i < left; i++) {
        row[2 * i] = (float)(before - keep * previous);
        previous = before;
    }
    for (int64_t i = 0; i < cols; i++) {
        const double here = from ? from[i] : 0;
        row[2 * (left + i)] = (float)(here - keep * previous);
        previous = here;
    }
    for (int64_t i = end; i < j->padded; i++) {
        row[2 * i] = (float)(after - keep * previous);
        previous = after;
    }
}

/* The response belongs to a real kernel: the upper half of the complex spectrum gets its
** conjugate. */
MB_MULTIVERSION
static void multiply(float *row, const float *response, int64_t padded)
{
    const int64_t half = padded / 2;
    const float *im = response + half + 1;
    for (int64_t k = 0; k <= half; k++) {
        const float x = row[2 * k], y = row[2 * k + 1];
        row[2 * k] = x * response[k] - y * im[k];
        row[2 * k + 1] = x * im[k] + y * response[k];
    }
    for (int64_t k = half + 1; k < padded; k++) {
        const float x = row[2 * k], y = row[2 * k + 1];
        row[2 * k] = x * response[padded - k] + y * im[padded - k];
        row[2 * k + 1] = y * response[padded - k] - x * im[padded - k];
    }
}

/* row[k] * phase[k] into the ray's samples; frequency k - N/2 is at k, the lowest has no partner:
** 0. */
MB_MULTIVERSION
static void store(const float *row, const float *phase, float *to, int64_t samples)
{
    int64_t half = samples / 2;
    to[0] = to[1] = 0;
    for (int64_t i = 1; i < samples; i++) {
        int64_t k = i < half ? i + half : i - half;
        float re = row[2 * k], im = row[2 * k + 1];
        to[2 * i] = re * phase[2 * i] - im * phase[2 * i + 1];
        to[2 * i + 1] = re * phase[2 * i + 1] + im * phase[2 * i];
    }
}

/* Turned from sample to sample, anew after PHASES_IN_A_TURN. */
enum { PHASES_IN_A_TURN = 32 };
void mb_fourier_host_phases(const mb_fourier_angle *angle, int64_t samples, float *phase)
{
    const double step = 2 * MB_GRIDDING_PI * mb_fourier_turns(angle->axis, 1, samples);
    const double turn_re = cos(step), turn_im = sin(step);
    for (int64_t first = 0; first < samples; first += PHASES_IN_A_TURN) {
        const double start =
            2 * MB_GRIDDING_PI * mb_fourier_turns(angle->axis, first - samples / 2, samples);
        double re = angle->weight * cos(start), im = angle->weight * sin(start);
        for (int64_t i = first; i < first + PHASES_IN_A_TURN && i < samples; i++) {
            const double next = re * turn_re - im * turn_im;
            phase[2 * i] = (float)re;
            phase[2 * i + 1] = (float)im;
            im = re * turn_im + im * turn_re;
            re = next;
        }
    }
}

/* Every pair of rows of ray s. */
static mb_status transform_ray(const void *state, int64_t s, float *row)
{
    const job *j = state;
    float *phase = row + mb_fourier_host_row(j->padded, j->samples);
    const mb_op_call *call = j->call;
    const int64_t left = (j->padded - j->g.cols) / 2;
    const int64_t a = j->rays[s].angle;
    const mb_fourier_angle *angle = &j->angles[a];
    if (angle->weight == 0) {
        for (int64_t q = 0; q < j->pairs; q++)
            memset(j->polar + 2 * (q * j->g.angles + s) * j->samples, 0, (size_t)j->samples * 8);
        return MB_STATUS_OK;
    }
    mb_fourier_host_phases(angle, j->samples, phase);
    for (int64_t q = 0; q < j->pairs; q++) {
        put_part(j, sino_row(j, j->first + 2 * q, a), row, 0);
        put_part(j, sino_row(j, j->first + 2 * q + 1, a), row, 1);
        MB_TRY(mb_fft_exec(call->device, call->ffts[MB_FOURIER_FORWARD], row, row,
                           call->slots[MB_FOURIER_WORK + MB_FOURIER_FORWARD]));
        multiply(row, j->response, j->padded);
        MB_TRY(mb_fft_exec(call->device, call->ffts[MB_FOURIER_BACKWARD], row, row,
                           call->slots[MB_FOURIER_WORK + MB_FOURIER_BACKWARD]));
        memmove(row, row + 2 * left, (size_t)j->g.cols * 8);
        memset(row + 2 * j->g.cols, 0, (size_t)(j->samples - j->g.cols) * 8);
        MB_TRY(mb_fft_exec(call->device, call->ffts[MB_FOURIER_SAMPLE], row, row,
                           call->slots[MB_FOURIER_WORK + MB_FOURIER_SAMPLE]));
        store(row, phase, j->polar + 2 * (q * j->g.angles + s) * j->samples, j->samples);
    }
    return MB_STATUS_OK;
}

/* A body with its threads, which mb_each_item passes on. */
typedef struct shared_body {
    const mb_fourier_host_threads *threads;
    mb_fourier_host_body body;
} shared_body;

static mb_status with_scratch(const void *shared, int64_t item, int thread)
{
    const shared_body *s = shared;
    return s->body(s->threads->job, item, s->threads->scratch + s->threads->pitch * thread);
}

mb_status mb_fourier_host_parallel(const mb_fourier_host_threads *threads, int64_t count,
                                   mb_fourier_host_body body)
{
    const shared_body shared = {threads, body};
    return mb_each_item(threads->call, count, with_scratch, &shared);
}

/*
** A part: WIDE columns of some lines of the grid of one pair, or of two, complex doubles, in a
** thread's scratch. Near the middle of the grid all rays meet, and their samples are of one sign:
** floats would lose digits there. A line has MARGIN cells more on the left and some on the right
** that nobody reads, so that a sample may take TAKEN cells of it, two at a time, aligned.
*/
enum { WIDE = 64, MARGIN = 8, TAKEN = 10, PITCH = WIDE + MARGIN + TAKEN };
enum { HIGH_MOST = 64, TOGETHER = 2 };
typedef double two_cells __attribute__((vector_size(32)));
typedef float four_floats __attribute__((vector_size(16)));
typedef float eight_floats __attribute__((vector_size(32)));
typedef int32_t eight_ints __attribute__((vector_size(32)));

/* Pairs whose parts a thread fills together: their samples have the same weights. */
static int together(const job *j)
{
    return j->pairs < TOGETHER ? 1 : TOGETHER;
}

/* Lines of a part, as many as fit. */
static int part_high(const job *j)
{
    const int64_t floats = mb_fourier_host_pitch(j->padded, j->samples, j->grid);
    const int64_t most = floats / (4 * PITCH * together(j));
    return (int)(most > HIGH_MOST ? HIGH_MOST : most);
}

/* A sample at (px, py), counted from the first cell of a part of `high` lines, of `pairs` pairs
** whose values are `value_step` floats apart. `degree` is g's, `poly` its polynomial in every
** lane. */
__attribute__((always_inline)) static inline void
add_sample(const mb_gridding *g, int degree, const eight_floats *poly, int high, double px,
           double py, const float *value, int64_t value_step, int pairs, double *part)
{
    enum { VECTORS = 4, FAR = 16 }; /* weights of cells 0-3, each twice, 4-7, 8 and 9; of lines */
    const eight_floats twice = {0, 0, 1, 1, 2, 2, 3, 3}, once = {-3, -2, -1, 0, 1, 2, 3, 4};
    const double right = px + FAR, under = py + FAR; /* not negative */
    const int x = (int)right - FAR, y = (int)under - FAR;
    const int first = y < 3 ? 3 - y : 0, last = y + 4 < high ? 7 : high + 2 - y;
    const int start = (x - 3 + MARGIN) / 2 * 2;
    const float dx = (float)(x + FAR - right), dy = (float)(y + FAR - under);
    const eight_floats left = twice + (float)(start - MARGIN - x);
    eight_floats t[VECTORS] = {left + dx, left + 4.0f + dx, left + 8.0f + dx, once + dy};
    eight_floats w[VECTORS];
    four_floats halves[2 * VECTORS];
    two_cells across[TAKEN / 2], product;
    double down[8];
    if (x < -4 || x > WIDE + 2)
        return;
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
    memcpy(halves, w, sizeof halves);
    for (int i = 0; i < TAKEN / 2; i++)
        across[i] = __builtin_convertvector(halves[i], two_cells);
    for (int i = 0; i < 2; i++) {
        product = __builtin_convertvector(halves[6 + i], two_cells);
        memcpy(down + 4 * i, &product, sizeof product);
    }
    for (int p = 0; p < pairs; p++) {
        const double re = value[p * value_step], im = value[p * value_step + 1];
        const two_cells here = {re, im, re, im};
        for (int i = first; i <= last; i++) {
            two_cells *to =
                (two_cells *)(void *)(part + 2 * ((p * high + y - 3 + i) * PITCH + start));
            product = here * down[i];
            for (int c = 0; c < TAKEN / 2; c++)
                to[c] += across[c] * product;
        }
    }
}

static int bounded(double value, int low, int high)
{
    return value < low ? low : value > high ? high : (int)value;
}

/* Samples of pairs from q on around the part whose first cell is (left, top), ray by ray. */
__attribute__((always_inline)) static inline void
add_rays(const job *j, int degree, int pairs, int64_t q, int left, int top, int high, double *part)
{
    const mb_gridding *g = &j->gridding;
    const int64_t step = 2 * g->rays * j->samples;
    mb_gridding around = *g;
    eight_floats poly[MB_GRIDDING_DEGREE + 1];
    int from, to;
    for (int d = 0; d <= degree; d++)
        poly[d] = (eight_floats){0} + g->poly[d];
    around.reach += 0.75f * (float)(high > WIDE ? high : WIDE);
    mb_gridding_buckets(&around, (float)left + 0.5f * WIDE, (float)top + 0.5f * (float)high, &from,
                        &to);
    from = mb_gridding_start(g, j->starts, from);
    to = mb_gridding_start(g, j->starts, to);
    for (int s = from; s < to; s++) {
        const int ray = s < 0 ? s + g->rays : s >= g->rays ? s - g->rays : s;
        const mb_gridding_ray *r = &j->rays[ray];
        const double cx = (double)r->cx + (double)r->cx_low, sy = (double)r->sy + (double)r->sy_low;
        const double a = (left - 4) * (double)r->inv_cx, b = (left + WIDE + 3) * (double)r->inv_cx,
                     c = (top - 4) * (double)r->inv_sy, d = (top + high + 3) * (double)r->inv_sy;
        const double low_x = a < b ? a : b, high_x = a < b ? b : a, low_y = c < d ? c : d,
                     high_y = c < d ? d : c;
        const int first = bounded((low_x > low_y ? low_x : low_y) - 1, -g->top, g->top + 1),
                  last = bounded((high_x < high_y ? high_x : high_y) + 1, -g->top - 1, g->top);
        const float *values = j->polar + 2 * ((q * g->rays + ray) * j->samples + j->samples / 2);
        for (int k = first; k <= last; k++) {
            for (int p = 0; p < pairs; p++)
                __builtin_prefetch(values + p * step + 2 * (k + j->samples)); /* of the next ray */
            add_sample(g, degree, poly, high, k * cx - left, k * sy - top, values + 2 * k, step,
                       pairs, part);
        }
    }
}

MB_MULTIVERSION
static void add_image(const job *j, int pairs, int64_t q, int left, int top, int high, double *part)
{
    const bool fast = j->gridding.degree == MB_FOURIER_FAST_DEGREE;
    if (fast && pairs == TOGETHER)
        add_rays(j, MB_FOURIER_FAST_DEGREE, TOGETHER, q, left, top, high, part);
    else if (fast)
        add_rays(j, MB_FOURIER_FAST_DEGREE, 1, q, left, top, high, part);
    else if (pairs == TOGETHER)
        add_rays(j, MB_GRIDDING_DEGREE, TOGETHER, q, left, top, high, part);
    else
        add_rays(j, MB_GRIDDING_DEGREE, 1, q, left, top, high, part);
}

/* Distance of the cells first ... first + count - 1 from cell 0. */
static double distance(int first, int count)
{
    return first > 0 ? first : first + count - 1 < 0 ? 1 - first - count : 0;
}

static int64_t parts_across(const job *j)
{
    return (j->grid + WIDE - 1) / WIDE;
}

static int64_t parts_of_pair(const job *j)
{
    const int high = part_high(j);
    return parts_across(j) * ((j->grid + high - 1) / high);
}

static mb_status make_part(const void *state, int64_t item, float *scratch)
{
    const job *j = state;
    const int grid = (int)j->grid, high = part_high(j);
    const int64_t q = item / parts_of_pair(j) * together(j), place = item % parts_of_pair(j);
    const int pairs = j->pairs - q < TOGETHER ? 1 : TOGETHER; /* the last may be one */
    const int x0 = (int)(place % parts_across(j)) * WIDE,
              y0 = (int)(place / parts_across(j)) * high;
    double *part = (double *)(void *)scratch;
    memset(part, 0, sizeof(double) * 2 * PITCH * (size_t)(high * pairs));
    for (int image = 0; image < 9; image++) { /* the grid is periodic */
        const int left = x0 - grid / 2 + (image % 3 - 1) * grid,
                  top = y0 - grid / 2 + (image / 3 - 1) * grid;
        if (hypot(distance(left, WIDE), distance(top, high)) < (double)j->gridding.outer)
            add_image(j, pairs, q, left, top, high, part);
    }
    for (int p = 0; p < pairs; p++)
        for (int y = y0; y < y0 + high && y < grid; y++) {
            const double *from = part + 2 * ((p * high + y - y0) * PITCH + MARGIN);
            float *cells = j->cells + 2 * (((q + p) * grid + y) * j->grid + x0);
            for (int i = 0; i < 2 * (x0 + WIDE < grid ? WIDE : grid - x0); i++)
                cells[i] = (float)from[i];
        }
    return MB_STATUS_OK;
}

static mb_status transform(const job *j, float *line)
{
    return mb_fft_exec(j->call->device, j->call->ffts[j->image], line, line,
                       j->call->slots[MB_FOURIER_WORK + j->image]);
}

static mb_status transform_line(const void *state, int64_t item, float *scratch)
{
    const job *j = state;
    (void)scratch;
    return transform(j, j->cells + 2 * item * j->grid);
}

/* Pixels of up to MB_FOURIER_HOST_COLUMNS columns of a pair: transformed along y in scratch. */
static mb_status make_columns(const void *state, int64_t item, float *scratch)
{
    const job *j = state;
    const mb_array *result = j->call->arrays[MB_FOURIER_RESULT];
    const int rank = result->shape.rank;
    const int64_t high = j->g.y1 - j->g.y0, wide = j->g.x1 - j->g.x0, grid = j->grid;
    const int64_t blocks = (wide + MB_FOURIER_HOST_COLUMNS - 1) / MB_FOURIER_HOST_COLUMNS;
    const int64_t q = item / blocks, x0 = item % blocks * MB_FOURIER_HOST_COLUMNS;
    const int64_t z = j->first + 2 * q, pitch = mb_fourier_host_column(grid);
    const int64_t count = wide - x0 < MB_FOURIER_HOST_COLUMNS ? wide - x0 : MB_FOURIER_HOST_COLUMNS;
    const double scale = j->g.scale / (double)j->samples;
    const float outside = (float)j->p->circle_value;
    int64_t place[MB_FOURIER_HOST_COLUMNS];
    float factor[MB_FOURIER_HOST_COLUMNS];
    for (int64_t i = 0; i < count; i++) {
        const int64_t xs = x0 + i - wide / 2;
        const float weight = (float)(scale * (double)j->deapodise[xs < 0 ? -xs : xs]);
        place[i] = xs < 0 ? xs + grid : xs;
        factor[i] = xs % 2 ? -weight : weight;
    }
    for (int64_t y = 0; y < grid; y++) {
        const float *line = j->cells + 2 * (q * grid + y) * grid;
        for (int64_t i = 0; i < count; i++)
            memcpy(scratch + i * pitch + 2 * y, line + 2 * place[i], 8);
    }
    for (int64_t i = 0; i < count; i++)
        MB_TRY(transform(j, scratch + i * pitch));
    for (int64_t y = 0; y < high; y++) {
        const int64_t ys = y - high / 2;
        const float *from = scratch + 2 * (ys < 0 ? ys + grid : ys);
        const float weight = j->deapodise[ys < 0 ? -ys : ys],
                    signed_weight = ys % 2 ? -weight : weight;
        for (int64_t part = 0; part < 2 && z + part < j->g.rows; part++) {
            float *out = (float *)result->data + (rank == 3 ? (z + part) * result->strides[0] : 0) +
                         y * result->strides[rank - 2] + x0;
            for (int64_t i = 0; i < count; i++)
                out[i] = mb_parallel_inside(&j->g, j->g.y0 + y, j->g.x0 + x0 + i)
                             ? from[i * pitch + part] * (signed_weight * factor[i])
                             : outside;
        }
    }
    return MB_STATUS_OK;
}

mb_status mb_fourier_reconstruct_host(const mb_op_call *call)
{
    const mb_fourier_reconstruct_params *p = call->params;
    mb_parallel_geometry g = mb_fourier_geometry(p, &call->arrays[MB_FOURIER_SINO]->shape);
    const mb_fourier_layout layout = mb_fourier_planned(call, &g);
    float *response = call->slots[MB_FOURIER_RESPONSE];
    job j = {.call = call,
             .p = p,
             .g = g,
             .padded = layout.padded,
             .samples = layout.samples,
             .grid = layout.grid,
             .image = layout.image,
             .angles = call->slots[MB_FOURIER_ANGLES],
             .rays = call->slots[MB_FOURIER_RAYS],
             .starts = call->slots[MB_FOURIER_STARTS],
             .response = response,
             .deapodise = call->slots[MB_FOURIER_DEAPODISE],
             .keep = mb_fourier_keep(p, layout.padded),
             .polar = call->slots[MB_FOURIER_SAMPLES],
             .cells = call->slots[MB_FOURIER_CELLS]};
    int threads = call->device->facts.threads;
    const int64_t batch = layout.pairs;
    const int64_t blocks = (g.x1 - g.x0 + MB_FOURIER_HOST_COLUMNS - 1) / MB_FOURIER_HOST_COLUMNS;
    if (p->angles.count != g.angles)
        return mb_fail(MB_STATUS_ARGUMENT, "angles", "angles is missing: %lld numbers are needed",
                       (long long)g.angles);
    j.gridding = mb_fourier_gridding(p->accuracy, &g, j.samples, j.grid);
    mb_fourier_host_tables(call, p, &g, &j.gridding);
    const mb_fourier_host_threads work = {call, &j, call->slots[MB_FOURIER_ROWS],
                                          mb_fourier_host_pitch(j.padded, j.samples, j.grid)};
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (int64_t k = 0; k <= j.padded / 2; k++)
        mb_fourier_response(mb_ramp_filter_response(p->filter, p->cutoff, 1.0, j.padded, k), j.keep,
                            j.padded, k, &response[k], &response[j.padded / 2 + 1 + k]);
    for (j.first = 0; j.first < g.rows; j.first += 2 * batch) {
        const int64_t left = (g.rows - j.first + 1) / 2;
        j.pairs = left < batch ? left : batch;
        MB_TRY(mb_fourier_host_parallel(&work, g.angles, transform_ray));
        MB_TRY(mb_fourier_host_parallel(
            &work, (j.pairs + together(&j) - 1) / together(&j) * parts_of_pair(&j), make_part));
        MB_TRY(mb_fourier_host_parallel(&work, j.pairs * j.grid, transform_line));
        MB_TRY(mb_fourier_host_parallel(&work, j.pairs * blocks, make_columns));
        MB_TRY(mb_cancel_check());
    }
    return MB_STATUS_OK;
}
