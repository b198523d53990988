/*
** backproject: what the host and the CUDA kernels share. Arrays: sino (in), result (out).
** Geometry and sign conventions: parallel_geometry.h. Samples outside the detector are 0; between
** samples linear.
**
** CUDA packing (slot MB_BACKPROJECT_PACKED): `batch` groups of `lanes` slices at a time, as packets
** of 16 bytes that hold one bin of 4 slices (floats) or 8 (halves), cols + 2 * guard packets an
** angle, with zeros in the guards and in the lanes past the last slice.
**   lanes 8, halves one plane [angle][packet] a group: halves, or 4 slices as floats
**   lanes 8, else   two planes a group: the high and the low halves of the values, or slices 0-3
**                   and 4-7 as floats
**   lanes 4         (2 to 4 slices, either accuracy) one plane of floats a group
**   lanes 1         nothing packed, the slot is empty, the kernel reads the sinogram itself: one
**                   slice, or 2 to 4 so large that packing them would take more than
**                   MB_BACKPROJECT_CUDA_BYTES
** The tensor-core kernels take 8 groups at a time, and batches of fewer cost them speed. So the
** slot is a multiple of 8 groups within MB_BACKPROJECT_CUDA_BYTES, or at most 8 groups within
** MB_BACKPROJECT_CUDA_MOST, or one group.
**
** Halves are for mode "fast" with MB_BACKPROJECT_CUDA_HALVES angles or more; with fewer, fast mode
** works as exact mode does. What rounding values and weights to halves does to a slice averages out
** over angles. Opposite angles show the same values, so an even number of angles over a whole turn
** counts half: for filtered phantoms of 2560 columns the relative L2 error is 0.97e-4 at 512 angles
** of a whole turn and 0.71e-4 of half a turn.
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
} mb_backproject_params;

enum { MB_BACKPROJECT_SINO, MB_BACKPROJECT_RESULT };
enum {
    MB_BACKPROJECT_ANGLES, /* mb_parallel_angle[angles] */
    MB_BACKPROJECT_PACKED, /* host: see backproject_host.h; cuda: above */
    MB_BACKPROJECT_TILES,  /* host: per thread, sums of one tile; cuda: 0 bytes */
    MB_BACKPROJECT_RANGE   /* cuda, lanes 8: the scale of the halves; else 0 bytes */
};

#define MB_BACKPROJECT_CUDA_GUARD 2
#define MB_BACKPROJECT_CUDA_BYTES (UINT64_C(512) << 20)
#define MB_BACKPROJECT_CUDA_MOST (UINT64_C(2) << 30)
#define MB_BACKPROJECT_CUDA_HALVES 640

static inline bool mb_backproject_cuda_halves(int accuracy, const mb_parallel_geometry *g)
{
    return accuracy == MB_BACKPROJECT_FAST && g->angles >= MB_BACKPROJECT_CUDA_HALVES;
}

typedef struct mb_backproject_packing {
    int lanes;            /* slices per group: 8, 4 or 1 */
    int64_t groups;       /* groups of `lanes` slices in the call */
    int64_t batch;        /* groups packed at a time */
    int64_t pitch;        /* packets per angle */
    uint64_t group_bytes; /* of one packed group; 0 when nothing is packed; UINT64_MAX: too large */
    uint64_t range_bytes; /* of the slot MB_BACKPROJECT_RANGE */
} mb_backproject_packing;

static inline mb_backproject_packing mb_backproject_cuda_packing(int accuracy,
                                                                 const mb_parallel_geometry *g)
{
    mb_backproject_packing p = {0};
    uint64_t angles = (uint64_t)(g->angles > 0 ? g->angles : 1), row_bytes, most;
    p.lanes = g->rows <= 1 ? 1 : g->rows <= 4 ? 4 : 8;
    p.pitch = g->cols + 2 * MB_BACKPROJECT_CUDA_GUARD;
    row_bytes =
        (uint64_t)p.pitch * (p.lanes == 8 && !mb_backproject_cuda_halves(accuracy, g) ? 32 : 16);
    p.group_bytes = angles > UINT64_MAX / row_bytes ? UINT64_MAX : angles * row_bytes;
    if (p.lanes == 1 || (p.lanes == 4 && p.group_bytes > MB_BACKPROJECT_CUDA_BYTES)) {
        p.lanes = 1;
        p.groups = g->rows;
        p.batch = 1;
        p.group_bytes = 0;
        return p;
    }
    most = MB_BACKPROJECT_CUDA_BYTES / p.group_bytes;
    if (most < 8) {
        most = MB_BACKPROJECT_CUDA_MOST / p.group_bytes;
        most = most > 8 ? 8 : most > 4 ? most / 2 * 2 : most > 1 ? most : 1;
    } else {
        most = most / 8 * 8;
    }
    p.groups = (g->rows + p.lanes - 1) / p.lanes;
    p.batch = (uint64_t)p.groups > most ? (int64_t)most : p.groups;
    p.range_bytes = p.lanes == 8 ? 512 : 0;
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
