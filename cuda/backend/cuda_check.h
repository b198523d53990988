/*
** Errors of the CUDA plug-in, and its access to the runtime. The plug-in uses the runtime only
** through `mb_cuda_core`, the table given to mb_backend_entry, because it must not have unresolved
** symbols of the runtime. Everything here is hidden from the program that loads the plug-in.
*/
#ifndef MB_CUDA_CHECK_H
#define MB_CUDA_CHECK_H

#include "ops/op.h"
#include <cuda_runtime.h>

extern const mb_core_api *mb_cuda_core;

/* Turns a CUDA error into a recorded failure: MB_STATUS_MEMORY for refused memory,
** MB_STATUS_UNSUPPORTED where this build has no code for the device, MB_STATUS_INTERNAL for a call
** with wrong arguments, which leaves the device as it was. Any other error is MB_STATUS_DEVICE: the
** runtime then treats the device as lost. */
mb_status mb_cuda_status(cudaError_t error, const char *what);

/* Does the error leave the device usable? */
bool mb_cuda_harmless(cudaError_t error);

/* Executes a transform that the operator planned, on the call's stream. The numbers are those of
** the transform and of its work area among the call's FFTs and slots. */
mb_status mb_cuda_transform(const mb_op_call *call, int fft_number, void *in, void *out,
                            int work_slot);

/* A function of the driver by name; NULL if this driver lacks it. */
void *mb_cuda_driver_function(const char *name);

#define MB_CUDA(call) MB_TRY(mb_cuda_status((call), #call))

/* Used after each launch. It reports bad launch settings at once; a fault inside a kernel is
** reported by the next call that waits. The error state belongs to the thread, not to the device:
** the backend clears it before it calls a kernel's launcher. */
#define MB_LAUNCH_STATUS(kernel) mb_cuda_status(cudaGetLastError(), "launch of " kernel)
#define MB_LAUNCHED(kernel) MB_TRY(MB_LAUNCH_STATUS(kernel))

#endif
