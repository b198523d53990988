/*
** Filters of profiles on CUDA (ops/stripes/profile_filter.h). A thread sums all taps for 8
** neighboring columns; a block brings the values that a run of taps needs to shared memory, where
** every 8 values are followed by a gap, so that threads read from different banks.
*/
#ifndef MB_CUDA_PROFILE_FILTER_CUH
#define MB_CUDA_PROFILE_FILTER_CUH

#include "ops/stripes/profile_filter.h"
#include "shared/cuda_launch.cuh"

#define PROFILE_THREADS 64
#define PROFILE_OWN 8   /* columns of a thread */
#define PROFILE_RUN 256 /* taps at a time */
#define PROFILE_BLOCK (PROFILE_THREADS * PROFILE_OWN)
#define PROFILE_ROOM ((PROFILE_BLOCK + PROFILE_RUN) / PROFILE_OWN * (PROFILE_OWN + 1) + 16)

#define PROFILE_MOST 24 /* recipes of a launch */

struct profile_job {
    mb_profile_filter f;
    const float *from, *even, *odd; /* from: [sinogram][mode][column] */
    float *to;
    int modes;
    mb_profile_recipe recipe[PROFILE_MOST];
};

__device__ static __forceinline__ int profile_place(int i)
{
    return i + i / PROFILE_OWN;
}

/* Adds the taps 1 ... reach: values at c - d plus (or minus, for odd taps) those at c + d. */
template <bool ODD>
__device__ static __forceinline__ void
profile_add(float (&sum)[PROFILE_OWN], const mb_profile_filter &f, const float *row,
            const float *taps, int64_t c0, float *before, float *after, float *tap)
{
    const int own = threadIdx.x * PROFILE_OWN;
    for (int64_t d0 = (f.reach - 1) / PROFILE_RUN * PROFILE_RUN; d0 >= 0; d0 -= PROFILE_RUN) {
        /* taps d0 + 1 ... d0 + PROFILE_RUN; those beyond the reach are 0 */
        __syncthreads();
        for (int i = threadIdx.x; i < PROFILE_RUN; i += PROFILE_THREADS)
            tap[i] = d0 + 1 + i <= f.reach ? taps[d0 + 1 + i] : 0.0f;
        for (int i = threadIdx.x; i < PROFILE_BLOCK + PROFILE_RUN; i += PROFILE_THREADS) {
            before[profile_place(i)] =
                row[mb_profile_column(&f, f.left + c0 - d0 - PROFILE_RUN + i)];
            after[profile_place(i)] = row[mb_profile_column(&f, f.left + c0 + d0 + 1 + i)];
        }
        __syncthreads();
        for (int k0 = 0; k0 < PROFILE_RUN; k0 += PROFILE_OWN) {
            float low[2 * PROFILE_OWN], high[2 * PROFILE_OWN];
            /* tap index k0 + k: d = d0 + 1 + k0 + k; before at own + RUN - 1 - k0 - k + i */
#pragma unroll
            for (int i = 0; i < 2 * PROFILE_OWN; i++) {
                low[i] = before[profile_place(own + PROFILE_RUN - PROFILE_OWN - k0 + i)];
                high[i] = after[profile_place(own + k0 + i)];
            }
#pragma unroll
            for (int k = 0; k < PROFILE_OWN; k++) {
                const float w = tap[k0 + k];
#pragma unroll
                for (int i = 0; i < PROFILE_OWN; i++) {
                    const float l = low[PROFILE_OWN - 1 - k + i], h = high[k + i];
                    sum[i] = fmaf(w, ODD ? l - h : l + h, sum[i]);
                }
            }
        }
    }
}

static __global__ void __launch_bounds__(PROFILE_THREADS) profile_filter_kernel(profile_job job)
{
    __shared__ float before[PROFILE_ROOM], after[PROFILE_ROOM], tap[PROFILE_RUN];
    const int mode = blockIdx.y;
    const mb_profile_recipe r = job.recipe[mode];
    const int64_t c0 = blockIdx.x * (int64_t)PROFILE_BLOCK, columns = job.f.columns;
    const float *all = job.from + blockIdx.z * (int64_t)job.modes * columns;
    const float *row = all + mode * columns;
    float even[PROFILE_OWN] = {}, odd[PROFILE_OWN] = {};
    profile_add<false>(even, job.f, row, job.even, c0, before, after, tap);
    if (r.odd != 0.0f)
        profile_add<true>(odd, job.f, all + r.other * columns, job.odd, c0, before, after, tap);
    float *to = job.to + (blockIdx.z * (int64_t)job.modes + mode) * columns;
#pragma unroll
    for (int i = 0; i < PROFILE_OWN; i++) {
        const int64_t c = c0 + threadIdx.x * PROFILE_OWN + i;
        if (c < columns)
            to[c] = r.own * row[c] + r.taps * (even[i] + job.even[0] * row[c] + r.odd * odd[i]);
    }
}

/* Filters job.modes profiles of `sinograms` sinograms. job.to may not be job.from. */
static inline mb_status profile_run_filter(const mb_op_call *call, const profile_job &job,
                                           int64_t sinograms)
{
    const dim3 blocks((unsigned)mb_modes_up(job.f.columns, PROFILE_BLOCK), (unsigned)job.modes,
                      (unsigned)sinograms);
    profile_filter_kernel<<<blocks, PROFILE_THREADS, 0, mb_stream(call)>>>(job);
    return MB_LAUNCH_STATUS("profile_filter_kernel");
}

#endif
