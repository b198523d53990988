/*
** backproject: what the host and the CUDA kernels share. Arrays: sino (in), result (out).
** Geometry and sign conventions: parallel_geometry.h. Samples outside the detector are 0; between samples linear.
**
** CUDA packing (slot MB_BACKPROJECT_PACKED): packets of 16 bytes = `lanes` slices side by side, 8 halves (fast) or 4 floats
** (exact); layout [group][angle][cols + 2 * guard] with zeros in the guards and in the lanes past the last slice; `batch`
** groups at a time. Clamp u to [-1, cols] and two guard bins are enough. lanes == 1 (exact, one slice): no packing, the
** slot is empty, read the sinogram itself.
*/
#ifndef MB_OPS_OP_BACKPROJECT_H
#define MB_OPS_OP_BACKPROJECT_H

#include "ops/op.h"
#include "ops/parallel_geometry.h"

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
} mb_backproject_params;

enum { MB_BACKPROJECT_SINO, MB_BACKPROJECT_RESULT };
enum {
    MB_BACKPROJECT_ANGLES, /* mb_parallel_angle[angles] */
    MB_BACKPROJECT_PACKED, /* host: see backproject_host.h; cuda: above */
    MB_BACKPROJECT_TILES,  /* host: per thread, sums of one tile; cuda: 0 bytes */
    MB_BACKPROJECT_RANGE /* cuda, fast: 512 bytes, e.g. the largest magnitude, to scale halves; else 0 bytes */
};

#define MB_BACKPROJECT_CUDA_GUARD 2
#define MB_BACKPROJECT_CUDA_BYTES (512u << 20)

typedef struct mb_backproject_packing {
    int lanes;      /* slices per packet: 8, 4 or 1 */
    int64_t groups; /* groups of `lanes` slices in the call */
    int64_t batch;  /* groups packed at a time */
    int64_t pitch;  /* packets per angle */
    uint64_t
        group_bytes; /* of one packed group; 0 when nothing is packed; UINT64_MAX when too large */
} mb_backproject_packing;

static inline mb_backproject_packing mb_backproject_cuda_packing(int accuracy,
                                                                 const mb_parallel_geometry *g)
{
    mb_backproject_packing p;
    p.lanes = accuracy == MB_BACKPROJECT_FAST ? 8 : g->rows == 1 ? 1 : 4;
    p.groups = (g->rows + p.lanes - 1) / p.lanes;
    p.pitch = g->cols + 2 * MB_BACKPROJECT_CUDA_GUARD;
    p.batch = p.groups > 0 ? p.groups : 1;
    p.group_bytes = 0;
    if (p.lanes > 1) {
        uint64_t row_bytes = (uint64_t)p.pitch * 16;
        uint64_t angles = (uint64_t)(g->angles > 0 ? g->angles : 1);
        p.group_bytes = angles > UINT64_MAX / row_bytes ? UINT64_MAX : angles * row_bytes;
        uint64_t most = MB_BACKPROJECT_CUDA_BYTES / p.group_bytes;
        if (most < 1)
            most = 1;
        if ((uint64_t)p.batch > most)
            p.batch = (int64_t)most;
    }
    return p;
}

/* The sinogram's (rows, angles, cols) whatever its rank; a 2-D one is one row. */
static inline void mb_backproject_extents(const mb_shape *sino, mb_parallel_geometry *g)
{
    g->rows = sino->rank == 3 ? sino->dims[0] : 1;
    g->angles = sino->dims[sino->rank - 2];
    g->cols = sino->dims[sino->rank - 1];
}

/* Everything resolved from the parameters (which infer has checked) and the sinogram's shape. */
static inline mb_parallel_geometry mb_backproject_geometry(const mb_backproject_params *p,
                                                           const mb_shape *sino)
{
    mb_parallel_geometry g;
    mb_backproject_extents(sino, &g);
    g.ny = p->size.count > 0 ? (int64_t)p->size.values[0] : g.cols;
    g.nx = p->size.count > 1 ? (int64_t)p->size.values[1] : p->size.count > 0 ? g.ny : g.cols;
    g.y0 = p->roi.count ? (int64_t)p->roi.values[0] : 0;
    g.y1 = p->roi.count ? (int64_t)p->roi.values[1] : g.ny;
    g.x0 = p->roi.count ? (int64_t)p->roi.values[2] : 0;
    g.x1 = p->roi.count ? (int64_t)p->roi.values[3] : g.nx;
    g.center = isnan(p->center) ? 0.5 * (double)(g.cols - 1) : p->center;
    g.scale = !isnan(p->scale) ? p->scale
              : g.angles > 0   ? 3.14159265358979323846 / (double)g.angles
                               : 0.0;
    g.radius2 = mb_parallel_radius2(p->circle, g.ny, g.nx);
    return g;
}

/* Entry k of the angle table. */
static inline mb_parallel_angle mb_backproject_angle(const mb_backproject_params *p,
                                                     const mb_parallel_geometry *g, int64_t k)
{
    return mb_parallel_angle_at(g, p->angles.values[k],
                                p->shifts.count ? p->shifts.values[k] : 0.0);
}

#endif
