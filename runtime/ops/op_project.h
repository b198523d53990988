/*
** project: what the host and the CUDA kernels share. Arrays: volume (in), result (out): (rows, angles, cols).
** The exact transpose of backproject at scale 1 (geometry: parallel_geometry.h): every pixel spreads its value over the two
** bins beside u, with the weights that backproject reads them with. Written as a gather (or with one owner per detector
** row) so that the sum has one order: no atomics.
*/
#ifndef MB_OPS_OP_PROJECT_H
#define MB_OPS_OP_PROJECT_H

#include "ops/op.h"
#include "ops/parallel_geometry.h"

typedef struct mb_project_params {
    mb_vector angles; /* rad */
    int64_t cols;     /* 0 = nx */
    double center;    /* px; NAN = (cols - 1) / 2 */
    mb_vector shifts; /* px, one per angle, or absent */
    double circle;
    double scale;
} mb_project_params;

enum { MB_PROJECT_VOLUME, MB_PROJECT_RESULT };
enum {
    MB_PROJECT_ANGLES, /* mb_parallel_angle[angles] */
    MB_PROJECT_LINES   /* host: per thread, a guarded detector row; cuda: 0 bytes */
};

/* Everything resolved from the parameters (which infer has checked) and the volume's shape; a 2-D volume is one row. */
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

static inline mb_parallel_angle mb_project_angle(const mb_project_params *p,
                                                 const mb_parallel_geometry *g, int64_t k)
{
    return mb_parallel_angle_at(g, p->angles.values[k],
                                p->shifts.count ? p->shifts.values[k] : 0.0);
}

#endif
