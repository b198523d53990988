/*
** undistort on CUDA.
*/
#include "ops/geometry/op_undistort.h"
#include "geometry/warp.cuh"

extern "C" mb_status mb_cuda_undistort(const mb_op_call *call)
{
    const mb_undistort_params *p = (const mb_undistort_params *)call->params;
    const mb_warp_map map = mb_undistort_map(p);
    const mb_array *result = call->arrays[MB_UNDISTORT_RESULT];
    return map.kind == MB_WARP_INVERSE
               ? mb_warp_frames<MB_WARP_INVERSE>(call, &p->warp, &map, result)
               : mb_warp_frames<MB_WARP_RADIAL>(call, &p->warp, &map, result);
}
