/*
** normal_operator on CUDA: launches of the transforms along columns, and the tables of factors.
*/
#include "iterative/normal_columns_kernel.cuh"

template <class C>
__global__ static void normal_twiddles_kernel(float2 *table)
{
    static_assert(C::table % 2 == 0, "tables are copied two numbers at a time");
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < C::table; i += gridDim.x * blockDim.x) {
        const int k = i - C::second, inner = C::R1 * C::R2;
        table[i] = i < C::second ? mb_fft_root(i / C::R1 * (i % C::R1), inner)
                                 : mb_fft_root(k / inner * (k % inner), C::N);
    }
}

/* The pixels of the rows, and the factors of the directions. */
__global__ static void __launch_bounds__(MB_THREADS)
    normal_tables_kernel(const __grid_constant__ normal_job job, int64_t slices)
{
    const int64_t at = blockIdx.x * (int64_t)MB_THREADS + threadIdx.x,
                  step = gridDim.x * (int64_t)MB_THREADS;
    for (int64_t y = at; y < job.ny; y += step)
        job.runs[y] = mb_circle_row(&job.circle, y, job.nx);
    for (int64_t slice = at; slice < slices && job.direction.data; slice += step)
        job.factors[slice] = mb_slice_factor_at(&job.factor, slice);
}

template <class C>
static mb_status twiddles(const mb_op_call *call, const float2 *table)
{
    normal_twiddles_kernel<C><<<(C::table + 127) / 128, 128, 0, mb_stream(call)>>>((float2 *)table);
    MB_LAUNCHED("normal_twiddles_kernel");
    return MB_STATUS_OK;
}

static mb_status row_twiddles(const mb_op_call *call, const normal_job &job)
{
    switch (job.px) {
#define CASE(N)                                                                                    \
    case N: return twiddles<normal_row_cut<N>>(call, job.row_twiddles);
        NORMAL_EXTENTS(CASE)
#undef CASE
    }
    return MB_STATUS_OK;
}

static mb_status column_twiddles(const mb_op_call *call, const normal_job &job)
{
    switch (job.py) {
#define CASE(N)                                                                                    \
    case N: return twiddles<normal_cut<N>>(call, job.column_twiddles);
        NORMAL_EXTENTS(CASE)
#undef CASE
    }
    return MB_STATUS_OK;
}

mb_status normal_tables(const mb_op_call *call, const normal_job &job, int64_t slices)
{
    const int64_t items = job.ny > slices ? job.ny : slices;
    normal_tables_kernel<<<mb_blocks(call, items, MB_THREADS), MB_THREADS, 0, mb_stream(call)>>>(
        job, slices);
    MB_LAUNCHED("normal_tables_kernel");
    MB_TRY(row_twiddles(call, job));
    return column_twiddles(call, job);
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
