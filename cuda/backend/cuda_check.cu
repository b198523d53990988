/*
** Turns CUDA's errors into failures of the runtime (cuda_check.h).
*/
#include "backend/cuda_check.h"

const mb_core_api *mb_cuda_core;

bool mb_cuda_sticky(cudaError_t error)
{
    switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable: return true;
    default: return false;
    }
}

mb_status mb_cuda_status(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return MB_STATUS_OK;
    /* an error that is not sticky must not be seen again by the next launch check */
    cudaGetLastError();
    mb_status code = error == cudaErrorMemoryAllocation ? MB_STATUS_MEMORY : MB_STATUS_DEVICE;
    return mb_cuda_core->fail(
        code, NULL, "CUDA: %s failed: %s (%s)%s", what, cudaGetErrorString(error),
        cudaGetErrorName(error),
        mb_cuda_sticky(error) ? "; this process has lost the device, start it again" : "");
}
