/*
** normal_kernel: the spectrum of the point spread of A'A for angles of parallel beams. Sums and
** transforms are in double precision. On the host a thread makes rows of the kernel, each
** transformed along x at once, and then columns; rows of negative y are those of positive y,
** conjugated.
*/
#include "ops/iterative/op_normal_kernel.h"
#include "core/multiversion.h"
#include "ops/iterative/double_fft.h"
#include "ops/iterative/normal_grid.h"
#include <math.h>
#include <omp.h>
#include <string.h>

#define PARAMS mb_normal_kernel_params

static const mb_op_arg args[] = {
    MB_VECTOR(angles, MB_ANY, "rad", "one per projection, any order"),
    MB_INT_REQUIRED(cols, 1, 1 << 20, 0, "px", "width of the detector"),
    MB_NORMAL_SIZE_ARG,
    {.name = "weights",
     .kind = MB_ARG_VECTOR,
     .rank_max = 2,
     .offset = offsetof(PARAMS, weights),
     .doc = "of the squares, one per angle: the operator is A'WA; default 1"},
    MB_INT(period, 0, 1 << 26, 0, "px",
           "samples of a padded row of the detector, even; 0: twice the width"),
    MB_FLOAT(scale, MB_ANY, 1, NULL, "factor on the sum over angles"),
    MB_NORMAL_PADDED_ARG,
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 2, "spectrum (px / 2 + 1, py)")};

static const char *const samples[] = {
    "{params = {angles = {0, 0.5, 1, 1.6, 2.2}, cols = 9}}",
    "{params = {angles = {0.3}, cols = 13, size = {5, 30}, weights = 2, period = 14}}",
    "{params = {angles = {0, 1.57079632679, 4}, cols = 8, size = 11, weights = {1, 0.5, 0}, scale "
    "= "
    "0.1, padded = {30, 42}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_normal_kernel_params *p = params;
    const int64_t period = mb_normal_period(p);
    int64_t grid[2];
    if (p->weights.count && p->angles.count && p->weights.count != p->angles.count)
        return mb_fail(MB_STATUS_ARGUMENT, "weights",
                       "%lld weights were given for %lld angles; a weight is that of a whole "
                       "projection: with weights of single rays A'WA is no convolution, and the "
                       "projector and its adjoint are needed",
                       (long long)p->weights.count, (long long)p->angles.count);
    if (period % 2 || period < p->cols)
        return mb_fail(MB_STATUS_ARGUMENT, "period",
                       "period is %lld; it must be even and at least the width %lld, or 0 for "
                       "twice the width",
                       (long long)period, (long long)p->cols);
    MB_TRY(mb_normal_check_grid(&p->size, &p->padded, p->cols, grid));
    arrays[MB_NORMAL_KERNEL_RESULT] = (mb_spec){true, MB_F32, {2, {grid[1] / 2 + 1, grid[0]}}};
    return MB_STATUS_OK;
}

/* ---- plan ---- */

/* Complex numbers of a thread: two lines of the longer axis. */
static uint64_t line_of(const int64_t grid[2])
{
    return 2 * (uint64_t)(grid[0] > grid[1] ? grid[0] : grid[1]);
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_normal_kernel_params *p = params;
    const mb_device_facts *facts = &planner->device->facts;
    const bool host = facts->compute_capability == 0;
    const uint64_t half = (uint64_t)arrays[MB_NORMAL_KERNEL_RESULT].shape.dims[0];
    int64_t grid[2];
    mb_normal_grid(&p->size, &p->padded, p->cols, grid);
    const uint64_t below = (uint64_t)grid[0] / 2, across = (uint64_t)grid[1];
    mb_planner_slot(planner, "angles",
                    mb_bytes_mul((uint64_t)p->angles.count, sizeof(mb_normal_angle)), 0, 2);
    mb_planner_slot(planner, "roots", host ? 16 * (uint64_t)(grid[0] + grid[1]) : 0, 0, 2);
    mb_planner_slot(planner, "values", host ? 0 : mb_bytes_mul(8 * below, across), 0, 1);
    mb_planner_slot(planner, "rows", mb_bytes_mul(16 * half, below), 1, 2);
    mb_planner_slot(planner, "lines",
                    host ? mb_bytes_mul(16 * line_of(grid), (uint64_t)facts->threads) : 0, 0, 2);
}

/* ---- the host's kernel ---- */

typedef struct job {
    const mb_normal_kernel_params *p;
    int64_t grid[2];
    double period;
    const mb_normal_angle *angles;
    const mb_complex *roots[2]; /* of the axes y and x */
    mb_complex *rows;
    const mb_array *result;
} job;

enum { LANES = 8, TURNS = 256 }; /* places side by side, and turns before sines are made anew */

/* Places of up to LANES * TURNS of a line, all far from the poles: sin(a u) / sin(b u) by turning
** both numerator and denominator from place to place. */
MB_MULTIVERSION
static void add_turns(double *row, int64_t count, double u, double step, double period,
                      double factor)
{
    const double b = MB_NORMAL_PI / period, a = b * (period - 1);
    const double turn[4] = {cos(a * LANES * step), sin(a * LANES * step), cos(b * LANES * step),
                            sin(b * LANES * step)};
    double c1[LANES], s1[LANES], c2[LANES], s2[LANES];
    for (int l = 0; l < LANES; l++) {
        c1[l] = cos(a * (u + l * step));
        s1[l] = sin(a * (u + l * step));
        c2[l] = cos(b * (u + l * step));
        s2[l] = sin(b * (u + l * step));
    }
    for (int64_t i = 0; i < count; i += LANES) {
        double part[LANES];
        for (int l = 0; l < LANES; l++) {
            const double x1 = c1[l], y1 = s1[l], x2 = c2[l], y2 = s2[l];
            part[l] = factor * y1 / y2;
            c1[l] = x1 * turn[0] - y1 * turn[1];
            s1[l] = x1 * turn[1] + y1 * turn[0];
            c2[l] = x2 * turn[2] - y2 * turn[3];
            s2[l] = x2 * turn[3] + y2 * turn[2];
        }
        if (count - i >= LANES)
            for (int l = 0; l < LANES; l++)
                row[i + l] += part[l];
        else
            for (int64_t l = 0; l < count - i; l++)
                row[i + l] += part[l];
    }
}

static int64_t place(double at, int64_t least, int64_t most)
{
    return at <= (double)least ? least : at >= (double)most ? most : (int64_t)at;
}

/* Adds weight D(u + i step) to place i of a row. Near a pole, where sin(pi u / N) is nearly 0, each
** place has sines of its own. */
static void add_angle(double *row, int64_t count, double u, double step, double period,
                      double weight)
{
    const double last = u + step * (double)(count - 1), low = u < last ? u : last,
                 high = u < last ? last : u;
    const int64_t first_pole = (int64_t)ceil((low - 1) / period),
                  last_pole = (int64_t)floor((high + 1) / period);
    int64_t at = 0;
    for (int64_t m = 0; m <= last_pole - first_pole && at < count; m++) {
        const double pole = period * (double)(step < 0 ? last_pole - m : first_pole + m);
        const double left = (pole - u - copysign(1, step)) / step,
                     right = (pole - u + copysign(1, step)) / step;
        const bool all = step == 0; /* the row is parallel to the detector's rays */
        const int64_t begin = all ? 0 : place(floor(left), at, count),
                      end = all ? count : place(ceil(right) + 1, begin, count);
        for (; at < begin; at += LANES * TURNS)
            add_turns(row + at, begin - at < LANES * TURNS ? begin - at : LANES * TURNS,
                      u + step * (double)at, step, period, weight / period);
        for (at = begin; at < end; at++)
            row[at] += weight * mb_normal_sinc(u + step * (double)at, period);
    }
    for (; at < count; at += LANES * TURNS)
        add_turns(row + at, count - at < LANES * TURNS ? count - at : LANES * TURNS,
                  u + step * (double)at, step, period, weight / period);
}

/* Row y of the kernel, transformed along x, into column y of `rows`. */
static void make_row(const job *j, int64_t y, mb_complex *line)
{
    const int64_t n = j->grid[1], half = n / 2, count = n - 1; /* displacements 1 - half ... */
    mb_complex *from = line, *to = line + n;
    double *row = (double *)(void *)to;
    memset(row, 0, (size_t)count * sizeof *row);
    for (int64_t a = 0; a < j->p->angles.count; a++) {
        const mb_normal_angle *t = &j->angles[a];
        add_angle(row, count, (double)(1 - half) * t->cosine - (double)y * t->sine, t->cosine,
                  j->period, t->weight);
    }
    memset(from, 0, (size_t)n * sizeof *from);
    for (int64_t i = 0; i < count; i++) {
        const int64_t x = i + 1 - half;
        from[x < 0 ? x + n : x].re = row[i];
    }
    mb_double_fft(n, j->roots[1], from, to);
    for (int64_t k = 0; k <= half; k++)
        j->rows[k * (j->grid[0] / 2) + y] = to[k];
}

static void make_column(const job *j, int64_t k, mb_complex *line)
{
    const int64_t n = j->grid[0], half = n / 2;
    const mb_complex *rows = j->rows + k * half;
    mb_complex *from = line, *to = line + n;
    float *out = (float *)j->result->data + k * j->result->strides[0];
    from[0] = rows[0];
    from[half] = (mb_complex){0, 0};
    for (int64_t y = 1; y < half; y++) {
        from[y] = rows[y];
        from[n - y] = (mb_complex){rows[y].re, -rows[y].im};
    }
    mb_double_fft(n, j->roots[0], from, to);
    for (int64_t i = 0; i < n; i++)
        out[i * j->result->strides[1]] = (float)(j->p->scale * to[i].re);
}

static void each(const job *j, const mb_op_call *call, int64_t count,
                 void (*make)(const job *j, int64_t item, mb_complex *line))
{
    mb_complex *lines = call->slots[MB_NORMAL_KERNEL_LINES];
    const int64_t pitch = (int64_t)line_of(j->grid);
#pragma omp parallel for schedule(dynamic) num_threads(call->device->facts.threads)
    for (int64_t item = 0; item < count; item++)
        if (!mb_cancelled())
            make(j, item, lines + pitch * omp_get_thread_num());
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_normal_kernel_params *p = call->params;
    mb_complex *roots = call->slots[MB_NORMAL_KERNEL_ROOTS];
    mb_normal_angle *angles = call->slots[MB_NORMAL_KERNEL_ANGLES];
    job j = {.p = p,
             .period = (double)mb_normal_period(p),
             .angles = angles,
             .rows = call->slots[MB_NORMAL_KERNEL_ROWS],
             .result = call->arrays[MB_NORMAL_KERNEL_RESULT]};
    mb_normal_grid(&p->size, &p->padded, p->cols, j.grid);
    if (p->angles.count == 0)
        return mb_fail(MB_STATUS_ARGUMENT, "angles", "angles is empty; give at least one");
    for (int64_t a = 0; a < p->angles.count; a++)
        angles[a] = mb_normal_angle_of(p, a);
    for (int i = 0; i < 2; i++) {
        j.roots[i] = roots;
        mb_double_fft_roots(j.grid[i], roots);
        roots += j.grid[i];
    }
    each(&j, call, j.grid[0] / 2, make_row);
    each(&j, call, j.grid[1] / 2 + 1, make_column);
    return MB_STATUS_OK;
}

const mb_op mb_op_normal_kernel = {
    .name = "normal_kernel",
    .summary = "Spectrum of the normal operator A'A of parallel beams, for normal_operator.",
    .doc =
        "The normal operator of least squares over parallel beams is a convolution: with "
        "projections whose rows are interpolated by their trigonometric polynomial (as in "
        "fourier_reconstruct, without its Nyquist term) and padded with zeros to `period` samples, "
        "A'A spreads a pixel by h(dx, dy) = the sum over angles of D(dx cos t - dy sin t), D(u) = "
        "sin(pi u (N - 1) / N) / (N sin(pi u / N)), N = period. Center and shifts do not enter: "
        "they are part of the right-hand side A'b alone, which must come from the same model and "
        "period.\n"
        "The result is the real spectrum of h on a grid of py x px pixels, made in double "
        "precision: frequencies kx = 0 to px / 2 along the first axis and all ky along the second; "
        "the rest follows from h(-dx, -dy) = h(dx, dy). It serves slices of any number and of any "
        "extent up to half the grid, and is made once for a set of angles. By default the grid's "
        "extents are the next 2^k or 3 * 2^k that are twice those of the slice. scale multiplies "
        "it: give the scale of the adjoint that makes the right-hand side.\n"
        "weights, one per angle, make it A'WA. Weights of single rays would make it no "
        "convolution: use the projector and its adjoint for these. On the host it takes about 1 ns "
        "for each angle and place of half the grid on one thread.",
    .reference = "A. H. Delaney and Y. Bresler, IEEE Trans. Image Process. 5 (1996) 740; J. A. "
                 "Fessler et al., IEEE Trans. Signal Process. 53 (2005) 3393",
    MB_OP_PLANNED_PARTS,
    .strides = MB_STRIDES_CONTIGUOUS,
    .uncut = "it has no array that is cut",
    .tolerance = 1e-6, /* sums in double, rounded once */
};
