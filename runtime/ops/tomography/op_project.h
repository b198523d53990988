/*
** project: what the host and the CUDA kernels share. Arrays: volume (in), result (out): (rows,
** angles, cols). The exact transpose of backproject at scale 1 (geometry: parallel_geometry.h):
** every pixel spreads its value over the two bins beside u, with the weights that backproject reads
** them with. Written as a gather, so that the sum has one order: no atomics. CUDA takes
** mb_project_lanes slices at a time, packed in scratch once for each kind of ray.
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
    MB_PROJECT_ANGLES, /* host: mb_project_path[angles]; cuda: mb_project_ray[angles] */
    MB_PROJECT_STRIPS, /* host: per thread, lines of some slices; cuda: 0 bytes */
    MB_PROJECT_PACKED  /* cuda: slices as the kernel reads them; host: 0 bytes */
};

typedef struct mb_project_ray {
    mb_parallel_angle place;
    int64_t index; /* in the caller's order */
} mb_project_ray;

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

/* CUDA: slices that are packed at a time: 1, 4, 8 or 16. */
static inline int64_t mb_project_lanes(const mb_parallel_geometry *g)
{
    const uint64_t most = MB_PROJECT_PACKED_BYTES / mb_project_slice_bytes(g);
    int64_t lanes = g->rows <= 1 ? 1 : g->rows <= 4 ? 4 : g->rows <= 8 ? 8 : 16;
    while (lanes > 1 && (uint64_t)lanes > most)
        lanes = lanes > 4 ? lanes / 2 : 1;
    return lanes;
}

static inline mb_parallel_angle mb_project_angle(const mb_project_params *p,
                                                 const mb_parallel_geometry *g, int64_t k)
{
    return mb_parallel_angle_at(g, p->angles.values[k],
                                p->shifts.count ? p->shifts.values[k] : 0.0);
}

#endif
