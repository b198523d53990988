/*
** Strided copies with conversion, used by convert and by operators whose result is a view of the
** input (crop).
*/
#ifndef MB_CUDA_COPY_CUH
#define MB_CUDA_COPY_CUH

#include "shared/cuda_launch.cuh"

/* to[i] = from[i] * scale + offset over equal shapes; any dtypes (complex to real takes the real
** part), any strides. */
extern "C" mb_status mb_cuda_copy_array(const mb_op_call *call, const mb_array *from,
                                        const mb_array *to, double scale, double offset);

#endif
