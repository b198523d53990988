/*
** Launches of blocks that stay on the device and walk over items.
*/
#ifndef MB_CUDA_RESIDENT_LAUNCH_CUH
#define MB_CUDA_RESIDENT_LAUNCH_CUH

#include "shared/cuda_launch.cuh"

/* As many blocks as fit on the device together, at most one for each item, with this much dynamic
** shared memory. The kernel takes the job. */
template <class Job>
static mb_status mb_launch_resident(const mb_op_call *call, void (*kernel)(const Job),
                                    const Job &job, int threads, int64_t shared, int64_t items)
{
    int per = 0;
    MB_CUDA(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 (int)shared));
    MB_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per, (const void *)kernel, threads,
                                                          (size_t)shared));
    const int64_t most = (int64_t)(per > 0 ? per : 1) * call->device->facts.threads;
    kernel<<<(unsigned)(items < most ? items : most), threads, (size_t)shared, mb_stream(call)>>>(
        job);
    return MB_LAUNCH_STATUS("a kernel of resident blocks");
}

#endif
