/*
** total_variation: what the host and the CUDA kernels share. Arrays: a (in, f32), result (out, f32;
** may be a), rows at any stride. Slot: MB_TOTAL_VARIATION_STATE, what the iterations keep between
** passes; the host and CUDA lay it out as they need it.
**
** Both methods keep an image u and a field p with one component an axis, and alternate two steps:
**   image: u from u, the divergence of p, and the data f
**   field: p from the gradient of u
** They begin with u = f and p = 0. After N fields and N images u is the result.
**
** primal_dual (Chambolle and Pock): u' = (u + tau (f + lambda div p)) / (1 + tau);
**   p = project(p + sigma / lambda grad(2 u' - u)), into the unit ball.
** rof (Rudin, Osher, Fatemi): u' = u + step (lambda div p + f - u); p = grad u / |grad u|, the
**   component along an axis with the smaller one of the two differences along the others.
** Differences are forward, their divergence backward; across an edge both are 0.
*/
#ifndef MB_OPS_OP_TOTAL_VARIATION_H
#define MB_OPS_OP_TOTAL_VARIATION_H

#include "ops/op.h"
#include <math.h>

typedef struct mb_total_variation_params {
    double lambda, tau, sigma, step, epsilon;
    int64_t iterations, dimensions;
    int method;
    bool nonnegative;
} mb_total_variation_params;

enum { MB_TOTAL_VARIATION_A, MB_TOTAL_VARIATION_RESULT };
enum { MB_TOTAL_VARIATION_STATE };
typedef enum mb_total_variation_method { MB_TV_PRIMAL_DUAL, MB_TV_ROF } mb_total_variation_method;

/* Images that are apart: volumes of planes, or slices of one plane each. */
typedef struct mb_tv_extents {
    int64_t images, planes, rows, columns;
} mb_tv_extents;

/* The numbers of the two steps. lambda is positive. */
typedef struct mb_tv_rates {
    float step;  /* of the field: sigma / lambda; rof: epsilon */
    float field; /* weight of div p in the image: lambda tau / (1 + tau); rof: lambda step */
    float data;  /* weight of f - u: tau / (1 + tau); rof: step */
    float least; /* 0, or minus infinity */
} mb_tv_rates;

static inline mb_tv_extents mb_tv_extents_of(const mb_total_variation_params *p,
                                             const mb_shape *shape)
{
    const int rank = shape->rank;
    const int64_t first = rank == 3 ? shape->dims[0] : 1;
    mb_tv_extents n = {first, 1, shape->dims[rank - 2], shape->dims[rank - 1]};
    if (p->dimensions == 3) {
        n.images = 1;
        n.planes = first;
    }
    return n;
}

/* Where a row is: strides of images or planes (whichever there are) and of rows. */
static inline void mb_tv_strides(const mb_array *a, int64_t *plane, int64_t *row)
{
    const int rank = a->shape.rank;
    *plane = rank == 3 ? a->strides[0] : 0;
    *row = a->strides[rank - 2];
}

static inline mb_tv_rates mb_tv_rates_of(const mb_total_variation_params *p)
{
    const double norm = 4.0 * (double)p->dimensions; /* at least that of the gradient, squared */
    const double tau = p->tau == p->tau       ? p->tau
                       : p->sigma == p->sigma ? 1 / (norm * p->sigma)
                                              : 1 / sqrt(norm);
    const double sigma = p->sigma == p->sigma ? p->sigma : 1 / (norm * tau);
    const float least = p->nonnegative ? 0 : -INFINITY;
    if (p->method == MB_TV_ROF)
        return (mb_tv_rates){(float)p->epsilon, (float)(p->lambda * p->step), (float)p->step,
                             least};
    return (mb_tv_rates){(float)(sigma / p->lambda), (float)(p->lambda * tau / (1 + tau)),
                         (float)(tau / (1 + tau)), least};
}

/* ---- CUDA ---- */

#define MB_TV_FLAT_TILE 64  /* rows and columns of a slice's tile */
#define MB_TV_FLAT_LEVELS 8 /* steps a pass, at most */
#define MB_TV_COLUMNS 64    /* of a volume's tile */
#define MB_TV_MARGIN 4      /* of it on either side; so that tiles begin at multiples of four */
#define MB_TV_LEVELS 3      /* steps a pass, at most */

/* How the state lies. 2-D: two sets for `group` slices. 3-D: one set of elements with `shift` more
** planes than the volume: a pass reads plane z from slot z or z + shift and writes it to the other
** one, so many planes a launch that nothing is overwritten that is still read. */
typedef struct mb_tv_cuda {
    int64_t pitch, slot;    /* elements of a row, of a plane */
    int64_t group;          /* 2-D: slices at a time */
    int64_t launch, zc;     /* 3-D: planes a launch, and a block */
    int64_t shift, slots;   /* planes */
    int levels, height;     /* steps a pass; 3-D: rows of a tile */
    uint64_t element_bytes; /* of the state */
} mb_tv_cuda;

static inline int64_t mb_tv_ratio_up(int64_t a, int64_t b)
{
    return b > 0 ? (a + b - 1) / b : 0;
}

static inline void mb_tv_cuda_volume(mb_tv_cuda *c, const mb_total_variation_params *p,
                                     const mb_tv_extents *n, const mb_device_facts *facts)
{
    const uint64_t shared = facts->block_shared_bytes >> 10;
    c->height = shared >= 160 ? 32 : 16;
    c->levels = MB_TV_LEVELS;
    const int64_t tiles = mb_tv_ratio_up(n->columns, MB_TV_COLUMNS - 2 * MB_TV_MARGIN) *
                          mb_tv_ratio_up(n->rows, c->height - 2 * c->levels);
    int64_t chunks = mb_tv_ratio_up(8 * (int64_t)facts->threads, tiles);
    c->zc = mb_tv_ratio_up(n->planes, 8 * chunks);
    c->zc = c->zc < 64 ? 64 : c->zc;
    c->launch = c->zc * chunks;
    if (c->launch + c->levels >= n->planes || p->method == MB_TV_ROF) {
        c->launch = n->planes;
        chunks = chunks < mb_tv_ratio_up(n->planes, 32) ? chunks : mb_tv_ratio_up(n->planes, 32);
        c->zc = mb_tv_ratio_up(n->planes, chunks);
    }
    c->shift = c->launch < n->planes ? c->launch + c->levels : n->planes;
    c->slots = n->planes + c->shift;
}

static inline mb_tv_cuda mb_tv_cuda_of(const mb_total_variation_params *p, const mb_tv_extents *n,
                                       const mb_device_facts *facts)
{
    mb_tv_cuda c = {0};
    const bool rof = p->method == MB_TV_ROF;
    c.pitch = p->dimensions == 3 && !rof ? mb_tv_ratio_up(n->columns, 4) * 4 : n->columns;
    c.slot = c.pitch * n->rows;
    if (p->dimensions == 3) {
        mb_tv_cuda_volume(&c, p, n, facts);
        c.element_bytes = rof ? 4 : 12;
    } else {
        const int64_t across = MB_TV_FLAT_TILE - 2 * MB_TV_FLAT_LEVELS;
        const int64_t tiles = mb_tv_ratio_up(n->columns, across) * mb_tv_ratio_up(n->rows, across);
        c.levels = MB_TV_FLAT_LEVELS;
        c.group = mb_tv_ratio_up(32 * (int64_t)facts->threads, tiles);
        c.group = c.group < n->images ? c.group : n->images;
        c.shift = c.group;
        c.slots = 2 * c.group;
        c.element_bytes = rof ? 4 : 12;
    }
    return c;
}

#endif
