/*
** project: what the host and the CUDA kernels share. Arrays: volume (in), result (out): (rows,
** angles, cols). The exact transpose of backproject at scale 1 (geometry: parallel_geometry.h):
** every pixel spreads its value over the two bins beside u, with the weights that backproject reads
** them with. Written as a gather, so that the sum has one order: no atomics.
*/
#ifndef MB_OPS_OP_PROJECT_H
#define MB_OPS_OP_PROJECT_H

#include "ops/op.h"
#include "ops/tomography/parallel_geometry.h"

typedef struct mb_project_params {
    mb_vector angles; /* rad */
    int64_t cols;     /* 0 = nx */
    double center;    /* px; NAN = (cols - 1) / 2 */
    mb_vector shifts; /* px, one per angle, or absent */
    double circle;
    double scale;
    int method;
} mb_project_params;

enum { MB_PROJECT_VOLUME, MB_PROJECT_RESULT };
enum {
    MB_PROJECT_ANGLES, /* host: mb_project_path[angles]; cuda: tables of rays and blocks */
    MB_PROJECT_STRIPS, /* host: per thread, lines of some slices; cuda: 0 bytes */
    MB_PROJECT_PACKED, /* cuda: slices as the kernel reads them; host: 0 bytes */
    MB_PROJECT_RANGE   /* cuda, split: factors that fit slices into halves */
};

typedef struct mb_project_ray {
    mb_parallel_angle place;
    int64_t index; /* in the caller's order */
} mb_project_ray;

/* Split: a ray through bin 0. Its bin at place p of line q: offset + p cross + q along. */
typedef struct mb_project_line_ray {
    double offset, cross, along;
    double inverse, slope; /* places from a bin to the next, from a line to the next */
    int64_t index;         /* of the angle, in the caller's order */
} mb_project_line_ray;

/* Split: rays that go together, `angles` of the table from `first` on. */
typedef struct mb_project_block {
    int first, angles;
    float step;  /* places from a tile to the next */
    float slope; /* of the middle of the window */
    int window;  /* places that are needed of a line */
} mb_project_block;

#define MB_PROJECT_GUARD 8 /* places of 0 on either side of a packed line */
#define MB_PROJECT_PACKED_BYTES (UINT64_C(512) << 20)

/* Everything resolved from the parameters (which infer has checked) and the volume's shape; a 2-D
** volume is one row. */
static inline mb_parallel_geometry mb_project_geometry(const mb_project_params *p,
                                                       const mb_shape *volume)
{
    mb_parallel_geometry g;
    g.rows = volume->rank == 3 ? volume->dims[0] : 1;
    g.ny = volume->dims[volume->rank - 2];
    g.nx = volume->dims[volume->rank - 1];
    g.angles = p->angles.count;
    g.cols = p->cols > 0 ? p->cols : g.nx;
    g.y0 = 0;
    g.y1 = g.ny;
    g.x0 = 0;
    g.x1 = g.nx;
    g.center = isnan(p->center) ? 0.5 * (double)(g.cols - 1) : p->center;
    g.scale = p->scale;
    g.radius2 = mb_parallel_radius2(p->circle, g.ny, g.nx);
    return g;
}

MB_BOTH static inline int64_t mb_project_pitch(int64_t across)
{
    return across + 2 * MB_PROJECT_GUARD;
}

/* Bytes of one packed slice, in the larger of the two orientations. */
static inline uint64_t mb_project_slice_bytes(const mb_parallel_geometry *g)
{
    int64_t rows = g->ny * mb_project_pitch(g->nx), columns = g->nx * mb_project_pitch(g->ny);
    return 4 * (uint64_t)(rows > columns ? rows : columns);
}

/* CUDA: slices of `rows` that are packed at a time: 1, 4, 8 or 16. */
static inline int64_t mb_project_lanes(const mb_parallel_geometry *g, int64_t rows)
{
    const uint64_t most = MB_PROJECT_PACKED_BYTES / mb_project_slice_bytes(g);
    int64_t lanes = rows <= 1 ? 1 : rows <= 4 ? 4 : rows <= 8 ? 8 : 16;
    while (lanes > 1 && (uint64_t)lanes > most)
        lanes = lanes > 4 ? lanes / 2 : 1;
    return lanes;
}

/* On CUDA the slices of a call are cut into packets, whose rows decide which kernel takes them: the
** tensor cores (halves, split), where there are not too few, or ordinary arithmetic. The first pack
** strips of lines of up to 64 slices at a time, which changes no bit. */
#define MB_PROJECT_PACKET 16
#define MB_PROJECT_FEWEST 9       /* rows of a packet for the tensor cores */
#define MB_PROJECT_STRIP 128      /* lines that are added up before they are added to the result */
#define MB_PROJECT_SPLIT_GUARD 64 /* places of 0 on either side of a packed line */
#define MB_PROJECT_SPLIT_BYTES (UINT64_C(320) << 20)
#define MB_PROJECT_SHARED (226 * 1024) /* bytes of shared memory that its blocks take at most */

/* Slices that the tensor cores take at once, of so many that are left: 64, 32 or 16. */
static inline int64_t mb_project_wide(int64_t left)
{
    return left > 48 ? 64 : left > 16 ? 32 : 16;
}

static inline int64_t mb_project_cuda_packet(const mb_parallel_geometry *g,
                                             const mb_device_facts *facts)
{
    const double slice =
        4.0 * ((double)g->angles * (double)g->cols + (double)g->nx * (double)g->ny);
    const bool fits = g->nx <= 1 << 18 && g->ny <= 1 << 18 &&
                      slice * MB_PROJECT_PACKET <= (double)facts->total_bytes / 16;
    return fits && facts->compute_capability >= 90 && facts->block_shared_bytes >= MB_PROJECT_SHARED
               ? MB_PROJECT_PACKET
               : 1;
}

typedef struct mb_project_packing {
    int64_t split, plain;           /* slices for the tensor cores, and those behind them */
    int64_t strips;                 /* of packed lines that the slot holds */
    uint64_t angles, packed, range; /* bytes of the slots */
} mb_project_packing;

static inline mb_project_packing mb_project_cuda_packing(const mb_parallel_geometry *g,
                                                         const mb_device_facts *facts)
{
    const int64_t packet = mb_project_cuda_packet(g, facts), rest = g->rows % packet,
                  longest = g->nx > g->ny ? g->nx : g->ny;
    mb_project_packing p = {0, 0, 0, 0, 0, 0};
    p.plain = packet == 1 ? g->rows : rest < MB_PROJECT_FEWEST ? rest : 0;
    p.split = g->rows - p.plain;
    if (p.plain > 0) {
        p.angles = (uint64_t)g->angles * sizeof(mb_project_ray);
        p.packed = mb_project_slice_bytes(g) * (uint64_t)mb_project_lanes(g, p.plain);
    }
    if (p.split > 0) {
        const int64_t wide = mb_project_wide(p.split),
                      all = (longest + MB_PROJECT_STRIP - 1) / MB_PROJECT_STRIP;
        const uint64_t strip = 4 * (uint64_t)wide * MB_PROJECT_STRIP *
                               (uint64_t)(longest + 2 * MB_PROJECT_SPLIT_GUARD),
                       bytes = (uint64_t)g->angles *
                               (sizeof(mb_project_line_ray) + sizeof(mb_project_block));
        p.strips = (int64_t)(MB_PROJECT_SPLIT_BYTES / strip);
        p.strips = p.strips < 1 ? 1 : p.strips < all ? p.strips : all;
        p.packed = strip * (uint64_t)p.strips > p.packed ? strip * (uint64_t)p.strips : p.packed;
        p.angles = bytes > p.angles ? bytes : p.angles;
        p.range = 12 * (uint64_t)wide;
    }
    return p;
}

static inline mb_parallel_angle mb_project_angle(const mb_project_params *p,
                                                 const mb_parallel_geometry *g, int64_t k)
{
    return mb_parallel_angle_at(g, p->angles.values[k],
                                p->shifts.count ? p->shifts.values[k] : 0.0);
}

#endif
