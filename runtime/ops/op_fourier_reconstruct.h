/*
** fourier_reconstruct: what the host and the CUDA kernel share. Arrays: sino (in), result (out).
** Geometry: parallel_geometry.h. Gridding: fourier_gridding.h.
**
** Two slices make one complex row and one complex grid; a batch of 1 to 8 pairs goes through
** together, so that the gridder finds each sample once for all. Per batch:
**   1 pad to P, transform, multiply by ramp_filter's response, back        [pair][angle][P]
**   2 crop to cols, extend by zeros to N samples                           [pair][angle][N]
**   3 transform
**   4 times weight and exp(2 pi i k c_a / N), in the order of sorted rays  [ray][k + N/2][pair]
**   5 gather onto the grid, frequency 0 in its middle                      [pair][G][G]
**   6 inverse transform
**   7 crop, divide by the window's transform, undo (-1)^(x + y) and the pairing
** With xs = x - floor(nx/2) and ys = y - floor(ny/2) a pixel reads u = xs cos t - ys sin t + c_a,
** c_a = center + shift + hx cos t - hy sin t, where h is 1/2 for an even side and else 0.
** The N-periodic row must not repeat inside the image: N covers what lies between the row and the
** farthest pixel.
** Host: steps 1 to 4 row by row in a thread's own `rows` slot, straight into `samples`.
** N, G and the pairs of a batch are read from the FFT descriptions: both sides have the same. The
** last batch may grid fewer (mb_fourier_lanes); its transforms run over rubbish nobody reads.
*/
#ifndef MB_OPS_OP_FOURIER_RECONSTRUCT_H
#define MB_OPS_OP_FOURIER_RECONSTRUCT_H

#include "ops/fourier_gridding.h"
#include "ops/op_ramp_filter.h"
#include "ops/parallel_geometry.h"
#include <stdlib.h>

typedef enum mb_fourier_accuracy { MB_FOURIER_FAST, MB_FOURIER_EXACT } mb_fourier_accuracy;

typedef struct mb_fourier_reconstruct_params {
    mb_vector angles;  /* rad; absent in estimates */
    double center;     /* px; NAN = (cols - 1) / 2 */
    mb_vector shifts;  /* px, one per angle, or absent */
    mb_vector weights; /* one per angle, or absent = 1 */
    mb_vector size;    /* {ny, nx}, {n} or absent = cols x cols */
    double circle, circle_value;
    double scale; /* NAN = pi / angles */
    int filter;
    double cutoff;
    int padding;
    int64_t pad_width;
    int accuracy;
    int64_t pairs; /* 0 = auto */
} mb_fourier_reconstruct_params;

typedef struct mb_fourier_angle {
    double axis;   /* c_a */
    double weight; /* 0: the row does not meet the image */
} mb_fourier_angle;

enum { MB_FOURIER_SINO, MB_FOURIER_RESULT };
enum { MB_FOURIER_FORWARD, MB_FOURIER_BACKWARD, MB_FOURIER_SAMPLE, MB_FOURIER_GRID }; /* FFTs */
enum {
    MB_FOURIER_ANGLES,    /* mb_fourier_angle[angles] */
    MB_FOURIER_RAYS,      /* mb_gridding_ray[angles], sorted */
    MB_FOURIER_STARTS,    /* int32[buckets + 1] */
    MB_FOURIER_RESPONSE,  /* float[P / 2 + 1] */
    MB_FOURIER_DEAPODISE, /* float[largest side / 2 + 1], scale / N not included */
    MB_FOURIER_ROWS,      /* complex [pair][angle][P]; host: per thread max(P, N) and N */
    MB_FOURIER_SPECTRA,   /* complex [pair][angle][N]; host: 0 bytes */
    MB_FOURIER_SAMPLES,   /* complex [ray][N][pair] */
    MB_FOURIER_CELLS,     /* complex [pair][G][G] */
    MB_FOURIER_FORWARD_WORK,
    MB_FOURIER_BACKWARD_WORK,
    MB_FOURIER_SAMPLE_WORK,
    MB_FOURIER_GRID_WORK
};

#define MB_FOURIER_FAST_DEGREE 10 /* of the polynomial of the window */
#define MB_FOURIER_PAIRS_MOST 8
#define MB_FOURIER_HOST_BYTES (UINT64_C(512) << 20)

static inline mb_ramp_filter_params mb_fourier_filter(const mb_fourier_reconstruct_params *p)
{
    mb_ramp_filter_params filter = {p->filter, p->cutoff, p->padding, p->pad_width, 1.0, {NULL, 0}};
    return filter;
}

/* Everything resolved from the parameters (which infer has checked) and the sinogram's shape. */
static inline mb_parallel_geometry mb_fourier_geometry(const mb_fourier_reconstruct_params *p,
                                                       const mb_shape *sino)
{
    mb_parallel_geometry g;
    g.rows = sino->rank == 3 ? sino->dims[0] : 1;
    g.angles = sino->dims[sino->rank - 2];
    g.cols = sino->dims[sino->rank - 1];
    g.ny = p->size.count > 0 ? (int64_t)p->size.values[0] : g.cols;
    g.nx = p->size.count > 1 ? (int64_t)p->size.values[1] : p->size.count > 0 ? g.ny : g.cols;
    g.y0 = g.x0 = 0;
    g.y1 = g.ny;
    g.x1 = g.nx;
    g.center = isnan(p->center) ? 0.5 * (double)(g.cols - 1) : p->center;
    g.scale = !isnan(p->scale) ? p->scale : g.angles > 0 ? MB_GRIDDING_PI / (double)g.angles : 0.0;
    g.radius2 = mb_parallel_radius2(p->circle, g.ny, g.nx);
    return g;
}

/* Distance from the axis of the farthest pixel that is made. */
static inline double mb_fourier_radius(const mb_parallel_geometry *g)
{
    double dx = 0.5 * (double)(g->nx - 1), dy = 0.5 * (double)(g->ny - 1),
           corner = sqrt(dx * dx + dy * dy);
    double mask = g->radius2 < 0 ? corner : sqrt(g->radius2);
    return mask < corner ? mask : corner;
}

/* Does the row of an axis at `axis` meet the image at all? */
static inline int mb_fourier_meets(const mb_parallel_geometry *g, double axis)
{
    double radius = mb_fourier_radius(g);
    return axis + radius > -1.0 && axis - radius < (double)g->cols;
}

/* Smallest even N for which no pixel sees the row's repetitions. */
static inline int64_t mb_fourier_samples(const mb_fourier_reconstruct_params *p,
                                         const mb_parallel_geometry *g)
{
    double radius = mb_fourier_radius(g), need = (double)g->cols;
    for (int64_t a = 0; a < (p->shifts.count ? p->shifts.count : 1); a++) {
        double axis = g->center + (p->shifts.count ? p->shifts.values[a] : 0.0);
        if (!mb_fourier_meets(g, axis))
            continue;
        need = fmax(need, fmax((double)g->cols - 1 + radius - axis, axis + radius));
    }
    return ((int64_t)ceil(need - 1e-6) + 1) / 2 * 2;
}

/* Grid sizes whose 2-D cuFFT on an H200 takes no detour (11.5 to 14.3 ps a point); many other
** smooth sizes take twice that. */
static inline int64_t mb_fourier_cuda_size(int64_t least)
{
    static const int16_t sizes[] = {2048, 2500, 2560, 2592, 2744, 2940, 3072, 3136, 3200,
                                    3360, 3456, 3888, 4000, 4096, 5120, 6144, 8192};
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++)
        if (sizes[i] >= least)
            return 10 * sizes[i] <= 11 * least ? sizes[i] : 0;
    return 0;
}

/* Smallest grid for the accuracy: sigma 1.5 or 2 times the larger side. */
static inline int64_t mb_fourier_grid(int accuracy, const mb_parallel_geometry *g)
{
    int64_t side = g->nx > g->ny ? g->nx : g->ny;
    int64_t least = accuracy == MB_FOURIER_FAST ? (3 * side + 1) / 2 : 2 * side;
    return least < 40 ? 40 : least;
}

static inline mb_gridding mb_fourier_gridding(int accuracy, const mb_parallel_geometry *g,
                                              int64_t samples, int64_t grid)
{
    bool fast = accuracy == MB_FOURIER_FAST;
    return mb_gridding_make(g->nx > g->ny ? g->nx : g->ny, samples, grid, g->angles, fast ? 6 : 8,
                            fast ? MB_FOURIER_FAST_DEGREE : MB_GRIDDING_DEGREE);
}

/* Bytes of a pair in rows, spectra, samples and grid, more than are ever in use at once. */
static inline uint64_t mb_fourier_pair_bytes(uint64_t angles, uint64_t padded, uint64_t samples,
                                             uint64_t grid)
{
    return 8 * (angles * (padded + 2 * samples) + grid * grid);
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

/* Pairs that are gridded in the batch from slice `first` on: fewer in a last, incomplete one. */
static inline int64_t mb_fourier_lanes(int64_t rows, int64_t first, int64_t pairs)
{
    int64_t lanes = 1;
    while (lanes < pairs && 2 * lanes < rows - first)
        lanes *= 2;
    return lanes;
}

/* c_a of the head comment. */
static inline double mb_fourier_axis(const mb_parallel_geometry *g, double angle_rad,
                                     double shift_px)
{
    double hx = g->nx % 2 ? 0.0 : 0.5, hy = g->ny % 2 ? 0.0 : 0.5;
    return g->center + shift_px + hx * cos(angle_rad) - hy * sin(angle_rad);
}

/* Turns of sample k: k * axis / N, less whole turns. */
MB_BOTH static inline double mb_fourier_turns(double axis, int64_t k, int64_t samples)
{
    double turns = (double)k * axis / (double)samples;
    return turns - rint(turns);
}

static inline int mb_fourier_order(const void *a, const void *b)
{
    const mb_gridding_ray *p = (const mb_gridding_ray *)a, *q = (const mb_gridding_ray *)b;
    if (p->turn != q->turn)
        return p->turn < q->turn ? -1 : 1;
    return p->angle < q->angle ? -1 : 1;
}

/* The tables of the slots ANGLES, RAYS, STARTS and DEAPODISE, in host memory. */
static inline void mb_fourier_tables(const mb_fourier_reconstruct_params *p,
                                     const mb_parallel_geometry *g, const mb_gridding *gridding,
                                     mb_fourier_angle *angles, mb_gridding_ray *rays,
                                     int32_t *starts, float *deapodise)
{
    int64_t side = g->nx > g->ny ? g->nx : g->ny, ray = 0;
    for (int64_t a = 0; a < g->angles; a++) {
        double t = p->angles.values[a], shift = p->shifts.count ? p->shifts.values[a] : 0.0;
        double weight = p->weights.count ? p->weights.values[a] : 1.0;
        angles[a].axis = mb_fourier_axis(g, t, shift);
        angles[a].weight = mb_fourier_meets(g, g->center + shift) ? weight : 0.0;
        /* The grid's y runs down: the ray points along (cos t, -sin t), at -t. */
        rays[a] = mb_gridding_ray_at(gridding, cos(t), -sin(t), mb_gridding_turn(-t), (int32_t)a);
    }
    qsort(rays, (size_t)g->angles, sizeof *rays, mb_fourier_order);
    for (int b = 0; b <= gridding->buckets; b++) {
        float edge = (float)(b * MB_GRIDDING_PI / gridding->buckets);
        while (ray < g->angles && rays[ray].turn < edge)
            ray++;
        starts[b] = (int32_t)(b == gridding->buckets ? g->angles : ray);
    }
    for (int64_t x = 0; x <= side / 2; x++)
        deapodise[x] = (float)mb_gridding_deapodise(gridding, x);
}

#endif
