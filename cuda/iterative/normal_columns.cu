/*
** normal_operator on CUDA: launches of the transforms along columns, and the tables of factors.
*/
#include "iterative/normal_columns_kernel.cuh"

/* The factors of a transform. */
struct normal_factors {
    int r1, inner, n; /* R1, R1 R2 and N of its cut */
    int second, count;
    float2 *table;
};

template <class C>
static normal_factors normal_factors_of(const float2 *table)
{
    static_assert(C::table % 2 == 0, "tables are copied two numbers at a time");
    return {C::R1, C::R1 * C::R2, C::N, C::second, C::table, (float2 *)table};
}

__device__ static __forceinline__ void normal_make_factor(const normal_factors &f, int i)
{
    const int k = i - f.second;
    f.table[i] = k < 0 ? mb_fft_root(i / f.r1 * (i % f.r1), f.inner)
                       : mb_fft_root(k / f.inner * (k % f.inner), f.n);
}

/* The factors of rows and of columns, the pixels of the rows, and the factors of the directions. */
__global__ static void __launch_bounds__(MB_THREADS)
    normal_tables_kernel(const __grid_constant__ normal_job job, int64_t slices,
                         const normal_factors rows, const normal_factors columns)
{
    const int64_t at = blockIdx.x * (int64_t)MB_THREADS + threadIdx.x,
                  step = gridDim.x * (int64_t)MB_THREADS;
    for (int64_t i = at; i < rows.count + columns.count; i += step) {
        const bool first = i < rows.count;
        normal_make_factor(first ? rows : columns, (int)(first ? i : i - rows.count));
    }
    for (int64_t y = at; y < job.ny; y += step)
        job.runs[y] = mb_circle_row(&job.circle, y, job.nx);
    for (int64_t slice = at; slice < slices && job.direction.data; slice += step)
        job.factors[slice] = mb_slice_factor_at(&job.factor, slice);
}

static normal_factors normal_row_factors(const normal_job &job)
{
    switch (job.px) {
#define CASE(N)                                                                                    \
    case N: return normal_factors_of<normal_row_cut<N>>(job.row_twiddles);
        NORMAL_EXTENTS(CASE)
#undef CASE
    }
    return {};
}

static normal_factors normal_column_factors(const normal_job &job)
{
    switch (job.py) {
#define CASE(N)                                                                                    \
    case N: return normal_factors_of<normal_cut<N>>(job.column_twiddles);
        NORMAL_EXTENTS(CASE)
#undef CASE
    }
    return {};
}

mb_status normal_tables(const mb_op_call *call, const normal_job &job, int64_t slices)
{
    const normal_factors rows = normal_row_factors(job), columns = normal_column_factors(job);
    const int64_t factors = rows.count + columns.count, most = job.ny > slices ? job.ny : slices;
    normal_tables_kernel<<<mb_blocks(call, factors > most ? factors : most, MB_THREADS), MB_THREADS,
                           0, mb_stream(call)>>>(job, slices, rows, columns);
    MB_LAUNCHED("normal_tables_kernel");
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
