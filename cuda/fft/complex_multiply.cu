/*
** complex_multiply on CUDA: a spectrum times a transfer function (or its conjugate), in place.
*/
#include "fft/multiply_spectrum.cuh"
#include "ops/fft/op_complex_multiply.h"

extern "C" mb_status mb_cuda_complex_multiply(const mb_op_call *call)
{
    const mb_complex_multiply_params *p = (const mb_complex_multiply_params *)call->params;
    const mb_array *a = call->arrays[MB_COMPLEX_MULTIPLY_A],
                   *b = call->arrays[MB_COMPLEX_MULTIPLY_B];
    return mb_cuda_multiply_spectrum(call, (float2 *)a->data, (const float2 *)b->data, mb_count(a),
                                     mb_count(b), p->scale, p->conj);
}
