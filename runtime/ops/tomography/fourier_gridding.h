/*
** Gridding of polar Fourier samples, shared by the host and the CUDA kernel of fourier_reconstruct.
** Pure functions.
**
** Ray a holds samples k = -top ... top at the points kappa k (cx, sy) of a G x G grid whose cell
** (0, 0) is frequency 0 and which is periodic. Cell m gets the sum over samples of
** value * psi(mx - kappa k cx) * psi(my - kappa k sy), with the Kaiser-Bessel window
**   psi(d) = I0(beta sqrt(1 - (2 d / W)^2)) / I0(beta) for |d| <= W/2, else 0
**   beta = pi sqrt((W / sigma)^2 (sigma - 1/2)^2 - 0.8)
**       Beatty, Nishimura and Pauly, IEEE Trans. Med. Imaging 24 (2005) 799, eq. 5
**   transform of psi: W / I0(beta) * sinh(s) / s, s = sqrt(beta^2 - (pi W xi)^2)
**       Jackson et al., IEEE Trans. Med. Imaging 10 (1991) 473
** I0(beta sqrt(t)) is entire in t; psi is its Chebyshev interpolant on [0, 1], in monomial form.
**
** CUDA fills the grid cell by cell (a gather) and finds rays through their sorted directions; the
** host goes through the samples. Either way sums have one order.
*/
#ifndef MB_OPS_FOURIER_GRIDDING_H
#define MB_OPS_FOURIER_GRIDDING_H

#include "core/both.h"
#include <math.h>
#include <stdint.h>

#define MB_GRIDDING_DEGREE 11
#define MB_GRIDDING_PI 3.14159265358979323846
/* Cells of the center see more than MB_GRIDDING_DENSE rays, or lie within MB_GRIDDING_CENTER cells
** of the middle and see more than MB_GRIDDING_SPARSE: with few slices or cells the longest sums
** decide. */
#define MB_GRIDDING_DENSE 64
#define MB_GRIDDING_SPARSE 16
#define MB_GRIDDING_CENTER 76.0f

typedef struct mb_gridding {
    int grid;          /* G, even */
    int top;           /* samples -top ... top of a ray */
    int rays, buckets; /* buckets of directions in [0, pi) */
    int degree;        /* of `poly` */
    float half;        /* W / 2 */
    float reach;       /* no sample farther than this from a cell counts */
    float outer;       /* no cell farther than this from the middle gets anything */
    float center;      /* cells nearer than this see many rays: treated apart (CUDA) */
    float per_radian;  /* buckets / pi */
    float minus_inv_half2;
    float poly[MB_GRIDDING_DEGREE + 1]; /* of t = 1 - (2 d / W)^2 */
    double kappa, beta, i0_beta, width;
} mb_gridding;

/* kappa times the direction in two floats each, so that positions are exact to 1e-7 of a cell on
** any grid. */
typedef struct mb_gridding_ray {
    float cx, sy, inv_cx, inv_sy, cx_low, sy_low;
    float turn;    /* direction in [0, pi); rays are sorted by it */
    int32_t angle; /* index in the caller's order */
} mb_gridding_ray;

MB_BOTH static inline double mb_gridding_i0(double x)
{
    double term = 1, sum = 1;
    for (int k = 1; k < 200 && term > sum * 1e-17; k++) {
        term *= x * x / (4.0 * k * k);
        sum += term;
    }
    return sum;
}

/* Newton's form through the Chebyshev points, then monomials. */
static inline void mb_gridding_poly(mb_gridding *g)
{
    double x[MB_GRIDDING_DEGREE + 1], y[MB_GRIDDING_DEGREE + 1], m[MB_GRIDDING_DEGREE + 1] = {0};
    double basis[MB_GRIDDING_DEGREE + 2] = {1};
    const int n = g->degree;
    for (int i = 0; i <= n; i++) {
        x[i] = 0.5 - 0.5 * cos(MB_GRIDDING_PI * (i + 0.5) / (n + 1));
        y[i] = mb_gridding_i0(g->beta * sqrt(x[i])) / g->i0_beta;
    }
    for (int k = 1; k <= n; k++)
        for (int i = n; i >= k; i--)
            y[i] = (y[i] - y[i - 1]) / (x[i] - x[i - k]);
    for (int k = 0; k <= n; k++) {
        for (int i = 0; i <= k; i++)
            m[i] += y[k] * basis[i];
        for (int i = k + 1; i > 0; i--)
            basis[i] = basis[i - 1] - x[k] * basis[i];
        basis[0] *= -x[k];
    }
    for (int i = 0; i <= n; i++)
        g->poly[i] = (float)m[i];
}

/* Cells nearer to the middle than this see more than `seen` rays. */
static inline float mb_gridding_dense(const mb_gridding *g, int seen)
{
    return (float)(2.0 * g->reach / MB_GRIDDING_PI * g->rays / seen);
}

/* `extent`: the larger side of the image; `samples`: of a row, even. The window for `sigma_most`
** serves any larger sigma, and its polynomial stays accurate. */
static inline mb_gridding mb_gridding_make(int64_t extent, int64_t samples, int64_t grid,
                                           int64_t rays, double sigma_most, int width, int degree)
{
    mb_gridding g = {0};
    double sigma = fmin((double)grid / (double)extent, sigma_most);
    double ratio = width / sigma * (sigma - 0.5);
    g.grid = (int)grid;
    g.top = (int)(samples / 2 - 1);
    g.rays = (int)rays;
    g.buckets = (int)(4 * rays);
    g.per_radian = (float)(g.buckets / MB_GRIDDING_PI);
    g.degree = degree;
    g.width = width;
    g.kappa = (double)grid / (double)samples;
    g.beta = MB_GRIDDING_PI * sqrt(ratio * ratio - 0.8);
    g.i0_beta = mb_gridding_i0(g.beta);
    g.half = 0.5f * (float)width;
    g.minus_inv_half2 = -1.0f / (g.half * g.half);
    g.reach = 1.4143f * g.half;
    g.outer = (float)(g.kappa * g.top) + g.reach;
    g.center = fmaxf(fminf(MB_GRIDDING_CENTER, mb_gridding_dense(&g, MB_GRIDDING_SPARSE)),
                     mb_gridding_dense(&g, MB_GRIDDING_DENSE));
    if (g.center < 1.02f * g.reach)
        g.center = 1.02f * g.reach;
    if (g.center > g.outer)
        g.center = g.outer;
    mb_gridding_poly(&g);
    return g;
}

/* The same for the middles of square blocks of `block` cells each way: all samples that any of the
** cells sees. */
static inline mb_gridding mb_gridding_blocks(const mb_gridding *cells, int block)
{
    mb_gridding g = *cells;
    g.half += 0.5f * (float)(block - 1);
    g.reach = 1.4143f * g.half;
    g.outer = (float)(g.kappa * g.top) + g.reach;
    return g;
}

/* 1 / transform of psi at x cells of 1 / G from the middle. */
MB_BOTH static inline double mb_gridding_deapodise(const mb_gridding *g, int64_t x)
{
    double t = MB_GRIDDING_PI * g->width * (double)x / g->grid, square = g->beta * g->beta - t * t;
    double s = sqrt(fabs(square));
    double ratio = s < 1e-6 ? 1 : square > 0 ? sinh(s) / s : sin(s) / s;
    return g->i0_beta / (g->width * ratio);
}

/* Direction of the line through the middle at `radians`: in [0, pi). */
MB_BOTH static inline double mb_gridding_turn(double radians)
{
    double turn = radians - MB_GRIDDING_PI * floor(radians / MB_GRIDDING_PI);
    return turn >= 0 && turn < MB_GRIDDING_PI ? turn : 0;
}

/* Direction (x, y), not longer than 1; samples run outwards along it for k > 0. */
MB_BOTH static inline mb_gridding_ray mb_gridding_ray_at(const mb_gridding *g, double x, double y,
                                                         double turn, int32_t angle)
{
    mb_gridding_ray r;
    double kx = g->kappa * x, ky = g->kappa * y, tiny = 1e-12;
    /* High parts of 16 binary places; not kx rounded to float, of which GCC 12's vectorizer takes
    ** the difference to kx to be 0. */
    double high_x = rint(kx * 65536) / 65536, high_y = rint(ky * 65536) / 65536;
    r.cx = (float)high_x;
    r.sy = (float)high_y;
    r.cx_low = (float)(kx - high_x);
    r.sy_low = (float)(ky - high_y);
    r.inv_cx = (float)(1 / (fabs(kx) > tiny ? kx : tiny));
    r.inv_sy = (float)(1 / (fabs(ky) > tiny ? ky : tiny));
    r.turn = (float)turn;
    r.angle = angle;
    return r;
}

/* Buckets `first` <= b < `last` hold every ray that passes within reach of cell (x, y); they may be
** negative or beyond the last bucket (directions wrap at pi). All of them, once, in the middle. */
MB_BOTH static inline void mb_gridding_buckets(const mb_gridding *g, float x, float y, int *first,
                                               int *last)
{
    float rho = sqrtf(x * x + y * y);
    *first = 0;
    *last = g->buckets;
    if (rho > 1.01f * g->reach) {
        float phi = atan2f(y, x), d = asinf(g->reach / rho);
        if (phi < 0)
            phi += (float)MB_GRIDDING_PI;
        int low = (int)floorf((phi - d) * g->per_radian - 1e-3f);
        int high = (int)ceilf((phi + d) * g->per_radian + 1e-3f);
        if (high - low < g->buckets) {
            *first = low;
            *last = high;
        }
    }
}

/* Number, counted through turns of pi, of the first ray at or after bucket b; `starts` has buckets
** + 1 entries. */
MB_BOTH static inline int mb_gridding_start(const mb_gridding *g, const int32_t *starts, int b)
{
    if (b < 0)
        return starts[b + g->buckets] - g->rays;
    return b > g->buckets ? starts[b - g->buckets] + g->rays : starts[b];
}

/* Samples first ... last of the ray lie in the square of W around cell (x, y); none when first >
** last. */
MB_BOTH static inline void mb_gridding_span(const mb_gridding *g, float inv_cx, float inv_sy,
                                            float x, float y, int *first, int *last)
{
    float ax = (x - g->half) * inv_cx, bx = (x + g->half) * inv_cx;
    float ay = (y - g->half) * inv_sy, by = (y + g->half) * inv_sy;
    float low = fmaxf(fminf(ax, bx), fminf(ay, by)), high = fminf(fmaxf(ax, bx), fmaxf(ay, by));
    float limit = (float)(g->top + 1);
    *first = (int)ceilf(fminf(fmaxf(low, -limit), limit));
    *last = (int)floorf(fmaxf(fminf(high, limit), -limit));
    if (*first < -g->top)
        *first = -g->top;
    if (*last > g->top)
        *last = g->top;
}

/* Moves (x, y) to image i = 0, 1, 2 of a cell in the periodic grid; false where that image cannot
** be near a sample. Cells run from -G/2 to G/2 - 1; no sample is far enough out in both axes for a
** fourth. */
MB_BOTH static inline int mb_gridding_image(const mb_gridding *g, int i, float *x, float *y)
{
    float grid = (float)g->grid, edge = 0.5f * grid - g->half;
    if (i == 1) {
        if (fabsf(*x) < edge)
            return 0;
        *x += *x < 0 ? grid : -grid;
    } else if (i == 2) {
        if (fabsf(*y) < edge)
            return 0;
        *y += *y < 0 ? grid : -grid;
    }
    return *x * *x + *y * *y < g->outer * g->outer;
}

#endif
