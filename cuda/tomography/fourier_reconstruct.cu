/*
** fourier_reconstruct on CUDA. Steps, layouts and slots: ops/op_fourier_reconstruct.h; rows in one
** kernel: fourier_rows.cuh; gridding: fourier_gather.cuh; from there to pixels: fourier_image.cuh.
** Rows and grids that do not fit those kernels go through the FFT library. Two slices are one
** complex row from the padding on, so the filter's transforms are complex too: the same bytes as
** two real ones, and no separate pass to pair them.
*/
#include "tomography/fourier_image.cuh"
#include "tomography/fourier_tables.cuh"
#include "tomography/ramp_table.cuh"

/* ramp_filter's table in the lower half -> the response for differenced rows. */
__global__ void __launch_bounds__(MB_THREADS)
    fourier_response(float *table, double keep, int64_t padded)
{
    const int64_t k = blockIdx.x * (int64_t)MB_THREADS + threadIdx.x;
    if (k <= padded / 2)
        mb_fourier_response(table[k], keep, padded, k, table + k, table + padded / 2 + 1 + k);
}

/* Pads and differences. */
__global__ void __launch_bounds__(MB_THREADS)
    fourier_pad(fourier_rows from, int64_t count, int64_t angles, int64_t cols, float2 *to,
                int64_t padded, float keep, bool edge)
{
    const int64_t left = (padded - cols) / 2;
    for (int64_t r = blockIdx.x; r < count; r += gridDim.x) {
        const int64_t q = r / angles, a = r - q * angles;
        const bool has_even = 2 * q < from.slices, has_odd = 2 * q + 1 < from.slices;
        const float *even = row_of(from, has_even ? 2 * q : 0, a),
                    *odd = row_of(from, has_odd ? 2 * q + 1 : 0, a);
        float2 *row = to + r * padded;
        const auto at = [&](int64_t i) {
            const bool use = (i >= 0 && i < cols) || edge;
            const int64_t nearest = i < 0 ? 0 : i < cols ? i : cols - 1;
            return make_float2(use && has_even ? even[nearest] : 0.0f,
                               use && has_odd ? odd[nearest] : 0.0f);
        };
        for (int64_t first = threadIdx.x; first < padded; first += MB_THREADS * MB_BATCH) {
            float2 v[MB_BATCH];
#pragma unroll
            for (int b = 0; b < MB_BATCH; b++) {
                const int64_t i = first + b * MB_THREADS;
                const float2 here = at(i - left), previous = at((i > 0 ? i : padded) - 1 - left);
                v[b] =
                    make_float2(fmaf(-keep, previous.x, here.x), fmaf(-keep, previous.y, here.y));
            }
#pragma unroll
            for (int b = 0; b < MB_BATCH; b++)
                if (first + b * MB_THREADS < padded)
                    row[first + b * MB_THREADS] = v[b];
        }
    }
}

__global__ void __launch_bounds__(MB_THREADS)
    fourier_multiply(float2 *rows, int64_t count, int64_t padded, const float *response)
{
    for (int64_t r = blockIdx.x; r < count; r += gridDim.x) {
        float2 *row = rows + r * padded;
        for (int64_t first = threadIdx.x; first < padded; first += MB_THREADS * MB_BATCH) {
            float2 v[MB_BATCH];
#pragma unroll
            for (int b = 0; b < MB_BATCH; b++) {
                const int64_t k = first + b * MB_THREADS;
                if (k < padded)
                    v[b] = k <= padded / 2
                               ? fourier_filtered<false>(row[k], response, padded, k)
                               : fourier_filtered<true>(row[k], response, padded, padded - k);
            }
#pragma unroll
            for (int b = 0; b < MB_BATCH; b++)
                if (first + b * MB_THREADS < padded)
                    row[first + b * MB_THREADS] = v[b];
        }
    }
}

__global__ void __launch_bounds__(MB_THREADS)
    fourier_extend(const float2 *from, int64_t count, int64_t padded, int64_t cols, float2 *to,
                   int64_t n)
{
    const int64_t left = (padded - cols) / 2;
    for (int64_t r = blockIdx.x; r < count; r += gridDim.x) {
        const float2 *in = from + r * padded + left;
        float2 *out = to + r * n;
        for (int64_t first = threadIdx.x; first < n; first += MB_THREADS * MB_BATCH) {
            float2 v[MB_BATCH];
#pragma unroll
            for (int b = 0; b < MB_BATCH; b++)
                v[b] =
                    first + b * MB_THREADS < cols ? in[first + b * MB_THREADS] : make_float2(0, 0);
#pragma unroll
            for (int b = 0; b < MB_BATCH; b++)
                if (first + b * MB_THREADS < n)
                    out[first + b * MB_THREADS] = v[b];
        }
    }
}

/* [pair][angle][n] -> [pair / 2][ray][k + n/2][pair % 2], on the axis. The lowest frequency has no
** partner: 0. */
template <int P>
__global__ void __launch_bounds__(256)
    fourier_order(const float2 *from, const mb_fourier_angle *angles, const mb_gridding_ray *rays,
                  int64_t count, int n, float2 *to)
{
    constexpr int V = P > 1 ? 2 : 1;
    const int at = (blockIdx.x * 256 + threadIdx.x) / V, p = blockIdx.z * V + threadIdx.x % V,
              k = at - n / 2;
    if (at >= n)
        return;
    for (int64_t ray = blockIdx.y; ray < count; ray += gridDim.y) {
        const int a = rays[ray].angle;
        const mb_fourier_angle angle = angles[a];
        float2 r = make_float2(0, 0);
        if (at > 0 && angle.weight != 0) {
            const float2 v = from[((int64_t)p * count + a) * n + (k < 0 ? k + n : k)];
            float s, c;
            sincospif((float)(2 * mb_fourier_turns(angle.axis, k, n)), &s, &c);
            s *= (float)angle.weight;
            c *= (float)angle.weight;
            r = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
        }
        to[((blockIdx.z * count + ray) * n + at) * V + threadIdx.x % V] = r;
    }
}

__global__ void __launch_bounds__(MB_THREADS)
    fourier_crop(const float2 *cells, int64_t pairs, int grid, const float *deapodise,
                 mb_parallel_geometry g, float scale, float outside, fourier_rows to)
{
    const int64_t high = g.y1 - g.y0, wide = g.x1 - g.x0;
    const int hx = (int)(wide / 2), hy = (int)(high / 2);
    for (int64_t line = blockIdx.x; line < pairs * high; line += gridDim.x) {
        const int64_t q = line / high, y = line - q * high;
        const int ys = (int)y - hy;
        if (2 * q >= to.slices)
            return;
        const float2 *in = cells + (q * grid + (ys < 0 ? ys + grid : ys)) * (int64_t)grid;
        float *even = (float *)row_of(to, 2 * q, y);
        float *odd = 2 * q + 1 < to.slices ? (float *)row_of(to, 2 * q + 1, y) : NULL;
        const float factor = scale * deapodise[ys < 0 ? -ys : ys];
        for (int x = threadIdx.x; x < wide; x += MB_THREADS) {
            const int xs = x - hx;
            float w = factor * deapodise[xs < 0 ? -xs : xs];
            float2 v = in[xs < 0 ? xs + grid : xs];
            w = (xs + ys) & 1 ? -w : w;
            v = mb_parallel_inside(&g, g.y0 + y, g.x0 + x) ? make_float2(v.x * w, v.y * w)
                                                           : make_float2(outside, outside);
            even[x] = v.x;
            if (odd)
                odd[x] = v.y;
        }
    }
}

static fourier_rows rows_from(const mb_array *array, int64_t first, int64_t slices)
{
    const int rank = array->shape.rank;
    fourier_rows rows;
    rows.stride_z = rank == 3 ? array->strides[0] : 0;
    rows.stride_row = array->strides[rank - 2];
    rows.data = (float *)array->data + first * rows.stride_z;
    rows.slices = slices - first;
    return rows;
}

static mb_status response(const mb_op_call *call, const mb_fourier_reconstruct_params *p,
                          int64_t padded)
{
    float *table = (float *)call->slots[MB_FOURIER_RESPONSE];
    MB_TRY(mb_ramp_table(call, table, p->filter, p->cutoff, 1.0, padded));
    fourier_response<<<(unsigned)(padded / 2 / MB_THREADS + 1), MB_THREADS, 0, mb_stream(call)>>>(
        table, mb_fourier_keep(p, padded), padded);
    MB_LAUNCHED("fourier_response");
    return MB_STATUS_OK;
}

/* Of `pairs` pairs, each `points` from the last, one at a time. */
static mb_status transform(const mb_op_call *call, int fft, float2 *data, int64_t pairs,
                           int64_t points)
{
    for (int64_t q = 0; q < pairs; q++)
        MB_TRY(mb_cuda_transform(call, fft, data + q * points, data + q * points,
                                 MB_FOURIER_WORK + fft));
    return MB_STATUS_OK;
}

template <int T>
static mb_status rows_fused(const mb_op_call *call, const fourier_row_job &job)
{
    const int points = T * FOURIER_HELD, bytes = fourier_room(points) * (int)sizeof(float2);
    MB_CUDA(cudaFuncSetAttribute(fourier_row_spectra<T>,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    fourier_row_spectra<T><<<(unsigned)(job.count * job.pairs), T, bytes, mb_stream(call)>>>(job);
    MB_LAUNCHED("fourier_row_spectra");
    return MB_STATUS_OK;
}

/* Steps 1 to 4, in one kernel. */
static mb_status samples_fused(const mb_op_call *call, const mb_fourier_reconstruct_params *p,
                               const mb_parallel_geometry *g, const mb_fourier_layout *l,
                               int64_t first, int64_t lanes)
{
    const int threads = (int)(l->padded / FOURIER_HELD);
    fourier_row_job job;
    job.from = rows_from(call->arrays[MB_FOURIER_SINO], first, g->rows);
    job.angles = (const mb_fourier_angle *)call->slots[MB_FOURIER_ANGLES];
    job.rays = (const mb_gridding_ray *)call->slots[MB_FOURIER_RAYS];
    job.response = (const float *)call->slots[MB_FOURIER_RESPONSE];
    job.samples = (float2 *)call->slots[MB_FOURIER_SAMPLES];
    job.count = (int)g->angles;
    job.cols = (int)g->cols;
    job.kept = (int)(l->samples / threads);
    job.pairs = (int)lanes;
    job.keep = (float)mb_fourier_keep(p, l->padded);
    job.edge = p->padding == MB_RAMP_PAD_EDGE;
    switch (threads) {
    case 32: return rows_fused<32>(call, job);
    case 64: return rows_fused<64>(call, job);
    case 128: return rows_fused<128>(call, job);
    case 256: return rows_fused<256>(call, job);
    case 512: return rows_fused<512>(call, job);
    default: return rows_fused<1024>(call, job);
    }
}

template <int P>
static mb_status order(const mb_op_call *call, int64_t angles, int64_t n)
{
    const int64_t lanes = P > 1 ? 2 : 1;
    const dim3 blocks((unsigned)((n * lanes + 255) / 256),
                      (unsigned)(angles < 65535 ? angles : 65535), (unsigned)(P / lanes));
    fourier_order<P><<<blocks, 256, 0, mb_stream(call)>>>(
        (const float2 *)call->slots[MB_FOURIER_SPECTRA],
        (const mb_fourier_angle *)call->slots[MB_FOURIER_ANGLES],
        (const mb_gridding_ray *)call->slots[MB_FOURIER_RAYS], angles, (int)n,
        (float2 *)call->slots[MB_FOURIER_SAMPLES]);
    MB_LAUNCHED("fourier_order");
    return MB_STATUS_OK;
}

/* Steps 1 to 4, each over the whole batch but for the transforms. */
static mb_status samples_apart(const mb_op_call *call, const mb_fourier_reconstruct_params *p,
                               const mb_parallel_geometry *g, const mb_fourier_layout *l,
                               int64_t first, int64_t lanes)
{
    const int64_t count = lanes * g->angles, padded = l->padded, n = l->samples;
    const unsigned blocks = mb_blocks(call, count, 1);
    cudaStream_t stream = mb_stream(call);
    float2 *rows = (float2 *)call->slots[MB_FOURIER_ROWS],
           *spectra = (float2 *)call->slots[MB_FOURIER_SPECTRA];
    fourier_pad<<<blocks, MB_THREADS, 0, stream>>>(
        rows_from(call->arrays[MB_FOURIER_SINO], first, g->rows), count, g->angles, g->cols, rows,
        padded, (float)mb_fourier_keep(p, padded), p->padding == MB_RAMP_PAD_EDGE);
    MB_LAUNCHED("fourier_pad");
    MB_TRY(transform(call, MB_FOURIER_FORWARD, rows, lanes, g->angles * padded));
    fourier_multiply<<<blocks, MB_THREADS, 0, stream>>>(
        rows, count, padded, (const float *)call->slots[MB_FOURIER_RESPONSE]);
    MB_LAUNCHED("fourier_multiply");
    MB_TRY(transform(call, MB_FOURIER_BACKWARD, rows, lanes, g->angles * padded));
    fourier_extend<<<blocks, MB_THREADS, 0, stream>>>(rows, count, padded, g->cols, spectra, n);
    MB_LAUNCHED("fourier_extend");
    MB_TRY(transform(call, MB_FOURIER_SAMPLE, spectra, lanes, g->angles * n));
    return lanes > 1 ? lanes > 2
                           ? lanes > 4 ? order<8>(call, g->angles, n) : order<4>(call, g->angles, n)
                           : order<2>(call, g->angles, n)
                     : order<1>(call, g->angles, n);
}

static mb_status gather(const mb_op_call *call, const fourier_job &job, int64_t lanes)
{
    switch (lanes) {
    case 1: return fourier_grid<1>(job, mb_stream(call));
    case 2: return fourier_grid<2>(job, mb_stream(call));
    case 4: return fourier_grid<4>(job, mb_stream(call));
    default: return fourier_grid<8>(job, mb_stream(call));
    }
}

/* Steps 6 and 7 by the FFT library. */
static mb_status image_by_library(const mb_op_call *call, const mb_fourier_layout *l,
                                  const fourier_image_job &job, int64_t lanes)
{
    MB_TRY(transform(call, l->image, (float2 *)job.cells, lanes, l->grid * l->grid));
    fourier_crop<<<mb_blocks(call, lanes * (job.g.y1 - job.g.y0), 1), MB_THREADS, 0,
                   mb_stream(call)>>>(job.cells, lanes, job.grid, job.deapodise, job.g, job.scale,
                                      job.outside, job.to);
    MB_LAUNCHED("fourier_crop");
    return MB_STATUS_OK;
}

extern "C" mb_status mb_cuda_fourier_reconstruct(const mb_op_call *call)
{
    const mb_fourier_reconstruct_params *p = (const mb_fourier_reconstruct_params *)call->params;
    const mb_array *sino = call->arrays[MB_FOURIER_SINO], *result = call->arrays[MB_FOURIER_RESULT];
    const mb_parallel_geometry g = mb_fourier_geometry(p, &sino->shape);
    const mb_fourier_layout l = mb_fourier_planned(call, &g);
    const mb_gridding gridding = mb_fourier_gridding(p->accuracy, &g, l.samples, l.grid);
    fourier_job job;
    fourier_image_job image;
    if (p->angles.count != g.angles)
        return mb_cuda_core->fail(MB_STATUS_ARGUMENT, "angles",
                                  "angles is missing: %lld numbers are needed",
                                  (long long)g.angles);
    if (g.rows == 0)
        return MB_STATUS_OK;
    job.g = mb_gridding_blocks(&gridding, FOURIER_BLOCK);
    job.rays = (const float4 *)call->slots[MB_FOURIER_RAYS];
    job.starts = (const int32_t *)call->slots[MB_FOURIER_STARTS];
    job.samples = (const float2 *)call->slots[MB_FOURIER_SAMPLES];
    job.cells = (float2 *)call->slots[MB_FOURIER_CELLS];
    job.n = (int)l.samples;
    job.half = (int)(l.samples / 2);
    job.leave_empty = l.own;
    image.reach = job.g.outer - 0.72f; /* of blocks of cells, less a block's half diagonal */
    image.cells = job.cells;
    image.lines = (float2 *)call->slots[MB_FOURIER_LINES];
    image.deapodise = (const float *)call->slots[MB_FOURIER_DEAPODISE];
    image.g = g;
    image.grid = (int)l.grid;
    image.kept = l.own ? (int)(l.grid / l.threads) : 0;
    image.scale = (float)(g.scale / (double)l.samples);
    image.outside = (float)p->circle_value;
    MB_TRY(response(call, p, l.padded));
    MB_TRY(fourier_make_tables(call, p, &g, &gridding, l.own));
    const int64_t paired = mb_fourier_lone(&l, g.rows) ? g.rows - 1 : g.rows;
    mb_parallel_geometry part = g; /* its rows: up to the last of this batch's kind */
    for (int64_t first = 0, end; first < g.rows; first = end < part.rows ? end : part.rows) {
        if (mb_cuda_core->cancelled())
            return MB_STATUS_CANCELLED;
        job.lone = image.lone = first == paired;
        part.rows = job.lone ? g.rows : paired;
        const int64_t lanes = job.lone ? 1 : mb_fourier_lanes(part.rows, first, l.pairs);
        MB_TRY(l.fused ? samples_fused(call, p, &part, &l, first, lanes)
                       : samples_apart(call, p, &part, &l, first, lanes));
        MB_TRY(gather(call, job, lanes));
        image.to = rows_from(result, first, part.rows);
        MB_TRY(l.own ? fourier_image(image, lanes, mb_stream(call))
                     : image_by_library(call, &l, image, lanes));
        end = first + 2 * lanes;
    }
    return MB_STATUS_OK;
}
