/*
** remap: what the host and the CUDA kernel share. Arrays: a (in), rows and columns (in, the map),
** result (out).
*/
#ifndef MB_OPS_OP_REMAP_H
#define MB_OPS_OP_REMAP_H

#include "ops/geometry/warp.h"

typedef struct mb_remap_params {
    mb_warp_params warp; /* its rows are never given */
} mb_remap_params;

enum { MB_REMAP_A, MB_REMAP_ROWS, MB_REMAP_COLUMNS, MB_REMAP_RESULT };

#endif
