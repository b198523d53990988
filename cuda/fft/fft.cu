/*
** fft on CUDA: complex transforms over trailing axes with cuFFT, whose plans work both in place and
** out of place.
*/
#include "shared/fft_scale.cuh"
#include "ops/fft/op_fft.h"

extern "C" mb_status mb_cuda_fft(const mb_op_call *call)
{
    const mb_fft_params *params = (const mb_fft_params *)call->params;
    const mb_array *a = call->arrays[MB_FFT_OP_A], *result = call->arrays[MB_FFT_OP_RESULT];
    const int64_t points = mb_fft_op_points(&a->shape, params->axes);
    const int64_t count = mb_count(a);
    if (count == 0)
        return MB_STATUS_OK;
    MB_TRY(mb_cuda_transform(call, MB_FFT_OP_IN_PLACE, a->data, result->data,
                             MB_FFT_OP_IN_PLACE_WORK));
    if (!params->inverse || !params->normalize)
        return MB_STATUS_OK;
    return mb_cuda_scale(call, (float *)result->data, 2 * count, 1.0 / (double)points);
}
