/*
** irfft on CUDA: complex to real over trailing axes through cuFFT. The input's contents are lost.
*/
#include "fft_scale.cuh"
#include "ops/op_irfft.h"

extern "C" mb_status mb_cuda_irfft(const mb_op_call *call)
{
    const mb_irfft_params *params = (const mb_irfft_params *)call->params;
    const mb_array *a = call->arrays[MB_IRFFT_A], *result = call->arrays[MB_IRFFT_RESULT];
    const int rank = result->shape.rank;
    const int64_t width = result->shape.dims[rank - 1], pitch = rank > 1 ? result->strides[rank - 2] : width;
    int64_t rows = 1, points = 1;
    for (int i = 0; i < rank; i++) {
        if (i < rank - 1)
            rows *= result->shape.dims[i];
        if (i >= rank - params->axes)
            points *= result->shape.dims[i];
    }
    if (rows == 0 || width == 0)
        return MB_STATUS_OK;
    MB_TRY(mb_cuda_core->fft_exec(call->device, call->ffts[MB_IRFFT_FFT], a->data, result->data, call->slots[MB_IRFFT_WORK]));
    if (!params->normalise)
        return MB_STATUS_OK;
    if (pitch == width)
        return mb_cuda_scale_rows(call, (float *)result->data, 1, rows * width, rows * width, 1.0 / (double)points);
    return mb_cuda_scale_rows(call, (float *)result->data, rows, width, pitch, 1.0 / (double)points);
}
