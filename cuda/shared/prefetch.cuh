/*
** Data that will be read soon.
*/
#ifndef MB_CUDA_PREFETCH_CUH
#define MB_CUDA_PREFETCH_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* Brings so many bytes to the second-level cache: multiples of 16, as the address. */
__device__ static __forceinline__ void mb_prefetch(const void *from, int bytes)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes));
#endif
}

/* The multiples of 16 bytes that lie in so many numbers from `from` on. */
__device__ static __forceinline__ void mb_prefetch_floats(const float *from, int64_t count)
{
    const int skip = -(int)((uintptr_t)from / 4 % 4) & 3;
    const int64_t left = (count - skip) / 4 * 4;
    if (left > 0)
        mb_prefetch(from + skip, (int)(4 * left));
}

#endif
