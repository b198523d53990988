/*
** rfft on CUDA: real to complex over trailing axes with cuFFT. The plan contains the layout, in
** place or out of place.
*/
#include "shared/cuda_launch.cuh"
#include "ops/fft/op_rfft.h"

extern "C" mb_status mb_cuda_rfft(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_RFFT_A], *result = call->arrays[MB_RFFT_RESULT];
    for (int i = 0; i < a->shape.rank; i++)
        if (a->shape.dims[i] == 0)
            return MB_STATUS_OK;
    return mb_cuda_transform(call, MB_RFFT_FFT, a->data, result->data, MB_RFFT_WORK);
}
