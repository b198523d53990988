/*
** How the host kernels of project and backproject cut their work: square tiles of pixels at
** multiples of 16 in the full slice, up to 16 slices side by side (lanes), detector rows with guard
** bins of zeros on both sides.
**
** Positions: the tile's corner in double precision, from there in float within the tile. The guards
** replace all bounds checks: a window that lies outside the detector is moved into a guard.
*/
#ifndef MB_OPS_PARALLEL_TILES_H
#define MB_OPS_PARALLEL_TILES_H

#include "core/shape.h"
#include "ops/tomography/parallel_geometry.h"

enum {
    MB_TILE = 16, /* px; also the vector width in slices or pixels */
    MB_TILE_GUARD =
        /* bins before and after a row: at least a tile's shadow (24), and the 32 of a register
        ** table */
    32,
    MB_TILE_ANGLES = 128
};

/* 16 floats, as aligned as they come in arrays of their own, or anywhere. */
typedef float mb_floats __attribute__((vector_size(64)));
typedef int32_t mb_ints __attribute__((vector_size(64)));
typedef float mb_floats_anywhere __attribute__((vector_size(64), aligned(4)));

/* Angles as one tile sees them: u of pixel (dy, dx) of the tile, in bins of a guarded row, is start
** + first + dx * cosine - dy * sine, and first + dx * cosine - dy * sine lies in [0, 23) but for
** rounding. */
typedef struct mb_tile_angles {
    int64_t start[MB_TILE_ANGLES];
    float first[MB_TILE_ANGLES], cosine[MB_TILE_ANGLES], sine[MB_TILE_ANGLES];
} mb_tile_angles;

/* The tile whose first pixel is (y, x); at most MB_TILE_ANGLES angles. */
static inline void mb_tile_place(const mb_parallel_geometry *g, const mb_parallel_angle *angles,
                                 int64_t count, int64_t y, int64_t x, mb_tile_angles *t)
{
    const double reach = MB_TILE - 1, low = -MB_TILE_GUARD, high = (double)g->cols;
    for (int64_t k = 0; k < count; k++) {
        double c = angles[k].cosine, s = angles[k].sine;
        double u = angles[k].offset + (double)x * c - (double)y * s;
        double start = floor(u + (c < 0 ? reach * c : 0) - (s > 0 ? reach * s : 0));
        t->first[k] = (float)(u - start);
        t->cosine[k] = (float)c;
        t->sine[k] = (float)s;
        start = start < low ? low : start;
        start = start > high ? high : start;
        t->start[k] = (int64_t)start + MB_TILE_GUARD;
    }
}

/* Bins of a guarded row. */
static inline int64_t mb_tile_row(const mb_parallel_geometry *g)
{
    return g->cols + 2 * MB_TILE_GUARD;
}

/* May the tile at (y, x) hold pixels inside the circular mask? Asks the pixels nearest to the
** middle. */
static inline bool mb_tile_inside(const mb_parallel_geometry *g, int64_t y, int64_t x)
{
    int64_t my = (g->ny - 1) / 2, mx = (g->nx - 1) / 2;
    int64_t ny = my < y ? y : my > y + MB_TILE - 1 ? y + MB_TILE - 1 : my;
    int64_t nx = mx < x ? x : mx > x + MB_TILE - 1 ? x + MB_TILE - 1 : mx;
    return mb_parallel_inside(g, ny, nx) ||
           mb_parallel_inside(g, ny + 1, nx) || /* an even side has two middles */
           mb_parallel_inside(g, ny, nx + 1) || mb_parallel_inside(g, ny + 1, nx + 1);
}

/* Slices that share a pass when `left` remain: 16 or 1. */
static inline int mb_tile_lanes(int64_t left)
{
    return left > 4 ? MB_TILE : 1;
}

#endif
