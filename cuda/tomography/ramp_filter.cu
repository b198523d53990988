/*
** ramp_filter on CUDA. Where the padded length is one that a thread block can transform
** (mb_ramp_filter_fused), one kernel does everything and rows never leave the chip in between
** (ramp_row.cuh). For other lengths batches of rows are padded into scratch, transformed in place
** by the library, multiplied by the response, transformed back and cropped. Shifts of slices travel
** as kernel arguments, their phases are computed where they are multiplied: no table, no scratch.
** Milliseconds a slice of 2048 columns x 1500 angles on an H200: 0.0147, by the library 0.074.
** Filtering straight into backproject's packets of halves was tried: 0.0160 in place of 0.0143 +
** 0.0044, and its scale needs the same pass over the samples: less than 1 % of filtered
** back-projection, so the two stay apart.
*/
#include "tomography/ramp_row.cuh"
#include "tomography/ramp_table.cuh"

#define RAMP_THREADS 1024 /* on a multiprocessor, at least: limits registers */

struct ramp_rows { /* detector rows of an array, slice by slice; the last axis is dense */
    float *data;
    int64_t stride_z, stride_row;
    int64_t of_slice; /* rows */
};

__device__ static inline float *row_at(const ramp_rows &rows, int64_t index)
{
    const int64_t z = index / rows.of_slice;
    return rows.data + z * rows.stride_z + (index - z * rows.of_slice) * rows.stride_row;
}

__global__ void __launch_bounds__(MB_THREADS)
    ramp_pad(ramp_rows from, int64_t first, int64_t count, int64_t width, float *to, int64_t padded,
             bool edge)
{
    const int64_t left = (padded - width) / 2;
    for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
        const float *line = row_at(from, first + row);
        float *out = to + row * (padded + 2);
        for (int64_t first_j = threadIdx.x; first_j < padded; first_j += MB_THREADS * MB_BATCH) {
            float v[MB_BATCH];
#pragma unroll
            for (int k = 0; k < MB_BATCH; k++) {
                int64_t i = first_j + k * MB_THREADS - left;
                bool inside = i >= 0 && i < width;
                int64_t nearest = i < 0 ? 0 : i < width ? i : width - 1;
                v[k] = inside || edge ? line[nearest] : 0.0f;
            }
#pragma unroll
            for (int k = 0; k < MB_BATCH; k++)
                if (first_j + k * MB_THREADS < padded)
                    out[first_j + k * MB_THREADS] = v[k];
        }
    }
}

/* Weights of the angles, which rows are of in turn; or none. */
struct ramp_weights {
    const double *values;
    int64_t angles;
    __device__ float of(int64_t row) const { return (float)values[row % angles]; }
};

/* What rows are multiplied by beside the response: a factor (ramp_row.cuh) for each. */
struct ramp_still {
    typedef ramp_straight factor;
    __device__ factor of(int64_t) const { return {}; }
};

#define RAMP_SLICES 256 /* a launch: 8 bytes each, of the 4 KB of arguments */

struct ramp_moving {
    typedef ramp_turned factor;
    uint64_t turns[RAMP_SLICES];
    int64_t first, of_slice; /* first: row of its slice that the launch's first row is */
    __device__ factor of(int64_t row) const { return {turns[(first + row) / of_slice]}; }
};

template <class Moves>
__global__ void __launch_bounds__(MB_THREADS)
    ramp_multiply(float2 *rows, int64_t count, int64_t points, const float *response,
                  const __grid_constant__ Moves moves)
{
    for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
        const typename Moves::factor own = moves.of(row);
        for (int64_t first = threadIdx.x; first < points; first += MB_THREADS * MB_BATCH) {
            float2 *line = rows + row * points;
            float2 v[MB_BATCH];
            float h[MB_BATCH];
#pragma unroll
            for (int k = 0; k < MB_BATCH; k++)
                if (first + k * MB_THREADS < points) {
                    v[k] = line[first + k * MB_THREADS];
                    h[k] = response[first + k * MB_THREADS];
                }
#pragma unroll
            for (int k = 0; k < MB_BATCH; k++) {
                const int64_t i = first + k * MB_THREADS;
                if (i >= points)
                    continue;
                float2 c = own.at(i);
                c.y = i == points - 1 ? 0.0f : c.y; /* a row of reals has no more there */
                line[i] = fourier_times(v[k], make_float2(c.x * h[k], c.y * h[k]));
            }
        }
    }
}

__global__ void __launch_bounds__(MB_THREADS)
    ramp_crop(const float *from, int64_t padded, ramp_rows to, int64_t first, int64_t count,
              int64_t width, ramp_weights weights)
{
    const int64_t left = (padded - width) / 2;
    for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
        float *line = row_at(to, first + row);
        const float *in = from + row * (padded + 2) + left;
        const float weight = weights.values ? weights.of(first + row) : 1.0f;
        for (int64_t first_i = threadIdx.x; first_i < width; first_i += MB_THREADS * MB_BATCH) {
            float v[MB_BATCH];
#pragma unroll
            for (int k = 0; k < MB_BATCH; k++)
                v[k] = in[first_i + k * MB_THREADS < width ? first_i + k * MB_THREADS : 0];
            if (weights.values)
#pragma unroll
                for (int k = 0; k < MB_BATCH; k++)
                    v[k] *= weight;
#pragma unroll
            for (int k = 0; k < MB_BATCH; k++)
                if (first_i + k * MB_THREADS < width)
                    line[first_i + k * MB_THREADS] = v[k];
        }
    }
}

template <int T, class Moves>
__global__ void __launch_bounds__(T, T >= RAMP_THREADS ? 1 : RAMP_THREADS / (T > 64 ? T : 64))
    ramp_filter_rows(ramp_rows from, ramp_rows to, int64_t first, int64_t count, int width,
                     bool edge, const float *response, ramp_weights weights,
                     const __grid_constant__ Moves moves)
{
    extern __shared__ float2 ramp_shared[];
    ramp_row<T> block(threadIdx.x);
    for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
        float2 v[FOURIER_HELD];
        block.hold();
        block.load(v, row_at(from, first + row), width, edge);
        block.filter(v, response, moves.of(row), ramp_shared);
        if (weights.values) {
            const float weight = weights.of(first + row);
#pragma unroll
            for (int e = 0; e < FOURIER_HELD; e++)
                v[e] = make_float2(v[e].x * weight, v[e].y * weight);
        }
        block.store(v, row_at(to, first + row), width);
    }
}

/* The rows of the call in launches that can carry the shifts of their slices: launch(first row, how
** many, factors). */
template <class Launch>
static mb_status each_launch(const mb_op_call *call, int64_t first, int64_t count,
                             const Launch &launch)
{
    const mb_ramp_filter_params *params = (const mb_ramp_filter_params *)call->params;
    const mb_vector *shifts = &params->slice_shifts;
    if (shifts->count == 0)
        return launch(first, count, ramp_still());
    const mb_shape *shape = &call->arrays[MB_RAMP_FILTER_SINO]->shape;
    const int64_t width = shape->dims[shape->rank - 1],
                  padded = mb_ramp_filter_padded(params, width);
    ramp_moving moves;
    moves.of_slice = mb_count(call->arrays[MB_RAMP_FILTER_SINO]) / width / shifts->count;
    for (int64_t done = 0, n; done < count; done += n) {
        const int64_t slice = (first + done) / moves.of_slice;
        moves.first = (first + done) % moves.of_slice;
        n = RAMP_SLICES * moves.of_slice - moves.first;
        n = n < count - done ? n : count - done;
        for (int64_t i = 0; i < RAMP_SLICES && slice + i < shifts->count; i++)
            moves.turns[i] = mb_ramp_filter_turn(shifts->values[slice + i], padded);
        MB_TRY(launch(first + done, n, moves));
    }
    return MB_STATUS_OK;
}

static ramp_weights weights_of(const mb_op_call *call)
{
    const mb_ramp_filter_params *params = (const mb_ramp_filter_params *)call->params;
    ramp_weights weights;
    weights.values =
        params->weights.count > 0 ? (const double *)call->slots[MB_RAMP_FILTER_WEIGHTS] : NULL;
    weights.angles = mb_ramp_filter_angles(&call->arrays[MB_RAMP_FILTER_SINO]->shape);
    return weights;
}

static ramp_rows rows_of(const mb_array *array)
{
    const int rank = array->shape.rank;
    ramp_rows rows;
    rows.data = (float *)array->data;
    rows.stride_z = rank > 2 ? array->strides[rank - 3] : 0;
    rows.stride_row = rank > 1 ? array->strides[rank - 2] : 0;
    rows.of_slice = rank > 1 ? array->shape.dims[rank - 2] : 1;
    return rows;
}

template <int T>
static mb_status run_fused(const mb_op_call *call, int64_t count, int64_t width)
{
    const mb_ramp_filter_params *params = (const mb_ramp_filter_params *)call->params;
    const ramp_rows from = rows_of(call->arrays[MB_RAMP_FILTER_SINO]),
                    to = rows_of(call->arrays[MB_RAMP_FILTER_RESULT]);
    const int bytes = fourier_room(ramp_row<T>::N) * (int)sizeof(float2);
    return each_launch(call, 0, count, [&](int64_t first, int64_t n, const auto &moves) {
        const auto kernel =
            ramp_filter_rows<T,
                             typename std::remove_cv_t<std::remove_reference_t<decltype(moves)>>>;
        MB_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
        kernel<<<mb_blocks(call, n, 1), T, bytes, mb_stream(call)>>>(
            from, to, first, n, (int)width, params->padding == MB_RAMP_PAD_EDGE,
            (const float *)call->slots[MB_RAMP_FILTER_RESPONSE], weights_of(call), moves);
        return MB_LAUNCH_STATUS("ramp_filter_rows");
    });
}

static mb_status on_chip(const mb_op_call *call, int64_t count, int64_t width, int64_t padded)
{
    switch (padded / (2 * FOURIER_HELD)) {
    case 32: return run_fused<32>(call, count, width);
    case 64: return run_fused<64>(call, count, width);
    case 128: return run_fused<128>(call, count, width);
    case 256: return run_fused<256>(call, count, width);
    case 512: return run_fused<512>(call, count, width);
    default: return run_fused<1024>(call, count, width);
    }
}

static mb_status by_library(const mb_op_call *call, int64_t count, int64_t width, int64_t padded)
{
    const mb_ramp_filter_params *params = (const mb_ramp_filter_params *)call->params;
    const ramp_rows from = rows_of(call->arrays[MB_RAMP_FILTER_SINO]),
                    to = rows_of(call->arrays[MB_RAMP_FILTER_RESULT]);
    const int64_t batch = mb_ramp_filter_batch(padded), points = padded / 2 + 1;
    const float *response = (const float *)call->slots[MB_RAMP_FILTER_RESPONSE];
    float *rows = (float *)call->slots[MB_RAMP_FILTER_ROWS];
    cudaStream_t stream = mb_stream(call);
    for (int64_t start = 0; start < count; start += batch) {
        if (mb_cuda_core->cancelled())
            return MB_STATUS_CANCELLED;
        const int64_t held = count - start < batch ? count - start : batch;
        const unsigned blocks = mb_blocks(call, held, 1);
        ramp_pad<<<blocks, MB_THREADS, 0, stream>>>(from, start, held, width, rows, padded,
                                                    params->padding == MB_RAMP_PAD_EDGE);
        MB_LAUNCHED("ramp_pad");
        MB_TRY(mb_cuda_transform(call, MB_RAMP_FILTER_FORWARD, rows, rows,
                                 MB_RAMP_FILTER_FORWARD_WORK));
        MB_TRY(each_launch(call, start, held, [&](int64_t first, int64_t n, const auto &moves) {
            ramp_multiply<<<mb_blocks(call, n, 1), MB_THREADS, 0, stream>>>(
                (float2 *)rows + (first - start) * points, n, points, response, moves);
            return MB_LAUNCH_STATUS("ramp_multiply");
        }));
        MB_TRY(mb_cuda_transform(call, MB_RAMP_FILTER_INVERSE, rows, rows,
                                 MB_RAMP_FILTER_INVERSE_WORK));
        ramp_crop<<<blocks, MB_THREADS, 0, stream>>>(rows, padded, to, start, held, width,
                                                     weights_of(call));
        MB_LAUNCHED("ramp_crop");
    }
    return MB_STATUS_OK;
}

extern "C" mb_status mb_cuda_ramp_filter(const mb_op_call *call)
{
    const mb_ramp_filter_params *params = (const mb_ramp_filter_params *)call->params;
    const mb_array *sino = call->arrays[MB_RAMP_FILTER_SINO];
    const int64_t elements = mb_count(sino), width = sino->shape.dims[sino->shape.rank - 1];
    if (elements == 0)
        return MB_STATUS_OK;
    const int64_t padded = mb_ramp_filter_padded(params, width);
    const bool fused = mb_ramp_filter_fused(&call->device->facts, padded);
    MB_TRY(mb_ramp_table(call, (float *)call->slots[MB_RAMP_FILTER_RESPONSE], params->filter,
                         params->cutoff, fused ? 0.5 * params->scale : params->scale, padded));
    if (params->weights.count > 0)
        MB_TRY(mb_upload(call, call->slots[MB_RAMP_FILTER_WEIGHTS], params->weights.values,
                         (uint64_t)params->weights.count * sizeof(double)));
    return (fused ? on_chip : by_library)(call, elements / width, width, padded);
}
