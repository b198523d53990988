/*
** Launches in a chain: the next one begins where multiprocessors are free while the last blocks of
** the one before it still run. What a block does before mb_wait_before must not depend on the
** launches of the chain, nor touch what they write. For devices of compute capability 9.0.
**
** Every block calls mb_let_next; the launches before have all ended for a block that has waited, if
** each of them has a block that waits. What blocks of another launch wrote is to be loaded by way
** of the second-level cache (__ldcg): the first-level one may be older.
*/
#ifndef MB_CUDA_EARLY_LAUNCH_CUH
#define MB_CUDA_EARLY_LAUNCH_CUH

#include "shared/cuda_launch.cuh"

__device__ static __forceinline__ void mb_let_next(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Until all earlier launches have ended, and what they wrote can be read. */
__device__ static __forceinline__ void mb_wait_before(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* `early`: the launch before this one in the stream is of the chain. The kernel takes the job. */
template <class Job>
static mb_status mb_launch_early(bool early, void (*kernel)(const Job), const Job &job, dim3 blocks,
                                 unsigned threads, size_t shared, cudaStream_t stream)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = early ? 1 : 0;
    MB_CUDA(cudaLaunchKernelEx(&config, kernel, job));
    return MB_LAUNCH_STATUS("a kernel of a chain");
}

#endif
