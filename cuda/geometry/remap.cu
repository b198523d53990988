/*
** remap on CUDA.
*/
#include "ops/geometry/op_remap.h"
#include "geometry/warp.cuh"

extern "C" mb_status mb_cuda_remap(const mb_op_call *call)
{
    const mb_remap_params *p = (const mb_remap_params *)call->params;
    const mb_warp_map map = {MB_WARP_TABLE};
    return mb_warp_frames<MB_WARP_TABLE>(call, &p->warp, &map, call->arrays[MB_REMAP_RESULT],
                                         call->arrays[MB_REMAP_ROWS],
                                         call->arrays[MB_REMAP_COLUMNS]);
}
