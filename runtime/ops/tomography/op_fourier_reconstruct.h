/*
** fourier_reconstruct: what the host and the CUDA kernel share. Arrays: sino (in), result (out).
** Geometry: parallel_geometry.h. Gridding: fourier_gridding.h. Sizes: mb_fourier_layout_of.
**
** Two slices make one complex row and one complex grid; a batch of 1 to 8 pairs goes through
** together, so that CUDA's gridder finds each sample once for all. Per batch:
**   1 pad to P, difference, transform, multiply by the response, back      [pair][angle][P]
**   2 crop to cols, extend by zeros to N samples                           [pair][angle][N]
**   3 transform
**   4 times weight and exp(2 pi i k c_a / N), in the order of sorted rays
**   5 spread onto the grid, frequency 0 in its middle                      [pair][G][G]
**   6 inverse transform
**   7 crop, divide by the window's transform, undo (-1)^(x + y) and the pairing
** The samples of step 4 are [pair][ray][k + N/2] on the host, and [pair / 2][ray][k + N/2][pair %
** 2] on CUDA ([ray][k + N/2] for one pair). With xs and ys counted from pixel floor(side / 2) of
** the region of interest a pixel reads u = xs cos t - ys sin t + c_a, c_a = center + shift + hx cos
** t - hy sin t, where (hx, -hy) is that pixel's place. So a small region takes a small grid. A
** transform's rounding errors are spread evenly over the frequencies, a smooth row is not, and a
** ramp amplifies them: to 3e-6 of a phantom's slice at 2048 columns, 4e-6 at 4096. So in exact mode
** rows are differenced first, with one rounding: d_i = p_i - keep p_(i-1), around the end of the
** padded row; the response is ramp_filter's divided by 1 - keep exp(-2 pi i k / P), which amplifies
** little. keep < 1, for the ramp is not 0 at frequency 0. In fast mode, and with filter none, keep
** = 0. The N-periodic row must not repeat inside the image: N covers what lies between the row and
** the farthest pixel. On the host steps 1 to 4 go row by row, step 6 line by line along x, then
** with step 7 a few columns at a time along y, each in a thread's own `rows` slot. On CUDA steps 1
** to 4 are one kernel where P is a power of two that it takes (`fused`), otherwise each goes over
** the whole batch; steps 6 and 7 are a kernel along y and one along x, on a grid [pair][x][y] and
** lines [pair][y][x], where G is a size that they take (`own`). All of them need a block's shared
** memory for their rows or columns. Other transforms are the library's, one pair at a time. The
** last batch may have fewer pairs: the host grids so many, CUDA mb_fourier_lanes.
** A pair does not depend on the others of the call: two slices are a packet. A last slice without a
** partner is real, so that its grid at -k is the conjugate of that at k: where `own`, CUDA makes
** half of the grid, one of (x, -y) and (-x, y), and transforms two lines of the slice as a pair.
*/
#ifndef MB_OPS_OP_FOURIER_RECONSTRUCT_H
#define MB_OPS_OP_FOURIER_RECONSTRUCT_H

#include "ops/tomography/fourier_gridding.h"
#include "ops/tomography/op_ramp_filter.h"
#include "ops/tomography/parallel_image.h"

typedef enum mb_fourier_accuracy { MB_FOURIER_FAST, MB_FOURIER_EXACT } mb_fourier_accuracy;

typedef struct mb_fourier_reconstruct_params {
    mb_vector angles;  /* rad; absent in estimates */
    double center;     /* px; NAN = (cols - 1) / 2 */
    mb_vector shifts;  /* px, one per angle, or absent */
    mb_vector weights; /* one per angle, or absent = 1 */
    mb_vector size;    /* {ny, nx}, {n} or absent = cols x cols */
    mb_vector roi;     /* {y0, y1, x0, x1} or absent */
    double circle, circle_value;
    double scale; /* NAN = pi / angles */
    int filter;
    double cutoff;
    int padding;
    int64_t pad_width;
    int accuracy;
    int64_t pairs;  /* 0 = auto */
    int64_t period; /* 0 = auto */
} mb_fourier_reconstruct_params;

typedef struct mb_fourier_angle {
    double axis;   /* c_a */
    double weight; /* 0: the row does not meet the image */
} mb_fourier_angle;

enum { MB_FOURIER_SINO, MB_FOURIER_RESULT };
enum { MB_FOURIER_FORWARD, MB_FOURIER_BACKWARD, MB_FOURIER_SAMPLE }; /* FFTs, if !fused; then: */
enum {
    MB_FOURIER_ANGLES,    /* mb_fourier_angle[angles] */
    MB_FOURIER_RAYS,      /* mb_gridding_ray[angles], sorted */
    MB_FOURIER_STARTS,    /* int32[buckets + 1] */
    MB_FOURIER_DEAPODISE, /* float[largest side / 2 + 1], scale / N not included */
    MB_FOURIER_TABLES,    /* how many these are; the numbers of other slots begin with it */
    MB_FOURIER_RESPONSE = MB_FOURIER_TABLES, /* float[2][P / 2 + 1]: real parts, imaginary parts */
    MB_FOURIER_ROWS, /* complex [pair][angle][P]; host: mb_fourier_host_pitch a thread; fused: 0 */
    MB_FOURIER_SPECTRA, /* complex [pair][angle][N]; host and fused: 0 bytes */
    MB_FOURIER_SAMPLES, /* complex, N * angles * pairs */
    MB_FOURIER_CELLS,   /* complex [pair][G][G] */
    MB_FOURIER_LINES,   /* complex [pair][y][G]; if !own: 0 bytes */
    MB_FOURIER_WORK     /* of the first FFT, and so on */
};

#define MB_FOURIER_FAST_DEGREE 8 /* of the polynomial of the window */
#define MB_FOURIER_PAIRS_MOST 8
#define MB_FOURIER_HOST_BYTES (UINT64_C(512) << 20)

static inline mb_ramp_filter_params mb_fourier_filter(const mb_fourier_reconstruct_params *p)
{
    mb_ramp_filter_params filter = {p->filter, p->cutoff, p->padding, p->pad_width,
                                    1.0,       {NULL, 0}, {NULL, 0}};
    return filter;
}

/* `keep` of the head comment, a float. */
static inline double mb_fourier_keep(const mb_fourier_reconstruct_params *p, int64_t padded)
{
    int places = 0;
    while (places < 24 && (int64_t)1 << places < padded)
        places++;
    return p->accuracy == MB_FOURIER_FAST || p->filter == MB_RAMP_NONE ? 0.0
                                                                       : 1.0 - ldexp(1.0, -places);
}

/* ramp_filter's response at k, 0 <= k <= P / 2, for differenced rows. */
MB_BOTH static inline void mb_fourier_response(float response, double keep, int64_t padded,
                                               int64_t k, float *re, float *im)
{
    const double half = MB_GRIDDING_PI * (double)k / (double)padded, s = sin(half);
    const double x = 1.0 - keep + 2.0 * keep * s * s, y = keep * sin(2.0 * half);
    const double factor = response / (x * x + y * y);
    *re = (float)(factor * x);
    *im = (float)(-factor * y);
}

/* Everything resolved from the parameters (which infer has checked) and the sinogram's shape. */
static inline mb_parallel_geometry mb_fourier_geometry(const mb_fourier_reconstruct_params *p,
                                                       const mb_shape *sino)
{
    return mb_parallel_image_geometry(sino, p->center, &p->size, &p->roi, p->circle, p->scale);
}

/* The larger side of the region that is made. */
static inline int64_t mb_fourier_side(const mb_parallel_geometry *g)
{
    int64_t high = g->y1 - g->y0, wide = g->x1 - g->x0;
    return high > wide ? high : wide;
}

/* Distance from the axis of the farthest pixel that is made. */
MB_BOTH static inline double mb_fourier_radius(const mb_parallel_geometry *g)
{
    double x = 0.5 * (double)(g->nx - 1), y = 0.5 * (double)(g->ny - 1);
    double dx = fmax(fabs((double)g->x0 - x), fabs((double)(g->x1 - 1) - x)),
           dy = fmax(fabs((double)g->y0 - y), fabs((double)(g->y1 - 1) - y)),
           corner = sqrt(dx * dx + dy * dy);
    double mask = g->radius2 < 0 ? corner : sqrt(g->radius2);
    return mask < corner ? mask : corner;
}

/* Does the row of an axis at `axis` meet the image at all? */
MB_BOTH static inline int mb_fourier_meets(const mb_parallel_geometry *g, double axis)
{
    double radius = mb_fourier_radius(g);
    return axis + radius > -1.0 && axis - radius < (double)g->cols;
}

/* N as given, or the smallest even one for which no pixel sees the row's repetitions. */
static inline int64_t mb_fourier_least(const mb_fourier_reconstruct_params *p,
                                       const mb_parallel_geometry *g)
{
    if (p->period > 0)
        return p->period;
    double radius = mb_fourier_radius(g), need = (double)g->cols;
    for (int64_t a = 0; a < (p->shifts.count ? p->shifts.count : 1); a++) {
        double axis = g->center + (p->shifts.count ? p->shifts.values[a] : 0.0);
        if (!mb_fourier_meets(g, axis))
            continue;
        need = fmax(need, fmax((double)g->cols - 1 + radius - axis, axis + radius));
    }
    return ((int64_t)ceil(need - 1e-6) + 1) / 2 * 2;
}

/* CUDA: transforms of m T points by T threads of a block, T a power of two. */
#define MB_FOURIER_THREADS_LEAST 32
#define MB_FOURIER_THREADS_MOST 1024
/* Columns that a block of the kernel along y takes, with so many threads each: so many that what it
** writes is whole sectors, as far as they fit. */
#define MB_FOURIER_COLUMNS(threads)                                                                \
    (4 * (threads) <= MB_FOURIER_THREADS_MOST ? 4 : MB_FOURIER_THREADS_MOST / (threads))

/* Smallest such length >= least; its T. 0 where there is none. */
static inline int64_t mb_fourier_length(int64_t least, int64_t threads_least, int64_t threads_most,
                                        int64_t *threads)
{
    static const signed char m[] = {5, 6, 7, 8, 10, 12, 14, 16};
    int64_t best = 0;
    for (int64_t t = threads_least; t <= threads_most; t *= 2)
        for (int i = 0; i < (int)sizeof m; i++)
            if (m[i] * t >= least && (best == 0 || m[i] * t < best)) {
                best = m[i] * t;
                *threads = t;
            }
    return best;
}

/* N where one kernel can take the rows: P is a power of two, for P / 16 threads. 0 where it cannot.
** The host uses the same N, because results depend on it. One that is given is taken as it is. */
static inline int64_t mb_fourier_fused_samples(const mb_fourier_reconstruct_params *p,
                                               const mb_parallel_geometry *g, int64_t padded)
{
    const int64_t least = mb_fourier_least(p, g);
    int64_t threads = padded / 16;
    if ((padded & (padded - 1)) != 0 || threads < MB_FOURIER_THREADS_LEAST ||
        threads > MB_FOURIER_THREADS_MOST || least <= 4 * threads)
        return 0;
    const int64_t samples = mb_fourier_length(least, threads, threads, &threads);
    return p->period > 0 && samples != least ? 0 : samples;
}

/* N for the FFT library, where mb_fourier_fused_samples is 0. */
static inline int64_t mb_fourier_library_samples(const mb_fourier_reconstruct_params *p,
                                                 const mb_parallel_geometry *g)
{
    return p->period > 0 ? p->period : mb_fft_good_size(mb_fourier_least(p, g));
}

/* Is the period, if it is given, even and no shorter than the row? */
mb_status mb_fourier_check_period(int64_t period, int64_t cols);

/* Smallest grid for the accuracy: sigma times the larger side. With a window of 7 cells sigma 5/4
** costs 2e-5 in the middle of an image and 7e-5 over the square, sigma 2 less than float does. */
static inline int64_t mb_fourier_grid(int accuracy, const mb_parallel_geometry *g)
{
    int64_t side = mb_fourier_side(g);
    int64_t least = accuracy == MB_FOURIER_FAST ? (5 * side + 3) / 4 : 2 * side;
    return least < 40 ? 40 : least;
}

static inline mb_gridding mb_fourier_gridding(int accuracy, const mb_parallel_geometry *g,
                                              int64_t samples, int64_t grid)
{
    bool fast = accuracy == MB_FOURIER_FAST;
    return mb_gridding_make(mb_fourier_side(g), samples, grid, g->angles, fast ? 1.5 : 2.0, 7,
                            fast ? MB_FOURIER_FAST_DEGREE : MB_GRIDDING_DEGREE);
}

/* Pairs that make a batch: 1, 2, 4 or 8, no more than there are and than fit in `limit` bytes. */
static inline int64_t mb_fourier_pairs(int64_t rows, int64_t most, uint64_t pair_bytes,
                                       uint64_t limit)
{
    int64_t pairs = 1;
    if (most < 1 || most > MB_FOURIER_PAIRS_MOST)
        most = MB_FOURIER_PAIRS_MOST;
    while (2 * pairs <= most && 2 * pairs < rows && (uint64_t)(2 * pairs) <= limit / pair_bytes)
        pairs *= 2;
    return pairs;
}

typedef struct mb_fourier_layout {
    int64_t padded, samples, grid; /* P, N, G */
    int64_t pairs;                 /* of a batch */
    int64_t threads;               /* of the kernels of G points */
    bool fused, own;               /* CUDA: see above */
    int image;                     /* FFT of the grid, if !own */
} mb_fourier_layout;

/* Sizes that no kernel takes are the caller's, by the FFT library: `samples` and `grid` where 0;
** mb_fourier_batch comes after that. */
static inline mb_fourier_layout mb_fourier_layout_of(const mb_fourier_reconstruct_params *p,
                                                     const mb_parallel_geometry *g,
                                                     const mb_device_facts *facts)
{
    const mb_ramp_filter_params filter = mb_fourier_filter(p);
    const bool cuda = facts->compute_capability > 0;
    mb_fourier_layout l = {0};
    l.padded = mb_ramp_filter_padded(&filter, g->cols);
    l.samples = mb_fourier_fused_samples(p, g, l.padded);
    /* The host takes the same grid: two grids differ by the error of both. */
    l.grid = mb_fourier_length(mb_fourier_grid(p->accuracy, g), MB_FOURIER_THREADS_LEAST,
                               MB_FOURIER_THREADS_MOST, &l.threads);
    l.fused = cuda && l.samples > 0 && mb_fused_fft_fits(facts, l.padded, 1);
    l.own =
        cuda && l.grid > 0 && mb_fused_fft_fits(facts, l.grid, (int)MB_FOURIER_COLUMNS(l.threads));
    l.image = l.fused ? 0 : MB_FOURIER_SAMPLE + 1;
    return l;
}

/* Is the last slice of so many made by itself? */
static inline bool mb_fourier_lone(const mb_fourier_layout *l, int64_t rows)
{
    return l->own && rows % 2 == 1;
}

static inline void mb_fourier_batch(const mb_fourier_reconstruct_params *p,
                                    const mb_parallel_geometry *g, const mb_device_facts *facts,
                                    mb_fourier_layout *l)
{
    const bool cuda = facts->compute_capability > 0;
    /* More bytes of a pair than are ever in use at once. */
    const uint64_t row = (uint64_t)(cuda && !l->fused ? l->padded + 2 * l->samples : l->samples);
    const uint64_t lines = (uint64_t)(l->own ? l->grid + g->y1 - g->y0 : l->grid);
    const uint64_t pair_bytes = 8 * ((uint64_t)g->angles * row + (uint64_t)l->grid * lines);
    const int64_t rows = mb_fourier_lone(l, g->rows) ? g->rows - 1 : g->rows;
    l->pairs = mb_fourier_pairs(rows, p->pairs, pair_bytes,
                                cuda ? facts->total_bytes / 8 : MB_FOURIER_HOST_BYTES);
}

/* The layout that was planned. */
static inline mb_fourier_layout mb_fourier_planned(const mb_op_call *call,
                                                   const mb_parallel_geometry *g)
{
    const mb_fourier_reconstruct_params *p = (const mb_fourier_reconstruct_params *)call->params;
    const mb_device_facts *facts = &call->device->facts;
    mb_fourier_layout l = mb_fourier_layout_of(p, g, facts);
    if (l.samples == 0)
        l.samples = call->ffts[MB_FOURIER_SAMPLE]->desc.dims[0];
    if (!l.own)
        l.grid = call->ffts[l.image]->desc.dims[0];
    mb_fourier_batch(p, g, facts, &l);
    return l;
}

/* Pairs that are gridded in the batch from slice `first` on: fewer in a last, incomplete one. */
static inline int64_t mb_fourier_lanes(int64_t rows, int64_t first, int64_t pairs)
{
    int64_t lanes = 1;
    while (lanes < pairs && 2 * lanes < rows - first)
        lanes *= 2;
    return lanes;
}

/* The slots before MB_FOURIER_TABLES, which have the same numbers in fourier_project. */
static inline void mb_fourier_plan_tables(mb_planner *planner, const mb_parallel_geometry *g,
                                          int last)
{
    const uint64_t angles = (uint64_t)g->angles;
    mb_planner_slot(planner, "angles", mb_bytes_mul(angles, sizeof(mb_fourier_angle)), 0, last);
    mb_planner_slot(planner, "rays", mb_bytes_mul(angles, sizeof(mb_gridding_ray)), 0, last);
    mb_planner_slot(planner, "starts", mb_bytes_mul(4 * angles + 1, 4), 0, last);
    mb_planner_slot(planner, "deapodise", 4 * ((uint64_t)mb_fourier_side(g) / 2 + 1), 0, last);
}

/* c_a of the head comment. */
MB_BOTH static inline double mb_fourier_axis(const mb_parallel_geometry *g, double angle_rad,
                                             double shift_px)
{
    const int64_t x = g->x0 + (g->x1 - g->x0) / 2, y = g->y0 + (g->y1 - g->y0) / 2;
    double hx = (double)x - 0.5 * (double)(g->nx - 1), hy = (double)y - 0.5 * (double)(g->ny - 1);
    return g->center + shift_px + hx * cos(angle_rad) - hy * sin(angle_rad);
}

MB_BOTH static inline mb_fourier_angle
mb_fourier_angle_of(const mb_parallel_geometry *g, double angle_rad, double shift_px, double weight)
{
    mb_fourier_angle a;
    a.axis = mb_fourier_axis(g, angle_rad, shift_px);
    a.weight = mb_fourier_meets(g, g->center + shift_px) ? weight : 0.0;
    return a;
}

/* The grid's y runs down: the ray of angle t points along (cos t, -sin t), at -t. CUDA exchanges x
** and y of the grid. */
MB_BOTH static inline double mb_fourier_ray_turn(bool exchange, double angle_rad)
{
    return mb_gridding_turn(exchange ? angle_rad + 0.5 * MB_GRIDDING_PI : -angle_rad);
}

MB_BOTH static inline mb_gridding_ray mb_fourier_ray_of(const mb_gridding *gridding, bool exchange,
                                                        double angle_rad, int32_t angle)
{
    const double x = cos(angle_rad), y = -sin(angle_rad);
    return mb_gridding_ray_at(gridding, exchange ? y : x, exchange ? x : y,
                              mb_fourier_ray_turn(exchange, angle_rad), angle);
}

/* Where bucket b of directions begins. */
MB_BOTH static inline float mb_fourier_bucket(const mb_gridding *gridding, int b)
{
    return (float)(b * MB_GRIDDING_PI / gridding->buckets);
}

/* Turns of sample k: k * axis / N, less whole turns. */
MB_BOTH static inline double mb_fourier_turns(double axis, int64_t k, int64_t samples)
{
    double turns = (double)k * axis / (double)samples;
    return turns - rint(turns);
}

#endif
