/*
** Stripes as sums of modes: a stripe is a function of the column times a slow function of the
** angle, a mode. The operators that use this find R profiles along the columns of a sinogram x,
** t = P x (R x columns), filter each of them along the columns to s, and give x - Q s. P and Q are
** small tables that depend on the number of angles: a mean has R = 1, the lowest frequencies f have
** a cosine and a sine each. The sinogram is read twice and written once, and the scratch is a few
** profiles; no transform of the whole is ever stored.
**
** Sinograms are worked on in groups, so that the scratch does not grow with their number. What
** happens to one depends on nothing else: packets are single sinograms.
**
** Host: columns in tiles of MB_MODES_TILE, modes (in P) and angles (in Q) in blocks of
** MB_MODES_BLOCK. t and s of a sinogram are [tile][mode][MB_MODES_TILE], P is [block of
** modes][angle][MB_MODES_BLOCK], Q is [block of angles][mode][MB_MODES_BLOCK]. CUDA: see
** cuda/stripes/angle_modes.cuh.
*/
#ifndef MB_OPS_STRIPES_ANGLE_MODES_H
#define MB_OPS_STRIPES_ANGLE_MODES_H

#include "core/both.h"
#include "ops/op.h"

#define MB_MODES_TILE 32
#define MB_MODES_BLOCK 6
#define MB_MODES_PAD 8 /* CUDA: P is [angle][modes, up to a multiple of this]; Q is [mode][angle] */
#define MB_MODES_HOST_GROUP 4 /* sinograms */
/* CUDA: angles whose sum is a profile of its own until the profiles are filtered (for more than
** MB_MODES_FEW modes, twice as many), and bytes of profiles of a group. */
#define MB_MODES_FEW 8
#define MB_MODES_SEGMENT 256
#define MB_MODES_CUDA_BYTES (48u << 20)
#define MB_MODES_CUDA_GROUP 64 /* sinograms */

/* The sinograms (row, angle, column) of a call, or one (angle, column). Strides are in elements;
** the last axis is dense. */
typedef struct mb_sinograms {
    const float *from;
    float *to;
    int64_t count, angles, columns;
    int64_t from_row, from_angle, to_row, to_angle;
} mb_sinograms;

static inline mb_sinograms mb_sinograms_of(const mb_array *from, const mb_array *to)
{
    const int rank = from->shape.rank;
    mb_sinograms s;
    s.from = (const float *)from->data;
    s.to = (float *)to->data;
    s.count = rank == 3 ? from->shape.dims[0] : 1;
    s.angles = from->shape.dims[rank - 2];
    s.columns = from->shape.dims[rank - 1];
    s.from_row = rank == 3 ? from->strides[0] : 0;
    s.to_row = rank == 3 ? to->strides[0] : 0;
    s.from_angle = from->strides[rank - 2];
    s.to_angle = to->strides[rank - 2];
    return s;
}

static inline int64_t mb_modes_up(int64_t count, int64_t unit)
{
    return (count + unit - 1) / unit;
}

/* ---- sizes of slots ---- */

static inline bool mb_modes_on_cuda(const mb_device *device)
{
    return device->facts.compute_capability > 0;
}

static inline int64_t mb_modes_segment(int64_t modes)
{
    return modes > MB_MODES_FEW ? 2 * MB_MODES_SEGMENT : MB_MODES_SEGMENT;
}

/* Profiles that the angles of one sinogram give for a mode before they are added up. */
static inline int64_t mb_modes_parts(const mb_device *device, int64_t angles, int64_t modes)
{
    return mb_modes_on_cuda(device) ? mb_modes_up(angles, mb_modes_segment(modes)) : 1;
}

/* Floats of a profile. */
static inline int64_t mb_modes_pitch(const mb_device *device, int64_t columns)
{
    return mb_modes_on_cuda(device) ? columns : mb_modes_up(columns, MB_MODES_TILE) * MB_MODES_TILE;
}

/* Sinograms of a group. */
static inline int64_t mb_modes_group(const mb_device *device, int64_t count, int64_t angles,
                                     int64_t columns, int64_t modes)
{
    int64_t most = MB_MODES_HOST_GROUP;
    if (mb_modes_on_cuda(device)) {
        const int64_t bytes =
            4 * (mb_modes_parts(device, angles, modes) + 1) * (modes > 0 ? modes : 1) * columns;
        most = (int64_t)MB_MODES_CUDA_BYTES / bytes;
        most = most < 1 ? 1 : most < MB_MODES_CUDA_GROUP ? most : MB_MODES_CUDA_GROUP;
    }
    return count < most ? count : most;
}

/* Floats of P, and of Q. Both have room for whole blocks. */
static inline int64_t mb_modes_table(int64_t angles, int64_t modes)
{
    return (angles + MB_MODES_BLOCK) * (modes + MB_MODES_PAD);
}

/* The slots that every operator of this kind declares first. */
enum { MB_MODES_P, MB_MODES_Q, MB_MODES_T, MB_MODES_S, MB_MODES_SLOTS };

void mb_modes_plan(mb_planner *planner, int64_t count, int64_t angles, int64_t columns,
                   int64_t modes);

/* ---- host ---- */

typedef struct mb_modes {
    mb_sinograms sinograms;
    int64_t modes, tiles; /* tiles of columns */
    float *p, *q, *t, *s; /* the slots */
    int threads;
} mb_modes;

mb_modes mb_modes_of(const mb_op_call *call, int64_t modes);

static inline float *mb_modes_p(const mb_modes *m, int64_t mode, int64_t angle)
{
    return m->p + (mode / MB_MODES_BLOCK * m->sinograms.angles + angle) * MB_MODES_BLOCK +
           mode % MB_MODES_BLOCK;
}
static inline float *mb_modes_q(const mb_modes *m, int64_t angle, int64_t mode)
{
    return m->q + (angle / MB_MODES_BLOCK * m->modes + mode) * MB_MODES_BLOCK +
           angle % MB_MODES_BLOCK;
}
/* Profile `mode` of sinogram `i` of the group between its tiles (t or s) and a row. */
void mb_modes_gather(const mb_modes *m, const float *tiles, int64_t i, int64_t mode, float *row);
void mb_modes_scatter(const mb_modes *m, float *tiles, int64_t i, int64_t mode, const float *row);

/* t = P x for sinograms first ... first + many - 1, which become 0 ... many - 1 of the group. */
void mb_modes_project(const mb_modes *m, int64_t first, int64_t many);
/* x - Q s, or with `divide`, where there is one mode, x / s. */
void mb_modes_subtract(const mb_modes *m, int64_t first, int64_t many, bool divide);

#endif
