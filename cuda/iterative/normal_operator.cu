/*
** normal_operator on CUDA. Fused: three launches for a batch of pairs, rows, columns with the
** spectrum, and rows back, after two that make the tables of the transforms. Other grids go through
** the FFT library, pair by pair: pad, transform, multiply, transform back, crop. Then the sums of
** slices are added.
*/
#include "iterative/normal_lines.cuh"

/* ---- by the library ---- */

__global__ static void __launch_bounds__(MB_THREADS)
    normal_pad(const __grid_constant__ normal_job job, float2 *grid, int64_t points)
{
    MB_GRID_LOOP(i, points)
    {
        const int64_t y = i / job.px;
        const int x = (int)(i - y * job.px);
        float2 v = make_float2(0, 0);
        if (y < job.ny && x < job.nx) {
            const mb_circle_run run = mb_circle_row(&job.circle, y, job.nx);
            for (int part = 0; part < job.slices && x >= run.first && x < run.end; part++) {
                const int64_t slice = job.first + part;
                float value = mb_slice_row(&job.a, slice, y)[x];
                if (job.direction.data) {
                    const float factor = mb_slice_factor_at(&job.factor, slice);
                    float *p = mb_slice_row(&job.direction, slice, y) + x;
                    if (factor != 0)
                        value = fmaf(factor, *p, value);
                    *p = value;
                }
                (part ? v.y : v.x) = value;
            }
        }
        grid[i] = v;
    }
}

__global__ static void __launch_bounds__(MB_THREADS)
    normal_multiply(const __grid_constant__ normal_job job, float2 *grid, int64_t points)
{
    MB_GRID_LOOP(i, points)
    {
        const int64_t y = i / job.px;
        const int x = (int)(i - y * job.px);
        const bool mirrored = 2 * x > job.px;
        const float w = __ldg(job.kernel + (mirrored ? job.px - x : x) * job.kernel_row +
                              (mirrored && y > 0 ? job.py - y : y));
        grid[i] = make_float2(grid[i].x * w, grid[i].y * w);
    }
}

/* A block makes a row of the pair at a time, and the sums of its products. */
__global__ static void __launch_bounds__(MB_THREADS)
    normal_crop(const __grid_constant__ normal_job job, const float2 *grid)
{
    const mb_slice_view &p = job.direction.data ? job.direction : job.a;
    for (int64_t y = blockIdx.x; y < job.ny; y += gridDim.x) {
        const mb_circle_run run = mb_circle_row(&job.circle, y, job.nx);
        double sums[2] = {0, 0};
        for (int x = threadIdx.x; x < job.nx; x += MB_THREADS) {
            const bool inside = x >= run.first && x < run.end;
            const float2 v = grid[y * job.px + x];
            for (int part = 0; part < job.slices; part++) {
                const int64_t slice = job.first + part;
                const float q = inside ? (part ? v.y : v.x) * job.scale : 0.0f;
                if (inside && job.partials)
                    sums[part] += (double)q * (double)mb_slice_row(&p, slice, y)[x];
                mb_slice_row(&job.result, slice, y)[x] = q;
            }
        }
        for (int part = 0; part < job.slices && job.partials; part++) {
            const double sum = mb_block_fold(sums[part], mb_fold_sum());
            if (threadIdx.x == 0)
                job.partials[(job.first + part) * job.partial_count + y] = sum;
        }
    }
}

static mb_status run_library(const mb_op_call *call, normal_job job, int64_t slices)
{
    const int64_t points = (int64_t)job.py * job.px;
    for (job.first = 0; job.first < slices; job.first += 2) {
        job.slices = slices - job.first < 2 ? 1 : 2;
        normal_pad<<<mb_blocks(call, points, MB_THREADS), MB_THREADS, 0, mb_stream(call)>>>(
            job, job.spectra, points);
        MB_LAUNCHED("normal_pad");
        MB_TRY(mb_cuda_transform(call, 0, job.spectra, job.spectra, MB_NORMAL_OPERATOR_WORK));
        normal_multiply<<<mb_blocks(call, points, MB_THREADS), MB_THREADS, 0, mb_stream(call)>>>(
            job, job.spectra, points);
        MB_LAUNCHED("normal_multiply");
        MB_TRY(mb_cuda_transform(call, 1, job.spectra, job.spectra, MB_NORMAL_OPERATOR_WORK + 1));
        normal_crop<<<mb_blocks(call, job.ny, 1), MB_THREADS, 0, mb_stream(call)>>>(job,
                                                                                    job.spectra);
        MB_LAUNCHED("normal_crop");
    }
    return MB_STATUS_OK;
}

/* ---- fused ---- */

static mb_status run_fused(const mb_op_call *call, normal_job job, int64_t slices)
{
    const int64_t batch = 2 * mb_normal_batch((slices + 1) / 2, job.ny, job.px);
    MB_TRY(normal_tables(call, job, slices));
    for (job.first = 0; job.first < slices; job.first += batch) {
        job.slices = (int)(slices - job.first < batch ? slices - job.first : batch);
        job.pairs = (job.slices + 1) / 2;
        MB_TRY(normal_rows_forth(call, job));
        MB_TRY(normal_columns(call, job));
        MB_TRY(normal_rows_back(call, job));
    }
    return MB_STATUS_OK;
}

/* A block for each slice. */
__global__ static void __launch_bounds__(MB_THREADS)
    normal_dots(const double *partials, int64_t count, double *dots, int64_t step)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += MB_THREADS)
        sum += partials[blockIdx.x * count + i];
    sum = mb_block_fold(sum, mb_fold_sum());
    if (threadIdx.x == 0)
        dots[blockIdx.x * step] = sum;
}

extern "C" mb_status mb_cuda_normal_operator(const mb_op_call *call)
{
    const mb_normal_operator_params *p = (const mb_normal_operator_params *)call->params;
    const mb_array *a = call->arrays[MB_NORMAL_OPERATOR_A],
                   *kernel = call->arrays[MB_NORMAL_OPERATOR_KERNEL],
                   *dots = call->arrays[MB_NORMAL_OPERATOR_DOTS];
    const int64_t slices = mb_slice_count(&a->shape),
                  grid[2] = {kernel->shape.dims[1], 2 * (kernel->shape.dims[0] - 1)};
    const bool fused = mb_normal_fused(&call->device->facts, grid);
    normal_job job = {};
    job.a = mb_slice_view_of(a);
    job.direction = mb_slice_view_of(call->arrays[MB_NORMAL_OPERATOR_DIRECTION]);
    job.result = mb_slice_view_of(call->arrays[MB_NORMAL_OPERATOR_RESULT]);
    job.factor = mb_slice_factor_of(call->arrays[MB_NORMAL_OPERATOR_GROWTH],
                                    call->arrays[MB_NORMAL_OPERATOR_OVER]);
    job.ny = (int)a->shape.dims[a->shape.rank - 2];
    job.nx = (int)a->shape.dims[a->shape.rank - 1];
    job.py = (int)grid[0];
    job.px = (int)grid[1];
    if (slices == 0 || job.ny == 0 || job.nx == 0)
        return dots && slices ? call->device->backend->fill(call->device->self, dots->data, 0,
                                                            8 * (uint64_t)slices)
                              : MB_STATUS_OK;
    job.spectra = (float2 *)call->slots[MB_NORMAL_OPERATOR_SPECTRUM];
    job.pair_points = (int64_t)job.ny * job.px;
    job.kernel = (const float *)kernel->data;
    job.kernel_row = kernel->strides[0];
    job.partials = dots ? (double *)call->slots[MB_NORMAL_OPERATOR_PARTIALS] : NULL;
    job.partial_count = mb_normal_partials(fused, job.ny, job.px);
    job.circle = mb_circle_of(p->circle, job.ny, job.nx);
    job.scale = (float)(1.0 / ((double)job.py * (double)job.px));
    if (fused) {
        const mb_normal_tables tables = mb_normal_tables_of(grid, job.ny);
        char *slot = (char *)call->slots[MB_NORMAL_OPERATOR_TABLES];
        job.row_twiddles = (const float2 *)slot;
        job.column_twiddles = (const float2 *)(slot + tables.columns);
        job.runs = (mb_circle_run *)(slot + tables.runs);
        job.factors = (float *)(slot + tables.factors);
        while (1 << job.shift < MB_NORMAL_LANES(job.py))
            job.shift++;
    }
    MB_TRY(fused ? run_fused(call, job, slices) : run_library(call, job, slices));
    if (dots) {
        normal_dots<<<(unsigned)slices, MB_THREADS, 0, mb_stream(call)>>>(
            job.partials, job.partial_count, (double *)dots->data, dots->strides[0]);
        MB_LAUNCHED("normal_dots");
    }
    return MB_STATUS_OK;
}
