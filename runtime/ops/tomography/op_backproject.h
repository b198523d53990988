/*
** backproject: what the host and the CUDA kernels share. Arrays: sino (in), result (out).
** Geometry and sign conventions: parallel_geometry.h. Samples outside the detector are 0; between
** samples linear.
**
** On CUDA the slices of a call are cut into packets (mb_backproject_cuda_packet). The rows of a
** packet decide which kernel takes it, and how it is packed for that (slot MB_BACKPROJECT_PACKED),
** always in units of 16 bytes:
**   LINES     one slice: two lines an angle, two bins a unit      backproject_single.cuh
**   PAIRS     fast 2, exact 2 to 8 slices: groups of 2, two lines
**             an angle, one bin a unit                            backproject_single.cuh
**   QUADS     fast, 3 to 8 slices: groups of 4, one bin a unit    backproject_quad.cuh
**   HALVES    fast, more: groups of 8, one bin a unit             backproject_mma.cuh
**   SPLIT     exact, more: the same in two planes                 backproject_mma.cuh
** before compute capability 8.0 (backproject_plain.cuh):
**   UNPACKED  one slice: the sinogram itself
**   FLOATS    2 to 4 slices, or exact: groups of 4, one bin a unit
**   HALVES    fast, more: groups of 8, one bin a unit
** and UNPACKED for any number of slices, one by one, where the method is distance.
** A line has MB_BACKPROJECT_CUDA_GUARD units of zeros at either end, and lanes past the last slice
** hold zeros. Where all angles would take more than a limit, which depends on the extents of one
** slice, they are packed and back-projected so many at a time. Slices go in pieces of whole blocks
** (the slices that a kernel takes at once), as many as fit MB_BACKPROJECT_CUDA_BYTES, one at least.
** Results do not depend on the pieces.
**
** Halves are for mode "fast" with MB_BACKPROJECT_CUDA_HALVES angles or more; with fewer, fast mode
** works as exact mode does. What rounding values and weights to halves does to a slice averages out
** over angles. Opposite angles show the same values, so an even number of angles over a whole turn
** counts half: for filtered phantoms of 2560 columns the relative L2 error is 0.97e-4 at 512 angles
** of a whole turn and 0.71e-4 of half a turn. Every slice has a scale of its own.
*/
#ifndef MB_OPS_OP_BACKPROJECT_H
#define MB_OPS_OP_BACKPROJECT_H

#include "ops/tomography/parallel_image.h"

typedef enum mb_backproject_accuracy {
    MB_BACKPROJECT_FAST,
    MB_BACKPROJECT_EXACT
} mb_backproject_accuracy;

typedef struct mb_backproject_params {
    mb_vector angles; /* rad; absent in estimates */
    double center;    /* px; NAN = (cols - 1) / 2 */
    mb_vector shifts; /* px, one per angle, or absent */
    mb_vector size;   /* {ny, nx}, {n} or absent = cols x cols */
    mb_vector roi;    /* {y0, y1, x0, x1} or absent */
    double circle, circle_value;
    double scale; /* NAN = pi / angles */
    int accuracy;
    int method;
} mb_backproject_params;

enum { MB_BACKPROJECT_SINO, MB_BACKPROJECT_RESULT };
enum {
    MB_BACKPROJECT_ANGLES, /* mb_parallel_angle[angles] */
    MB_BACKPROJECT_PACKED, /* host: see backproject_host.h; cuda: above */
    MB_BACKPROJECT_TILES,  /* host: per thread, sums of one tile; cuda: 0 bytes */
    MB_BACKPROJECT_RANGE   /* cuda: scales of the halves of a piece; else 0 bytes */
};

#define MB_BACKPROJECT_CUDA_GUARD 2
#define MB_BACKPROJECT_CUDA_BYTES (UINT64_C(512) << 20)
#define MB_BACKPROJECT_CUDA_HALVES 640
#define MB_BACKPROJECT_CUDA_PACKET 16
/* Longest sum of the tensor cores: they truncate. */
#define MB_BACKPROJECT_CUDA_LONG 2048

static inline bool mb_backproject_cuda_halves(int accuracy, const mb_parallel_geometry *g)
{
    return accuracy == MB_BACKPROJECT_FAST && g->angles >= MB_BACKPROJECT_CUDA_HALVES;
}

/* Slices that are computed together: fewer where so many of them, with their sinograms, would take
** more than a sixteenth of the device's memory. */
static inline int64_t mb_backproject_cuda_packet(const mb_parallel_geometry *g,
                                                 const mb_device_facts *facts)
{
    const double slice = 4.0 * ((double)g->angles * (double)g->cols +
                                (double)(g->x1 - g->x0) * (double)(g->y1 - g->y0));
    int64_t packet = MB_BACKPROJECT_CUDA_PACKET;
    while (packet > 1 && slice * (double)packet > (double)facts->total_bytes / 16)
        packet /= 4;
    return packet;
}

typedef enum mb_backproject_kind {
    MB_BACKPROJECT_LINES,
    MB_BACKPROJECT_PAIRS,
    MB_BACKPROJECT_QUADS,
    MB_BACKPROJECT_HALVES,
    MB_BACKPROJECT_SPLIT,
    MB_BACKPROJECT_FLOATS,
    MB_BACKPROJECT_UNPACKED
} mb_backproject_kind;

/* How a packet of so many rows is packed. */
static inline mb_backproject_kind mb_backproject_cuda_kind(bool halves, bool before_80,
                                                           int64_t rows)
{
    if (before_80)
        return rows == 1            ? MB_BACKPROJECT_UNPACKED
               : halves && rows > 4 ? MB_BACKPROJECT_HALVES
                                    : MB_BACKPROJECT_FLOATS;
    if (rows == 1)
        return MB_BACKPROJECT_LINES;
    if (rows <= 8)
        return halves && rows > 2 ? MB_BACKPROJECT_QUADS : MB_BACKPROJECT_PAIRS;
    return halves ? MB_BACKPROJECT_HALVES : MB_BACKPROJECT_SPLIT;
}

/* Slices of a call that are packed alike. */
typedef struct mb_backproject_part {
    mb_backproject_kind kind;
    int64_t rows;
    int64_t lanes;  /* slices of a group */
    int64_t most;   /* slices of a piece */
    int64_t angles; /* packed at a time */
    int64_t pitch;  /* units of a line */
    int64_t lines;  /* of an angle of a group */
    uint64_t bytes; /* of a piece, packed */
} mb_backproject_part;

static inline mb_backproject_part mb_backproject_cuda_part(mb_backproject_kind kind, int64_t rows,
                                                           const mb_parallel_geometry *g)
{
    /* Slices of a group, lines of an angle of it, bins of a unit, slices that a kernel takes at
    ** once, and the most bytes that these may take: lines, pairs, quads, halves, split, floats. */
    static const struct {
        int lanes, lines, bins, block;
        uint64_t limit;
    } kinds[] = {{1, 2, 2, 1, UINT64_C(256) << 20},
                 {2, 2, 1, 8, UINT64_C(1024) << 20},
                 {4, 1, 1, 8, UINT64_C(512) << 20},
                 {8, 1, 1, 64, UINT64_C(2) << 30},
                 {8, 2, 1, 64, UINT64_C(2) << 30},
                 {4, 1, 1, 8, UINT64_C(512) << 20},
                 {1, 0, 1, 1, 0}};
    const int64_t block = kinds[kind].block, angles = g->angles > 0 ? g->angles : 1;
    mb_backproject_part p = {kind, rows, kinds[kind].lanes, block, angles, 0, kinds[kind].lines, 0};
    int64_t blocks = (rows + block - 1) / block, groups, held;
    uint64_t angle_bytes;
    if (kind == MB_BACKPROJECT_UNPACKED)
        return p;
    p.pitch = (g->cols + kinds[kind].bins - 1) / kinds[kind].bins + 2 * MB_BACKPROJECT_CUDA_GUARD;
    angle_bytes = 16 * (uint64_t)p.pitch * (uint64_t)(p.lines * (block / p.lanes)); /* of a block */
    if (kind == MB_BACKPROJECT_HALVES && p.angles > MB_BACKPROJECT_CUDA_LONG)
        p.angles = MB_BACKPROJECT_CUDA_LONG;
    if (kinds[kind].limit / angle_bytes < (uint64_t)p.angles)
        p.angles = (int64_t)(kinds[kind].limit / angle_bytes) / 64 * 64;
    if (p.angles < 64 && p.angles < angles)
        p.angles = angles < 64 ? angles : 64;
    held = (int64_t)(MB_BACKPROJECT_CUDA_BYTES / (angle_bytes * (uint64_t)p.angles));
    held = held > 1 ? held : 1;
    p.most = (blocks < held ? blocks : held) * block;
    groups = ((rows < p.most ? rows : p.most) + p.lanes - 1) / p.lanes;
    p.bytes = angle_bytes / (uint64_t)(block / p.lanes) * (uint64_t)p.angles * (uint64_t)groups;
    return p;
}

typedef struct mb_backproject_packing {
    mb_backproject_part parts[2]; /* whole packets; the last, if it is packed otherwise */
    uint64_t bytes;               /* of the slot MB_BACKPROJECT_PACKED */
    uint64_t range_bytes;         /* of the slot MB_BACKPROJECT_RANGE */
} mb_backproject_packing;

static inline mb_backproject_packing
mb_backproject_cuda_packing(const mb_backproject_params *params, const mb_parallel_geometry *g,
                            const mb_device_facts *facts)
{
    const bool halves = mb_backproject_cuda_halves(params->accuracy, g),
               unpacked = params->method == MB_PARALLEL_DISTANCE,
               before_80 = facts->compute_capability < 80;
    const int64_t packet = mb_backproject_cuda_packet(g, facts), rest = g->rows % packet;
    const mb_backproject_kind whole = unpacked
                                          ? MB_BACKPROJECT_UNPACKED
                                          : mb_backproject_cuda_kind(halves, before_80, packet),
                              last = unpacked ? MB_BACKPROJECT_UNPACKED
                                              : mb_backproject_cuda_kind(halves, before_80, rest);
    const int64_t apart = rest > 0 && last != whole ? rest : 0;
    mb_backproject_packing p;
    p.parts[0] = mb_backproject_cuda_part(whole, g->rows - apart, g);
    p.parts[1] = mb_backproject_cuda_part(last, apart, g);
    p.bytes = p.range_bytes = 0;
    for (int i = 0; i < 2; i++) {
        const mb_backproject_part *part = &p.parts[i];
        const int64_t slices = part->rows < part->most ? part->rows : part->most;
        const bool scaled = part->kind == MB_BACKPROJECT_QUADS ||
                            part->kind == MB_BACKPROJECT_HALVES ||
                            part->kind == MB_BACKPROJECT_SPLIT;
        if (part->rows == 0)
            continue;
        p.bytes = part->bytes > p.bytes ? part->bytes : p.bytes;
        if (scaled && 16 * (uint64_t)slices > p.range_bytes)
            p.range_bytes = 16 * (uint64_t)slices;
    }
    return p;
}

/* Everything resolved from the parameters (which infer has checked) and the sinogram's shape. */
static inline mb_parallel_geometry mb_backproject_geometry(const mb_backproject_params *p,
                                                           const mb_shape *sino)
{
    return mb_parallel_image_geometry(sino, p->center, &p->size, &p->roi, p->circle, p->scale);
}

/* Entry k of the angle table. */
static inline mb_parallel_angle mb_backproject_angle(const mb_backproject_params *p,
                                                     const mb_parallel_geometry *g, int64_t k)
{
    return mb_parallel_angle_at(g, p->angles.values[k],
                                p->shifts.count ? p->shifts.values[k] : 0.0);
}

#endif
