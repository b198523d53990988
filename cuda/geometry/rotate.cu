/*
** rotate on CUDA.
*/
#include "ops/geometry/op_rotate.h"
#include "geometry/warp.cuh"

extern "C" mb_status mb_cuda_rotate(const mb_op_call *call)
{
    const mb_rotate_params *p = (const mb_rotate_params *)call->params;
    const mb_warp_map map = mb_rotate_map(p, &call->arrays[MB_ROTATE_A]->shape);
    return mb_warp_frames<MB_WARP_AFFINE>(call, &p->warp, &map, call->arrays[MB_ROTATE_RESULT]);
}
