/*
** The host kernel of backproject, and what its plan must know: sizes of the packed angles and of a
** thread's tile.
*/
#ifndef MB_OPS_BACKPROJECT_HOST_H
#define MB_OPS_BACKPROJECT_HOST_H

#include "ops/tomography/op_backproject.h"
#include "ops/tomography/parallel_tiles.h"

/* Bytes of the packed block of angles: [angle][guard + cols + guard][lanes] floats. */
static inline uint64_t mb_backproject_host_packed_bytes(const mb_parallel_geometry *g)
{
    int64_t angles = g->angles < MB_TILE_ANGLES ? g->angles : MB_TILE_ANGLES;
    uint64_t bins = (uint64_t)mb_tile_row(g);
    return mb_bytes_mul(mb_bytes_mul(bins, (uint64_t)angles), 4 * (uint64_t)mb_tile_lanes(g->rows));
}

/* A thread's own: the sums of one tile. */
static inline uint64_t mb_backproject_host_tile_bytes(const mb_parallel_geometry *g)
{
    return 4 * (uint64_t)(MB_TILE * MB_TILE) * (uint64_t)mb_tile_lanes(g->rows);
}

mb_status mb_backproject_host(const mb_op_call *call);

#endif
