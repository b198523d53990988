/*
** The response table of ramp_filter on the device: its cost grows with the square of the length, so
** a warp makes one entry.
*/
#ifndef MB_CUDA_RAMP_TABLE_CUH
#define MB_CUDA_RAMP_TABLE_CUH

#include "shared/cuda_launch.cuh"
#include "ops/tomography/op_ramp_filter.h"

/* The sum of mb_ramp_filter_ramp, terms 64 apart in each lane, the small ones first; the
** cosines by turning, in double. */
__global__ static void __launch_bounds__(MB_THREADS)
    mb_ramp_table_kernel(float *table, int filter, double cutoff, double scale, int64_t padded)
{
    const double pi = 3.14159265358979323846;
    const int lane = threadIdx.x % 32;
    const int64_t k = (blockIdx.x * (int64_t)MB_THREADS + threadIdx.x) / 32;
    if (k > padded / 2)
        return; /* the whole warp */
    double sum = 0;
    if (mb_ramp_filter_is_ramp(filter, cutoff, padded, k)) {
        const int64_t last = padded / 2 - 1 - 2 * lane;
        double s, c, step_s, step_c;
        sincospi(2.0 * (double)(k * last % padded) / (double)padded, &s, &c);
        sincospi(2.0 * (double)(k * 64 % padded) / (double)padded, &step_s, &step_c);
        for (int64_t n = last; n >= 1; n -= 64) {
            sum += c / ((double)n * (double)n);
            const double next = c * step_c + s * step_s;
            s = s * step_c - c * step_s;
            c = next;
        }
    }
    for (int step = 16; step > 0; step >>= 1)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0)
        table[k] =
            mb_ramp_filter_entry(filter, cutoff, scale, padded, k, 0.25 - 2.0 / (pi * pi) * sum);
}

static inline mb_status mb_ramp_table(const mb_op_call *call, float *table, int filter,
                                      double cutoff, double scale, int64_t padded)
{
    const int64_t warps = padded / 2 + 1;
    mb_ramp_table_kernel<<<(unsigned)((warps * 32 + MB_THREADS - 1) / MB_THREADS), MB_THREADS, 0,
                           mb_stream(call)>>>(table, filter, cutoff, scale, padded);
    return MB_LAUNCH_STATUS("mb_ramp_table_kernel");
}

#endif
