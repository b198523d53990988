/*
** fourier_reconstruct on CUDA. Steps, layouts and slots: ops/op_fourier_reconstruct.h; gridding:
** fourier_gather.cuh.
** Two slices are one complex row from the padding on, so the filter's transforms are complex too:
** the same bytes as two
** real ones, and no separate pass to pair them.
*/
#include "fourier_gather.cuh"

struct fourier_rows { /* slices first ... of the sinogram or the result */
    float *data;
    int64_t stride_z, stride_row;
    int64_t slices; /* from the first of this batch on */
};

__device__ static inline const float *row_of(const fourier_rows &rows, int64_t z, int64_t row)
{
    return rows.data + z * rows.stride_z + row * rows.stride_row;
}

__global__ void __launch_bounds__(MB_THREADS)
    fourier_pad(fourier_rows from, int64_t count, int64_t angles, int64_t cols, float2 *to,
                int64_t padded, bool edge)
{
    const int64_t left = (padded - cols) / 2;
    for (int64_t r = blockIdx.x; r < count; r += gridDim.x) {
        const int64_t q = r / angles, a = r - q * angles;
        const bool has_even = 2 * q < from.slices, has_odd = 2 * q + 1 < from.slices;
        const float *even = row_of(from, has_even ? 2 * q : 0, a),
                    *odd = row_of(from, has_odd ? 2 * q + 1 : 0, a);
        float2 *row = to + r * padded;
        for (int64_t first = threadIdx.x; first < padded; first += MB_THREADS * MB_BATCH) {
            float2 v[MB_BATCH];
#pragma unroll
            for (int b = 0; b < MB_BATCH; b++) {
                const int64_t i = first + b * MB_THREADS - left;
                const bool use = (i >= 0 && i < cols) || edge;
                const int64_t nearest = i < 0 ? 0 : i < cols ? i : cols - 1;
                v[b].x = use && has_even ? even[nearest] : 0.0f;
                v[b].y = use && has_odd ? odd[nearest] : 0.0f;
            }
#pragma unroll
            for (int b = 0; b < MB_BATCH; b++)
                if (first + b * MB_THREADS < padded)
                    row[first + b * MB_THREADS] = v[b];
        }
    }
}

/* Few threads a block: each walks the whole kernel of the filter, so all multiprocessors should
** share the points. */
__global__ void fourier_response(float *table, int filter, double cutoff, int64_t padded)
{
    MB_GRID_LOOP(k, padded / 2 + 1)
    {
        table[k] = mb_ramp_filter_response(filter, cutoff, 1.0, padded, k);
    }
}

__global__ void __launch_bounds__(MB_THREADS)
    fourier_multiply(float2 *rows, int64_t count, int64_t padded, const float *response)
{
    for (int64_t r = blockIdx.x; r < count; r += gridDim.x) {
        float2 *row = rows + r * padded;
        for (int64_t first = threadIdx.x; first < padded; first += MB_THREADS * MB_BATCH) {
            float2 v[MB_BATCH];
            float h[MB_BATCH];
#pragma unroll
            for (int b = 0; b < MB_BATCH; b++) {
                const int64_t k = first + b * MB_THREADS;
                if (k < padded) {
                    v[b] = row[k];
                    h[b] = response[k <= padded / 2 ? k : padded - k];
                }
            }
#pragma unroll
            for (int b = 0; b < MB_BATCH; b++)
                if (first + b * MB_THREADS < padded)
                    row[first + b * MB_THREADS] = make_float2(v[b].x * h[b], v[b].y * h[b]);
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

/* [pair][angle][n] -> [ray][k + n/2][pair], on the axis. The lowest frequency has no partner: 0. */
template <int P>
__global__ void __launch_bounds__(256)
    fourier_order(const float2 *from, const mb_fourier_angle *angles, const mb_gridding_ray *rays,
                  int64_t count, int n, float2 *to)
{
    constexpr int K = 256 / P;
    __shared__ float2 tile[P][K + 1];
    const int l = threadIdx.x % K, p = threadIdx.x / K, at = blockIdx.x * K + l, half = n / 2;
    for (int64_t ray = blockIdx.y; ray < count; ray += gridDim.y) {
        const int a = rays[ray].angle;
        const mb_fourier_angle angle = angles[a];
        const int k = at - half;
        float2 r = make_float2(0, 0);
        if (at > 0 && at < n && angle.weight != 0) {
            const float2 v = from[((int64_t)p * count + a) * n + (k < 0 ? k + n : k)];
            float s, c;
            sincospif((float)(2 * mb_fourier_turns(angle.axis, k, n)), &s, &c);
            s *= (float)angle.weight;
            c *= (float)angle.weight;
            r = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
        }
        tile[p][l] = r;
        __syncthreads();
        const int pp = threadIdx.x % P, ll = threadIdx.x / P;
        if ((int)blockIdx.x * K + ll < n)
            to[(ray * n + blockIdx.x * K + ll) * P + pp] = tile[pp][ll];
        __syncthreads();
    }
}

__global__ void __launch_bounds__(MB_THREADS)
    fourier_crop(const float2 *cells, int64_t pairs, int grid, const float *deapodise,
                 mb_parallel_geometry g, float scale, float outside, fourier_rows to)
{
    const int hx = (int)(g.nx / 2), hy = (int)(g.ny / 2);
    for (int64_t line = blockIdx.x; line < pairs * g.ny; line += gridDim.x) {
        const int64_t q = line / g.ny, y = line - q * g.ny;
        const int ys = (int)y - hy;
        if (2 * q >= to.slices)
            return;
        const float2 *in = cells + (q * grid + (ys < 0 ? ys + grid : ys)) * (int64_t)grid;
        float *even = (float *)row_of(to, 2 * q, y);
        float *odd = 2 * q + 1 < to.slices ? (float *)row_of(to, 2 * q + 1, y) : NULL;
        const float factor = scale * deapodise[ys < 0 ? -ys : ys];
        for (int x = threadIdx.x; x < g.nx; x += MB_THREADS) {
            const int xs = x - hx;
            float w = factor * deapodise[xs < 0 ? -xs : xs];
            float2 v = in[xs < 0 ? xs + grid : xs];
            w = (xs + ys) & 1 ? -w : w;
            v = mb_parallel_inside(&g, y, x) ? make_float2(v.x * w, v.y * w)
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

/* Tables are made on the host: sorting and a few thousand sines cost less than they would as
** kernels. */
static mb_status upload_tables(const mb_op_call *call, const mb_fourier_reconstruct_params *p,
                               const mb_parallel_geometry *g, const mb_gridding *gridding)
{
    const int64_t side = g->nx > g->ny ? g->nx : g->ny;
    const size_t bytes[] = {(size_t)g->angles * sizeof(mb_fourier_angle),
                            (size_t)g->angles * sizeof(mb_gridding_ray),
                            (size_t)(gridding->buckets + 1) * 4, (size_t)(side / 2 + 1) * 4};
    const int slots[] = {MB_FOURIER_ANGLES, MB_FOURIER_RAYS, MB_FOURIER_STARTS,
                         MB_FOURIER_DEAPODISE};
    char *table = (char *)malloc(bytes[0] + bytes[1] + bytes[2] + bytes[3]), *at = table;
    if (!table)
        return mb_cuda_core->fail(MB_STATUS_MEMORY, NULL,
                                  "out of host memory for the tables of %lld angles",
                                  (long long)g->angles);
    mb_fourier_tables(p, g, gridding, (mb_fourier_angle *)table,
                      (mb_gridding_ray *)(table + bytes[0]),
                      (int32_t *)(table + bytes[0] + bytes[1]),
                      (float *)(table + bytes[0] + bytes[1] + bytes[2]));
    mb_status status = MB_STATUS_OK;
    for (int i = 0; i < 4 && status == MB_STATUS_OK; at += bytes[i++])
        status = mb_upload(call, call->slots[slots[i]], at, bytes[i]);
    free(table);
    return status;
}

template <int P>
static mb_status order_and_grid(const mb_op_call *call, const fourier_job &job, int64_t angles)
{
    cudaStream_t stream = mb_stream(call);
    const dim3 blocks((job.n + 256 / P - 1) / (256 / P),
                      (unsigned)(angles < 65535 ? angles : 65535));
    fourier_order<P>
        <<<blocks, 256, 0, stream>>>((const float2 *)call->slots[MB_FOURIER_SPECTRA],
                                     (const mb_fourier_angle *)call->slots[MB_FOURIER_ANGLES],
                                     (const mb_gridding_ray *)call->slots[MB_FOURIER_RAYS], angles,
                                     job.n, (float2 *)call->slots[MB_FOURIER_SAMPLES]);
    MB_LAUNCHED("fourier_order");
    return fourier_grid<P>(job, stream);
}

static mb_status transform(const mb_op_call *call, int fft, int work, void *data)
{
    return mb_cuda_core->fft_exec(call->device, call->ffts[fft], data, data, call->slots[work]);
}

extern "C" mb_status mb_cuda_fourier_reconstruct(const mb_op_call *call)
{
    const mb_fourier_reconstruct_params *p = (const mb_fourier_reconstruct_params *)call->params;
    const mb_array *sino = call->arrays[MB_FOURIER_SINO], *result = call->arrays[MB_FOURIER_RESULT];
    const mb_ramp_filter_params filter = mb_fourier_filter(p);
    const mb_parallel_geometry g = mb_fourier_geometry(p, &sino->shape);
    const int64_t padded = mb_ramp_filter_padded(&filter, g.cols),
                  n = call->ffts[MB_FOURIER_SAMPLE]->desc.dims[0];
    const int64_t pairs = call->ffts[MB_FOURIER_GRID]->desc.batch,
                  grid = call->ffts[MB_FOURIER_GRID]->desc.dims[0];
    cudaStream_t stream = mb_stream(call);
    float2 *rows = (float2 *)call->slots[MB_FOURIER_ROWS],
           *spectra = (float2 *)call->slots[MB_FOURIER_SPECTRA];
    float *response = (float *)call->slots[MB_FOURIER_RESPONSE];
    if (p->angles.count != g.angles)
        return mb_cuda_core->fail(MB_STATUS_ARGUMENT, "angles",
                                  "angles is missing: %lld numbers are needed",
                                  (long long)g.angles);
    if (g.rows == 0)
        return MB_STATUS_OK;
    fourier_job job;
    job.g = mb_fourier_gridding(p->accuracy, &g, n, grid);
    job.rays = (const float4 *)call->slots[MB_FOURIER_RAYS];
    job.starts = (const int32_t *)call->slots[MB_FOURIER_STARTS];
    job.samples = (const float2 *)call->slots[MB_FOURIER_SAMPLES];
    job.cells = (float2 *)call->slots[MB_FOURIER_CELLS];
    job.n = (int)n;
    job.half = (int)(n / 2);
    MB_TRY(upload_tables(call, p, &g, &job.g));
    fourier_response<<<mb_blocks(call, padded / 2 + 1, 32), 32, 0, stream>>>(response, p->filter,
                                                                             p->cutoff, padded);
    MB_LAUNCHED("fourier_response");
    for (int64_t first = 0; first < g.rows; first += 2 * pairs) {
        if (mb_cuda_core->cancelled())
            return MB_STATUS_CANCELLED;
        const int64_t lanes = mb_fourier_lanes(g.rows, first, pairs), count = lanes * g.angles;
        const unsigned blocks = mb_blocks(call, count, 1);
        fourier_pad<<<blocks, MB_THREADS, 0, stream>>>(rows_from(sino, first, g.rows), count,
                                                       g.angles, g.cols, rows, padded,
                                                       p->padding == MB_RAMP_PAD_EDGE);
        MB_LAUNCHED("fourier_pad");
        MB_TRY(transform(call, MB_FOURIER_FORWARD, MB_FOURIER_FORWARD_WORK, rows));
        fourier_multiply<<<blocks, MB_THREADS, 0, stream>>>(rows, count, padded, response);
        MB_LAUNCHED("fourier_multiply");
        MB_TRY(transform(call, MB_FOURIER_BACKWARD, MB_FOURIER_BACKWARD_WORK, rows));
        fourier_extend<<<blocks, MB_THREADS, 0, stream>>>(rows, count, padded, g.cols, spectra, n);
        MB_LAUNCHED("fourier_extend");
        MB_TRY(transform(call, MB_FOURIER_SAMPLE, MB_FOURIER_SAMPLE_WORK, spectra));
        switch (lanes) {
        case 1: MB_TRY(order_and_grid<1>(call, job, g.angles)); break;
        case 2: MB_TRY(order_and_grid<2>(call, job, g.angles)); break;
        case 4: MB_TRY(order_and_grid<4>(call, job, g.angles)); break;
        default: MB_TRY(order_and_grid<8>(call, job, g.angles)); break;
        }
        MB_TRY(transform(call, MB_FOURIER_GRID, MB_FOURIER_GRID_WORK, job.cells));
        fourier_crop<<<mb_blocks(call, lanes * g.ny, 1), MB_THREADS, 0, stream>>>(
            job.cells, lanes, (int)grid, (const float *)call->slots[MB_FOURIER_DEAPODISE], g,
            (float)(g.scale / (double)n), (float)p->circle_value, rows_from(result, first, g.rows));
        MB_LAUNCHED("fourier_crop");
    }
    return MB_STATUS_OK;
}
