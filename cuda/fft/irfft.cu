/*
** irfft on CUDA: complex to real over trailing axes with cuFFT, from a copy of the input if the
** input must be kept.
*/
#include "shared/fft_scale.cuh"
#include "ops/fft/op_irfft.h"

extern "C" mb_status mb_cuda_irfft(const mb_op_call *call)
{
    const mb_irfft_params *params = (const mb_irfft_params *)call->params;
    const mb_array *a = call->arrays[MB_IRFFT_A], *result = call->arrays[MB_IRFFT_RESULT];
    const int64_t count = mb_count(result);
    if (count == 0)
        return MB_STATUS_OK;
    void *input = a->data, *copy = call->slots[MB_IRFFT_COPY];
    if (copy) {
        MB_CUDA(cudaMemcpyAsync(copy, a->data, call->slot_bytes[MB_IRFFT_COPY],
                                cudaMemcpyDeviceToDevice, (cudaStream_t)call->stream));
        input = copy;
    }
    MB_TRY(mb_cuda_transform(call, MB_IRFFT_FFT, input, result->data, MB_IRFFT_WORK));
    if (!params->normalize)
        return MB_STATUS_OK;
    return mb_cuda_scale(call, (float *)result->data, count,
                         1.0 / (double)mb_irfft_points(params, &a->shape));
}
