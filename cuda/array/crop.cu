/*
** crop on CUDA: the strided copy of a part of the input.
*/
#include "shared/cuda_copy.cuh"
#include "ops/array/op_crop.h"

extern "C" mb_status mb_cuda_crop(const mb_op_call *call)
{
    const mb_crop_params *params = (const mb_crop_params *)call->params;
    const mb_array *result = call->arrays[MB_CROP_RESULT];
    mb_array part = *call->arrays[MB_CROP_A];
    int64_t offset = 0;
    for (int i = 0; i < part.shape.rank; i++)
        offset += mb_crop_front(params, i, &part.shape, &result->shape) * part.strides[i];
    part.shape = result->shape;
    part.data = (char *)part.data + offset * (int64_t)mb_cuda_dtype_bytes(part.dtype);
    return mb_cuda_copy_array(call, &part, result, 1, 0);
}
