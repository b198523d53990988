/*
** The passes along the first axis with the product between them (apply_otf.cu), for the operators
** that contain them.
*/
#ifndef MB_CUDA_FFT_FILTER_H
#define MB_CUDA_FFT_FILTER_H

#include "ops/op.h"

/* data, the spectra of planes as the passes over them leave them (fft_stages.cuh), of a grid of n
** samples: transformed, times otf or its conjugate times scale, transformed back. Only where
** mb_apply_otf_fused. */
extern "C" mb_status mb_cuda_fft_filter(const mb_op_call *call, float *data, const mb_array *otf,
                                        const int64_t n[3], float scale, bool conj);

#endif
