/*
** phase_filter on CUDA. Fused: three launches for a few frames, rows, columns with the response,
** and rows back, after two that make the tables of the transforms. Other extents go through the
** FFT library, frame by frame: pad, transform, response, transform back, crop.
*/
#include "phase/phase_columns.cuh"

struct phase_launch {
    phase_job job;
    int64_t padded[2];
    unsigned processors;
    cudaStream_t stream;
};

/* One launch of blocks that stay, with this much shared memory. */
static mb_status launch(const phase_launch &l, void (*kernel)(const phase_job), int threads,
                        int64_t shared, int64_t items)
{
    int per = 0;
    MB_CUDA(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 (int)shared));
    MB_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per, (const void *)kernel, threads,
                                                          (size_t)shared));
    const int64_t most = (int64_t)(per > 0 ? per : 1) * l.processors;
    kernel<<<(unsigned)(items < most ? items : most), threads, (size_t)shared, l.stream>>>(l.job);
    return MB_LAUNCH_STATUS("phase_filter");
}

template <int N, bool BACK>
static mb_status rows(const phase_launch &l)
{
    typedef phase_rows<N, BACK> R;
    const int64_t items = (int64_t)l.job.frames * ((l.job.pairs + R::L - 1) / R::L);
    const auto back = 2 * l.job.columns <= N ? phase_rows_back<N, true> : phase_rows_back<N, false>;
    return launch(l, BACK ? back : phase_rows_forth<N>, R::threads, R::shared, items);
}

template <int N, int J>
static mb_status columns_apart(const phase_launch &l)
{
    const bool rational =
        l.job.response.method == MB_PHASE_PAGANIN || l.job.response.method == MB_PHASE_GENERALIZED;
    return launch(l,
                  rational ? phase_columns_filter<N, J, true> : phase_columns_filter<N, J, false>,
                  phase_columns<N>::threads, mb_phase_column_shared(N),
                  (int64_t)l.job.frames * (mb_phase_tiles(l.padded) + 1));
}

template <int N>
static mb_status columns(const phase_launch &l)
{
    constexpr int E = phase_cut<N>::E;
    switch (mb_phase_apart_eighths(l.job.rows, N)) {
    case 2: return columns_apart<N, E / 4>(l);
    case 3: return columns_apart<N, E * 3 / 8>(l);
    default: return columns_apart<N, E / 2>(l);
    }
}

template <int N>
static mb_status twiddles(const phase_launch &l, const float2 *table)
{
    phase_twiddles<N><<<(phase_cut<N>::table + 127) / 128, 128, 0, l.stream>>>((float2 *)table);
    return MB_LAUNCH_STATUS("phase_twiddles");
}

static mb_status twiddles_of(const phase_launch &l, int64_t n, const float2 *table)
{
    switch (n) {
#define CASE(N)                                                                                    \
    case N: return twiddles<N>(l, table);
        PHASE_EXTENTS(CASE)
#undef CASE
    }
    return MB_STATUS_OK;
}

static mb_status rows_of(const phase_launch &l, bool back)
{
    switch (l.padded[1]) {
#define CASE(N)                                                                                    \
    case N: return back ? rows<N, true>(l) : rows<N, false>(l);
        PHASE_EXTENTS(CASE)
#undef CASE
    }
    return MB_STATUS_OK;
}

static mb_status columns_of(const phase_launch &l)
{
    switch (l.padded[0]) {
#define CASE(N)                                                                                    \
    case N: return columns<N>(l);
        PHASE_EXTENTS(CASE)
#undef CASE
    }
    return MB_STATUS_OK;
}

static mb_status run_fused(phase_launch *l, int64_t frames)
{
    phase_job *job = &l->job;
    const phase_job all = *job;
    const int64_t batch = mb_phase_batch(frames, job->rows, l->padded);
    MB_TRY(twiddles_of(*l, l->padded[1], job->row_twiddles));
    MB_TRY(twiddles_of(*l, l->padded[0], job->column_twiddles));
    for (int64_t first = 0; first < frames; first += batch) {
        job->image = all.image + first * all.image_frame;
        job->result = all.result + first * all.result_frame;
        job->frames = (int)(frames - first < batch ? frames - first : batch);
        MB_TRY(rows_of(*l, false));
        MB_TRY(columns_of(*l));
        MB_TRY(rows_of(*l, true));
    }
    return MB_STATUS_OK;
}

/* ---- by the library ---- */

__global__ static void __launch_bounds__(MB_THREADS)
    phase_pad(const __grid_constant__ phase_job job, const float *image, float *grid,
              int64_t points, int width, int pitch)
{
    MB_GRID_LOOP(i, points)
    {
        const int64_t y = i / width;
        const int x = (int)(i - y * width), from = job.column_sources[x], row = job.row_sources[y];
        grid[y * pitch + x] =
            from < 0 || row < 0 ? job.constant : image[row * job.image_row + from] - 1.0f;
    }
}

__global__ static void __launch_bounds__(MB_THREADS)
    phase_multiply_grid(const __grid_constant__ phase_job job, float2 *spectrum, int64_t points,
                        int height)
{
    MB_GRID_LOOP(i, points)
    {
        const int64_t y = i / job.column_count, x = i - y * job.column_count;
        const float factor = mb_phase_response_at(&job.response, job.row_table, job.row_count,
                                                  y < job.row_count ? y : height - y,
                                                  job.column_table, job.column_count, x);
        spectrum[i] = make_float2(spectrum[i].x * factor, spectrum[i].y * factor);
    }
}

__global__ static void __launch_bounds__(MB_THREADS)
    phase_crop(const __grid_constant__ phase_job job, float *result, const float *grid,
               int64_t points, int pitch)
{
    MB_GRID_LOOP(i, points)
    {
        const int64_t y = i / job.columns, x = i - y * job.columns;
        result[y * job.result_row + x] = phase_value(job, grid[y * pitch + x]);
    }
}

static mb_status run_library(const mb_op_call *call, const phase_launch &l, int64_t frames)
{
    const phase_job &job = l.job;
    float *grid = (float *)job.spectra;
    const int pitch = 2 * job.column_count;
    const int64_t points = l.padded[0] * l.padded[1], half = l.padded[0] * job.column_count,
                  kept = (int64_t)job.rows * job.columns;
    for (int64_t i = 0; i < frames; i++) {
        phase_pad<<<mb_blocks(call, points, MB_THREADS), MB_THREADS, 0, l.stream>>>(
            job, job.image + i * job.image_frame, grid, points, (int)l.padded[1], pitch);
        MB_LAUNCHED("phase_pad");
        MB_TRY(mb_cuda_transform(call, MB_PHASE_FILTER_FORWARD, grid, grid, MB_PHASE_FILTER_WORK));
        phase_multiply_grid<<<mb_blocks(call, half, MB_THREADS), MB_THREADS, 0, l.stream>>>(
            job, (float2 *)grid, half, (int)l.padded[0]);
        MB_LAUNCHED("phase_multiply_grid");
        MB_TRY(
            mb_cuda_transform(call, MB_PHASE_FILTER_INVERSE, grid, grid, MB_PHASE_FILTER_WORK + 1));
        phase_crop<<<mb_blocks(call, kept, MB_THREADS), MB_THREADS, 0, l.stream>>>(
            job, job.result + i * job.result_frame, grid, kept, pitch);
        MB_LAUNCHED("phase_crop");
    }
    return MB_STATUS_OK;
}

/* Makes the tables on the host, in pieces that fit the upload, and copies them.
 */
static mb_status make_tables(const mb_op_call *call, const mb_phase_filter_params *p,
                             const int64_t n[2], const int64_t padded[2])
{
    int32_t *sources = (int32_t *)call->slots[MB_PHASE_FILTER_SOURCES];
    for (int i = 0; i < 2; i++) {
        const int64_t entries = 3 * (padded[i] / 2 + 1),
                      room = entries > padded[i] ? entries : padded[i];
        float *table = (float *)malloc(4 * (size_t)room);
        if (!table)
            return mb_cuda_core->fail(MB_STATUS_MEMORY, NULL, "no host memory for %lld numbers",
                                      (long long)room);
        mb_phase_axis(p, i, padded[i], table);
        mb_status status = mb_upload(call, call->slots[MB_PHASE_FILTER_ROW_TABLE + i], table,
                                     4 * (uint64_t)entries);
        for (int64_t k = 0; k < padded[i]; k++)
            ((int32_t *)table)[k] = mb_phase_source(p->padding, k, n[i], padded[i]);
        if (status == MB_STATUS_OK)
            status = mb_upload(call, sources + (i ? padded[0] : 0), table, 4 * (uint64_t)padded[i]);
        free(table);
        MB_TRY(status);
    }
    return MB_STATUS_OK;
}

extern "C" mb_status mb_cuda_phase_filter(const mb_op_call *call)
{
    const mb_phase_filter_params *p = (const mb_phase_filter_params *)call->params;
    const mb_array *image = call->arrays[MB_PHASE_FILTER_IMAGE],
                   *result = call->arrays[MB_PHASE_FILTER_RESULT];
    const int rank = image->shape.rank, last = rank - 2;
    const int64_t frames = rank == 3 ? image->shape.dims[0] : 1,
                  n[2] = {image->shape.dims[last], image->shape.dims[last + 1]};
    phase_launch l;
    phase_job &job = l.job;
    for (int i = 0; i < 2; i++)
        l.padded[i] = mb_phase_padded(p, i, n[i]);
    l.processors = (unsigned)call->device->facts.threads;
    l.stream = mb_stream(call);
    job.image = (const float *)image->data;
    job.result = (float *)result->data;
    job.image_frame = rank == 3 ? image->strides[0] : 0;
    job.result_frame = rank == 3 ? result->strides[0] : 0;
    job.image_row = image->strides[last];
    job.result_row = result->strides[last];
    job.spectra = (float2 *)call->slots[MB_PHASE_FILTER_SPECTRUM];
    job.frame_points = mb_phase_frame_points(n[0], l.padded);
    job.frames = 1;
    job.rows = (int)n[0];
    job.columns = (int)n[1];
    job.pairs = (int)mb_phase_pairs(n[0], l.padded[0]);
    job.apart = (int)mb_phase_apart(n[0], l.padded[0]);
    job.row_twiddles = (const float2 *)call->slots[MB_PHASE_FILTER_TWIDDLES];
    job.column_twiddles = job.row_twiddles + mb_phase_table(l.padded[1]);
    for (job.shift = 0; 1 << job.shift < mb_phase_tile(l.padded[0]);)
        job.shift++;
    job.row_half = (int)(l.padded[0] - (l.padded[0] - n[0]) / 2);
    job.column_half = (int)(l.padded[1] - (l.padded[1] - n[1]) / 2);
    job.edge = p->padding == MB_PHASE_PAD_EDGE;
    job.row_sources = (const int32_t *)call->slots[MB_PHASE_FILTER_SOURCES];
    job.column_sources = job.row_sources + l.padded[0];
    job.row_table = (const float *)call->slots[MB_PHASE_FILTER_ROW_TABLE];
    job.column_table = (const float *)call->slots[MB_PHASE_FILTER_COLUMN_TABLE];
    job.row_count = (int)(l.padded[0] / 2 + 1);
    job.column_count = (int)(l.padded[1] / 2 + 1);
    job.constant = (float)(p->value - 1);
    job.min = p->log ? (float)p->min : 0;
    job.response = mb_phase_response_of(p, l.padded);
    MB_TRY(make_tables(call, p, n, l.padded));
    return mb_phase_fused(&call->device->facts, l.padded) ? run_fused(&l, frames)
                                                          : run_library(call, l, frames);
}
