/*
** Turns CUDA's errors into failures of the runtime (cuda_check.h).
*/
#include "backend/cuda_check.h"

const mb_core_api *mb_cuda_core;

/* Errors of a single call. Those that are not listed, and those that CUDA adds later, count as the
** loss of the device: going on after one that is sticky would repeat it in every call. */
bool mb_cuda_harmless(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
    case cudaErrorMemoryAllocation:
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidMemcpyDirection:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorNotReady:
    case cudaErrorNotSupported:
    case cudaErrorHostMemoryAlreadyRegistered:
    case cudaErrorHostMemoryNotRegistered:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion: return true;
    default: return false;
    }
}

static mb_status code_of(cudaError_t error)
{
    switch (error) {
    case cudaErrorMemoryAllocation: return MB_STATUS_MEMORY;
    case cudaErrorNotSupported:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion: return MB_STATUS_UNSUPPORTED;
    default: return mb_cuda_harmless(error) ? MB_STATUS_INTERNAL : MB_STATUS_DEVICE;
    }
}

mb_status mb_cuda_status(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return MB_STATUS_OK;
    /* an error of this call must not be seen again by the next launch check, which may be that of
    ** another device */
    cudaGetLastError();
    return mb_cuda_core->fail(code_of(error), NULL, "CUDA: %s failed: %s (%s)", what,
                              cudaGetErrorString(error), cudaGetErrorName(error));
}
