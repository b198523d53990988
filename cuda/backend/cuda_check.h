/*
** Errors of the CUDA plug-in, and its door to the runtime. The plug-in reaches the runtime only
** through `mb_cuda_core`, the table given to mb_backend_entry: it must have no unresolved symbol of
** the runtime. Everything here is hidden from the program that loads the plug-in.
*/
#ifndef MB_CUDA_CHECK_H
#define MB_CUDA_CHECK_H

#include "ops/op.h"
#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const mb_core_api *mb_cuda_core;

/* Turns a CUDA error into a recorded failure: memory refused is MB_STATUS_MEMORY, all else
** MB_STATUS_DEVICE. A sticky error (the context is lost) is said to be one, and so is every later
** call's. */
mb_status mb_cuda_status(cudaError_t error, const char *what);

/* Only while the context lives can the error be cleared; after a sticky one every call of the
** plug-in fails at once. */
bool mb_cuda_sticky(cudaError_t error);

/* Executes a transform that the operator planned, on the call's stream: the numbers of the
** transform and of its work area among the call's FFTs and slots. */
mb_status mb_cuda_transform(const mb_op_call *call, int fft_number, void *in, void *out,
                            int work_slot);

#define MB_CUDA(call)                                                                              \
    do {                                                                                           \
        cudaError_t mb_cuda_error_ = (call);                                                       \
        if (mb_cuda_error_ != cudaSuccess)                                                         \
            return mb_cuda_status(mb_cuda_error_, #call);                                          \
    } while (0)

/* After each launch. It sees bad launch settings now; a fault inside a kernel shows at the next
** call that waits. */
#define MB_LAUNCHED(kernel)                                                                        \
    do {                                                                                           \
        cudaError_t mb_cuda_error_ = cudaGetLastError();                                           \
        if (mb_cuda_error_ != cudaSuccess)                                                         \
            return mb_cuda_status(mb_cuda_error_, "launch of " kernel);                            \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
