/*
** The host kernel of fourier_reconstruct: FFTW and OpenMP.
** Rows: a thread pads, filters, crops, transforms and stores one pair of rows at a time.
** Gridding: a thread fills lines of the grid; the pairs are the vector, a sample's position and
** weight are found once for all of them. Lines are transformed along x at once, the columns that
** the image needs along y a few at a time.
*/
#include "ops/fourier_reconstruct_host.h"
#include "ops/multiversion.h"
#include <omp.h>
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

/* The response belongs to a real kernel: the upper half of the complex spectrum gets its conjugate. */
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

/* row[k] * phase[k] into lane `lane` of the ray's samples; frequency k - N/2 is at k, the lowest
** has no partner: 0. */
MB_MULTIVERSION
static void store(const float *row, const float *phase, float *to, int64_t samples, int64_t pairs)
{
    int64_t half = samples / 2;
    to[0] = to[1] = 0;
    for (int64_t i = 1; i < samples; i++) {
        int64_t k = i < half ? i + half : i - half;
        float re = row[2 * k], im = row[2 * k + 1];
        to[2 * pairs * i] = re * phase[2 * i] - im * phase[2 * i + 1];
        to[2 * pairs * i + 1] = re * phase[2 * i + 1] + im * phase[2 * i];
    }
}

/* Every pair of rows of ray s. */
static mb_status transform_ray(const job *j, int64_t s, float *row)
{
    float *phase = row + mb_fourier_host_row(j->padded, j->samples);
    const mb_op_call *call = j->call;
    const int64_t left = (j->padded - j->g.cols) / 2, half = j->samples / 2;
    const int64_t a = j->rays[s].angle;
    const mb_fourier_angle *angle = &j->angles[a];
    float *to = j->polar + 2 * s * j->samples * j->pairs;
    if (angle->weight == 0) {
        memset(to, 0, (size_t)(j->samples * j->pairs) * 8);
        return MB_STATUS_OK;
    }
    for (int64_t i = 0; i < j->samples; i++) {
        double turns = mb_fourier_turns(angle->axis, i - half, j->samples);
        phase[2 * i] = (float)(angle->weight * cos(2 * MB_GRIDDING_PI * turns));
        phase[2 * i + 1] = (float)(angle->weight * sin(2 * MB_GRIDDING_PI * turns));
    }
    for (int64_t q = 0; q < j->pairs; q++) {
        const float *even = sino_row(j, j->first + 2 * q, a);
        if (!even) {
            memset(row, 0, (size_t)j->samples * 8);
        } else {
            put_part(j, even, row, 0);
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
        }
        store(row, phase, to + 2 * q, j->samples, j->pairs);
    }
    return MB_STATUS_OK;
}

/* body(j, 0 ... count - 1, the thread's scratch), until one fails. */
static mb_status in_parallel(const job *j, int64_t count,
                             mb_status (*body)(const job *j, int64_t item, float *scratch))
{
    const int64_t pitch = mb_fourier_host_pitch(j->padded, j->samples, j->grid);
    mb_status status = MB_STATUS_OK;
    mb_error error;
    /* A worker's error record is its own; the first failure is moved to the caller's. */
#pragma omp parallel for schedule(dynamic, 4) num_threads(j->call->device->facts.threads)
    for (int64_t item = 0; item < count; item++) {
        float *scratch = (float *)j->call->slots[MB_FOURIER_ROWS] + pitch * omp_get_thread_num();
        mb_status seen, mine;
#pragma omp atomic read
        seen = status;
        if (seen != MB_STATUS_OK)
            continue;
        mine = mb_cancel_check();
        if (mine == MB_STATUS_OK)
            mine = body(j, item, scratch);
        if (mine != MB_STATUS_OK)
#pragma omp critical(mb_fourier_reconstruct)
            if (status == MB_STATUS_OK) {
                error = *mb_error_last();
#pragma omp atomic write
                status = mine;
            }
    }
    if (status != MB_STATUS_OK)
        mb_error_restore(&error);
    return status;
}

#define AT_ONCE 8 /* weights made as one vector; a ray rarely has more samples near a cell */

/* Weights of the samples k ... k + AT_ONCE - 1 of a ray in cell (x, y); those beyond the window's edge
** are rubbish that nobody takes. */
__attribute__((always_inline)) static inline void weights_at(const mb_gridding *g, double x,
                                                             double y, double cx, double sy, int k,
                                                             float *restrict weights)
{
    float tx[AT_ONCE], ty[AT_ONCE], wx[AT_ONCE], wy[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        float dx = (float)(x - (k + i) * cx), dy = (float)(y - (k + i) * sy);
        tx[i] = 1.0f + dx * dx * g->minus_inv_half2;
        ty[i] = 1.0f + dy * dy * g->minus_inv_half2;
        wx[i] = wy[i] = g->poly[g->degree];
    }
    for (int d = g->degree - 1; d >= 0; d--)
        for (int i = 0; i < AT_ONCE; i++) {
            wx[i] = wx[i] * tx[i] + g->poly[d];
            wy[i] = wy[i] * ty[i] + g->poly[d];
        }
    for (int i = 0; i < AT_ONCE; i++)
        weights[i] = wx[i] * wy[i];
}

#define RAYS_OF_A_SUM 32

/* The samples of every pair are one vector, `pairs` complex numbers. Adds image `image` of a cell, ray
** by ray. Near the middle of the grid all rays meet, and their samples are of one sign: sums of
** RAYS_OF_A_SUM rays are added up in double. */
#define DEFINE_ADD_CELL(pairs)                                                                     \
    typedef float vector_##pairs __attribute__((vector_size(8 * (pairs)), aligned(8)));            \
    typedef double wide_##pairs __attribute__((vector_size(16 * (pairs)), aligned(8)));            \
    __attribute__((always_inline)) static inline void add_cell_##pairs(                            \
        const job *j, float x, float y, int low, int high, double *to)                             \
    {                                                                                              \
        const mb_gridding *g = &j->gridding;                                                       \
        const int64_t samples = j->samples, half = samples / 2;                                    \
        wide_##pairs total = *(const wide_##pairs *)(const void *)to;                              \
        vector_##pairs sum = {0};                                                                  \
        for (int s = low; s < high; s++) {                                                         \
            if ((s - low) % RAYS_OF_A_SUM == RAYS_OF_A_SUM - 1) {                                  \
                total += __builtin_convertvector(sum, wide_##pairs);                               \
                sum = (vector_##pairs){0};                                                         \
            }                                                                                      \
            int ray = s < 0 ? s + g->rays : s >= g->rays ? s - g->rays : s, first, last;           \
            const mb_gridding_ray *r = &j->rays[ray];                                              \
            const double cx = (double)r->cx + (double)r->cx_low,                                   \
                         sy = (double)r->sy + (double)r->sy_low;                                   \
            mb_gridding_span(g, r->inv_cx, r->inv_sy, x, y, &first, &last);                        \
            for (int k = first; k <= last; k += AT_ONCE) {                                         \
                const vector_##pairs *value =                                                      \
                    (const vector_##pairs *)(const void *)(j->polar +                              \
                                                           ((int64_t)ray * samples + k + half) *   \
                                                               (2 * (pairs)));                     \
                const int count = last - k < AT_ONCE - 1 ? last - k + 1 : AT_ONCE;                 \
                float weights[AT_ONCE];                                                            \
                weights_at(g, x, y, cx, sy, k, weights);                                           \
                for (int i = 0; i < count; i++)                                                    \
                    sum += weights[i] * value[i];                                                  \
            }                                                                                      \
        }                                                                                          \
        *(wide_##pairs *)(void *)to = total + __builtin_convertvector(sum, wide_##pairs);          \
    }

DEFINE_ADD_CELL(1)
DEFINE_ADD_CELL(2)
DEFINE_ADD_CELL(4)
DEFINE_ADD_CELL(8)

/* One line of the grid of every pair. */
MB_MULTIVERSION
static void grid_line(const job *j, int64_t line)
{
    const mb_gridding *g = &j->gridding;
    const int half = (int)(j->grid / 2), cell_y = (int)line - half;
    for (int cell_x = -half; cell_x < half; cell_x++) {
        double sums[2 * MB_FOURIER_PAIRS_MOST] = {0};
        for (int image = 0; image < 3; image++) {
            float x = (float)cell_x, y = (float)cell_y;
            int low, high;
            if (!mb_gridding_image(g, image, &x, &y))
                continue;
            mb_gridding_buckets(g, x, y, &low, &high);
            low = mb_gridding_start(g, j->starts, low);
            high = mb_gridding_start(g, j->starts, high);
            switch (j->pairs) {
            case 1: add_cell_1(j, x, y, low, high, sums); break;
            case 2: add_cell_2(j, x, y, low, high, sums); break;
            case 4: add_cell_4(j, x, y, low, high, sums); break;
            default: add_cell_8(j, x, y, low, high, sums); break;
            }
        }
        for (int64_t q = 0; q < j->pairs; q++) {
            float *cell = j->cells + 2 * ((q * j->grid + line) * j->grid + cell_x + half);
            cell[0] = (float)sums[2 * q];
            cell[1] = (float)sums[2 * q + 1];
        }
    }
}

static mb_status transform_line(const job *j, float *line)
{
    return mb_fft_exec(j->call->device, j->call->ffts[j->image], line, line,
                       j->call->slots[MB_FOURIER_WORK + j->image]);
}

/* A line of every pair, transformed along x while it is in the cache. */
static mb_status make_line(const job *j, int64_t line, float *scratch)
{
    (void)scratch;
    grid_line(j, line);
    for (int64_t q = 0; q < j->pairs; q++)
        MB_TRY(transform_line(j, j->cells + 2 * (q * j->grid + line) * j->grid));
    return MB_STATUS_OK;
}

/* Pixels of up to MB_FOURIER_HOST_COLUMNS columns of a pair: transformed along y in scratch. */
static mb_status make_columns(const job *j, int64_t item, float *scratch)
{
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
        MB_TRY(transform_line(j, scratch + i * pitch));
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
    mb_fourier_tables(p, &g, &j.gridding, false, call->slots[MB_FOURIER_ANGLES],
                      call->slots[MB_FOURIER_RAYS], call->slots[MB_FOURIER_STARTS],
                      call->slots[MB_FOURIER_DEAPODISE]);
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (int64_t k = 0; k <= j.padded / 2; k++)
        mb_fourier_response(mb_ramp_filter_response(p->filter, p->cutoff, 1.0, j.padded, k), j.keep,
                            j.padded, k, &response[k], &response[j.padded / 2 + 1 + k]);
    for (j.first = 0; j.first < g.rows; j.first += 2 * batch) {
        const int64_t left = (g.rows - j.first + 1) / 2;
        j.pairs = mb_fourier_lanes(g.rows, j.first, batch);
        MB_TRY(in_parallel(&j, g.angles, transform_ray));
        MB_TRY(in_parallel(&j, j.grid, make_line));
        MB_TRY(in_parallel(&j, (left < j.pairs ? left : j.pairs) * blocks, make_columns));
        MB_TRY(mb_cancel_check());
    }
    return MB_STATUS_OK;
}
