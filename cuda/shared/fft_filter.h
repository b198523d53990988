/*
** The passes along the first axis with the product between them (apply_otf.cu), for the operators
** that contain them.
*/
#ifndef MB_CUDA_FFT_FILTER_H
#define MB_CUDA_FFT_FILTER_H

#include "ops/op.h"

/* Transforms `data` along the first axis, multiplies it by otf (whole or in planes) or its
** conjugate and by scale, and transforms it back; or does the same by convolution. `data` has the
** spectra of planes in the layout of fft_stages.cuh, for a grid of n samples. Only if
** mb_apply_otf_fused. */
extern "C" mb_status mb_cuda_fft_filter(const mb_op_call *call, float *data, const mb_array *otf,
                                        const int64_t n[3], float scale, bool conj);

#endif
