/*
** normal_operator on CUDA: launches of the transforms along columns, and the tables of factors.
*/
#include "iterative/normal_columns_kernel.cuh"

template <int N>
__global__ static void normal_twiddles_kernel(float2 *table)
{
    typedef normal_cut<N> C;
    static_assert(C::table % 2 == 0, "tables are copied two numbers at a time");
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < C::table; i += gridDim.x * blockDim.x) {
        const int k = i - C::second, inner = C::R1 * C::R2;
        table[i] = i < C::second ? mb_fft_root(i / C::R1 * (i % C::R1), inner)
                                 : mb_fft_root(k / inner * (k % inner), C::N);
    }
}

template <int N>
static mb_status twiddles(const mb_op_call *call, float2 *table)
{
    normal_twiddles_kernel<N>
        <<<(normal_cut<N>::table + 127) / 128, 128, 0, mb_stream(call)>>>(table);
    MB_LAUNCHED("normal_twiddles_kernel");
    return MB_STATUS_OK;
}

mb_status normal_twiddles(const mb_op_call *call, int64_t n, const float2 *table)
{
    switch (n) {
#define CASE(N)                                                                                    \
    case N: return twiddles<N>(call, (float2 *)table);
        NORMAL_EXTENTS(CASE)
#undef CASE
    }
    return MB_STATUS_OK;
}

mb_status normal_columns(const mb_op_call *call, const normal_job &job)
{
    switch (job.py) {
#define CASE(N)                                                                                    \
    case N: return normal_launch_columns<N>(call, job);
        NORMAL_POWERS(CASE)
#undef CASE
    }
    return normal_columns_thirds(call, job);
}
