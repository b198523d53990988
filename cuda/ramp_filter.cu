/*
** ramp_filter on CUDA: batches of rows are padded into scratch, transformed in place, multiplied by the response,
** transformed back and cropped. The response is computed on the device: its cost grows with the square of the length.
** Shifts of slices travel as kernel arguments, their phases are computed where they are multiplied: no table, no scratch.
*/
#include "ramp_table.cuh"

struct ramp_rows { /* detector rows of an array of any rank; the last axis is dense */
    float *data;
    int rank; /* of the axes before the last */
    int64_t dims[MB_MAX_RANK], strides[MB_MAX_RANK];
};

__device__ static inline float *row_at(const ramp_rows &rows, int64_t index)
{
    int64_t offset = 0;
    for (int i = rows.rank - 1; i >= 0; i--) {
        int64_t next = index / rows.dims[i];
        offset += (index - next * rows.dims[i]) * rows.strides[i];
        index = next;
    }
    return rows.data + offset;
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

/* What a bin of a row is multiplied by: the response, and the phase of the row's slice where slices move. */
struct ramp_straight {
    struct of_row {
        __device__ float2 times(float2 v, float h, int64_t, bool) const
        {
            return make_float2(v.x * h, v.y * h);
        }
    };
    __device__ of_row row(int64_t) const { return {}; }
};

#define RAMP_SLICES 256 /* a launch: 8 bytes each, of the 4 KB of arguments */

struct ramp_turned {
    uint64_t turns[RAMP_SLICES];
    int64_t first, rows_per_slice; /* first: row of its slice that the launch's first row is */

    struct of_row {
        uint64_t turn;
        __device__ float2 times(float2 v, float h, int64_t k, bool last) const
        {
            float s, c;
            sincospif(mb_ramp_filter_phase(turn, k), &s, &c);
            c *= h;
            s = last ? 0.0f : s * h;
            return make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
        }
    };
    __device__ of_row row(int64_t index) const { return {turns[(first + index) / rows_per_slice]}; }
};

template <class Factor>
__global__ void __launch_bounds__(MB_THREADS)
    ramp_multiply(float2 *rows, int64_t count, int64_t points, const float *response,
                  const __grid_constant__ Factor factor)
{
    for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
        const typename Factor::of_row own = factor.row(row);
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
                if (i < points)
                    line[i] = own.times(v[k], h[k], i, i == points - 1);
            }
        }
    }
}

/* Multiplies `count` rows in scratch, the first of which is row `first` of the call. */
static mb_status multiply(const mb_op_call *call, float2 *rows, int64_t first, int64_t count,
                          int64_t padded, int64_t rows_per_slice)
{
    const mb_vector *shifts = &((const mb_ramp_filter_params *)call->params)->slice_shifts;
    const float *response = (const float *)call->slots[MB_RAMP_FILTER_RESPONSE];
    const int64_t points = padded / 2 + 1;
    cudaStream_t stream = mb_stream(call);
    if (shifts->count == 0) {
        ramp_multiply<<<mb_blocks(call, count, 1), MB_THREADS, 0, stream>>>(
            rows, count, points, response, ramp_straight());
        MB_LAUNCHED("ramp_multiply");
        return MB_STATUS_OK;
    }
    for (int64_t done = 0, n; done < count; done += n) {
        const int64_t slice = (first + done) / rows_per_slice;
        ramp_turned factor;
        factor.first = (first + done) % rows_per_slice;
        factor.rows_per_slice = rows_per_slice;
        n = RAMP_SLICES * rows_per_slice - factor.first;
        n = n < count - done ? n : count - done;
        for (int64_t i = 0; i < RAMP_SLICES && slice + i < shifts->count; i++)
            factor.turns[i] = mb_ramp_filter_turn(shifts->values[slice + i], padded);
        ramp_multiply<<<mb_blocks(call, n, 1), MB_THREADS, 0, stream>>>(rows + done * points, n,
                                                                        points, response, factor);
        MB_LAUNCHED("ramp_multiply");
    }
    return MB_STATUS_OK;
}

__global__ void __launch_bounds__(MB_THREADS)
    ramp_crop(const float *from, int64_t padded, ramp_rows to, int64_t first, int64_t count,
              int64_t width)
{
    const int64_t left = (padded - width) / 2;
    for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
        float *line = row_at(to, first + row);
        const float *in = from + row * (padded + 2) + left;
        for (int64_t first_i = threadIdx.x; first_i < width; first_i += MB_THREADS * MB_BATCH) {
            float v[MB_BATCH];
#pragma unroll
            for (int k = 0; k < MB_BATCH; k++)
                v[k] = in[first_i + k * MB_THREADS < width ? first_i + k * MB_THREADS : 0];
#pragma unroll
            for (int k = 0; k < MB_BATCH; k++)
                if (first_i + k * MB_THREADS < width)
                    line[first_i + k * MB_THREADS] = v[k];
        }
    }
}

static ramp_rows rows_of(const mb_array *array, int64_t *count)
{
    ramp_rows rows = {};
    rows.data = (float *)array->data;
    rows.rank = array->shape.rank - 1;
    *count = 1;
    for (int i = 0; i < rows.rank; i++) {
        rows.dims[i] = array->shape.dims[i];
        rows.strides[i] = array->strides[i];
        *count *= rows.dims[i];
    }
    return rows;
}

extern "C" mb_status mb_cuda_ramp_filter(const mb_op_call *call)
{
    const mb_ramp_filter_params *params = (const mb_ramp_filter_params *)call->params;
    const mb_array *sino = call->arrays[MB_RAMP_FILTER_SINO],
                   *result = call->arrays[MB_RAMP_FILTER_RESULT];
    const int64_t width = sino->shape.dims[sino->shape.rank - 1],
                  padded = mb_ramp_filter_padded(params, width);
    cudaStream_t stream = mb_stream(call);
    int64_t count, same;
    const ramp_rows from = rows_of(sino, &count), to = rows_of(result, &same);
    if (count == 0 || width == 0)
        return MB_STATUS_OK;
    const int64_t batch = mb_ramp_filter_batch(count, padded);
    float *response = (float *)call->slots[MB_RAMP_FILTER_RESPONSE],
          *rows = (float *)call->slots[MB_RAMP_FILTER_ROWS];
    MB_TRY(mb_ramp_table(call, response, params->filter, params->cutoff, params->scale, padded));
    for (int64_t first = 0; first < count; first += batch) {
        if (mb_cuda_core->cancelled())
            return MB_STATUS_CANCELLED;
        const int64_t n = count - first < batch ? count - first : batch;
        const unsigned blocks = mb_blocks(call, n, 1);
        ramp_pad<<<blocks, MB_THREADS, 0, stream>>>(from, first, n, width, rows, padded,
                                                    params->padding == MB_RAMP_PAD_EDGE);
        MB_LAUNCHED("ramp_pad");
        MB_TRY(mb_cuda_core->fft_exec(call->device, call->ffts[MB_RAMP_FILTER_FORWARD], rows, rows,
                                      call->slots[MB_RAMP_FILTER_FORWARD_WORK]));
        MB_TRY(multiply(call, (float2 *)rows, first, n, padded,
                        count / mb_ramp_filter_slices(&sino->shape)));
        MB_TRY(mb_cuda_core->fft_exec(call->device, call->ffts[MB_RAMP_FILTER_INVERSE], rows, rows,
                                      call->slots[MB_RAMP_FILTER_INVERSE_WORK]));
        ramp_crop<<<blocks, MB_THREADS, 0, stream>>>(rows, padded, to, first, n, width);
        MB_LAUNCHED("ramp_crop");
    }
    return MB_STATUS_OK;
}
