/*
** flat_field on CUDA: first the mean or median dark and the denominator, into slots; then one pass
** over the data.
**
** The median needs no memory: it is found bit by bit, by counting how many frames are below a
** candidate. Counters are integers, so their atomics give the same numbers in any order.
*/
#include "shared/cuda_launch.cuh"
#include "ops/corrections/op_flat_field.h"

struct stack { /* frames of an array with 2 axes (one frame) or 3 */
    const void *data;
    int type;
    int64_t frames, stride_f, stride_y, stride_x;
};

typedef unsigned long long tally;

#define BATCH 4 /* frames that a thread has in flight */

__device__ static inline float sample(const stack &s, int64_t frame, int64_t at)
{
    const int64_t i = frame * s.stride_f + at;
    switch (s.type) {
    case MB_U8: return (float)((const uint8_t *)s.data)[i];
    case MB_U16: return (float)((const uint16_t *)s.data)[i];
    case MB_F32: return ((const float *)s.data)[i];
    default: return (float)mb_element_load(s.type, s.data, i, NULL);
    }
}

/* Keys with the same order as the floats. */
__device__ static inline unsigned key_of(float v)
{
    unsigned bits = __float_as_uint(v);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ static inline float value_of(unsigned key)
{
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

__device__ static float mean_of(const stack &s, int64_t at)
{
    double sum = 0;
    for (int64_t f = 0; f < s.frames; f++)
        sum += mb_element_load(s.type, s.data, f * s.stride_f + at, NULL);
    return (float)(sum / (double)s.frames);
}

__device__ static float median_of(const stack &s, int64_t at)
{
    const int64_t rank = (s.frames - 1) / 2; /* the lower of the middle two, from 0 */
    unsigned found = 0;
    for (int64_t f = 0; f < s.frames; f++) {
        float v = sample(s, f, at);
        if (v != v)
            return v;
    }
    for (unsigned bit = 0x80000000u; bit;
         bit >>= 1) { /* the largest key with at most `rank` keys below it */
        const unsigned candidate = found | bit;
        int64_t below = 0;
        for (int64_t f = 0; f < s.frames; f++)
            below += key_of(sample(s, f, at)) < candidate;
        if (below <= rank)
            found = candidate;
    }
    if (s.frames & 1)
        return value_of(found);
    int64_t upto = 0;
    unsigned next = 0xffffffffu;
    for (int64_t f = 0; f < s.frames; f++) {
        unsigned key = key_of(sample(s, f, at));
        upto += key <= found;
        if (key > found && key < next)
            next = key;
    }
    return (float)(0.5 * ((double)value_of(found) +
                          (double)(upto > rank + 1 ? value_of(found) : value_of(next))));
}

__global__ void __launch_bounds__(MB_THREADS)
    flat_field_frames(stack darks, stack flats, int64_t height, int64_t width, bool median,
                      float floor_value, float *dark, float *denominator, tally *counts)
{
    tally clamped_here = 0;
    MB_GRID_LOOP(i, height * width)
    {
        const int64_t y = i / width, x = i - y * width;
        float base = 0;
        if (dark) {
            int64_t at = y * darks.stride_y + x * darks.stride_x;
            base = median ? median_of(darks, at) : mean_of(darks, at);
            dark[i] = base;
        }
        if (denominator) {
            int64_t at = y * flats.stride_y + x * flats.stride_x;
            int clamped;
            denominator[i] = mb_flat_field_denominator(
                (median ? median_of(flats, at) : mean_of(flats, at)) - base, floor_value, &clamped);
            clamped_here += clamped;
        }
    }
    clamped_here = mb_block_fold(clamped_here, mb_fold_sum());
    if (threadIdx.x == 0 && clamped_here)
        atomicAdd(&counts[MB_FLAT_FIELD_CLAMPED], clamped_here);
}

struct frames_out {
    float *data;
    int64_t stride_f, stride_y, stride_x;
};

template <class T>
__global__ void __launch_bounds__(MB_THREADS)
    flat_field_apply(stack data, frames_out to, int64_t height, int64_t width, const float *dark,
                     const float *denominator, float replacement, tally *counts)
{
    tally replaced = 0, not_positive = 0;
    MB_GRID_LOOP(i, height * width)
    {
        const int64_t y = i / width, x = i - y * width;
        const T *in = (const T *)data.data + y * data.stride_y + x * data.stride_x;
        float *out = to.data + y * to.stride_y + x * to.stride_x;
        const float base = dark ? dark[i] : 0.0f, bottom = denominator ? denominator[i] : 1.0f;
        for (int64_t f = blockIdx.y; f < data.frames; f += (int64_t)gridDim.y * BATCH) {
            float v[BATCH]; /* all loads before the first store: the result may be the same array */
#pragma unroll
            for (int k = 0; k < BATCH; k++) {
                int64_t frame = f + k * (int64_t)gridDim.y;
                v[k] = frame < data.frames ? (float)mb_load_as(in[frame * data.stride_f]) : 1.0f;
            }
#pragma unroll
            for (int k = 0; k < BATCH; k++) {
                int64_t frame = f + k * (int64_t)gridDim.y;
                if (frame >= data.frames)
                    break;
                float value = (v[k] - base) / bottom;
                bool finite = fabsf(value) <= 3.402823466e38f;
                replaced += !finite;
                not_positive += finite && value <= 0;
                out[frame * to.stride_f] = finite ? value : replacement;
            }
        }
    }
    replaced = mb_block_fold(replaced, mb_fold_sum());
    not_positive = mb_block_fold(not_positive, mb_fold_sum());
    if (threadIdx.x == 0 && replaced)
        atomicAdd(&counts[MB_FLAT_FIELD_NONFINITE], replaced);
    if (threadIdx.x == 0 && not_positive)
        atomicAdd(&counts[MB_FLAT_FIELD_NOT_POSITIVE], not_positive);
}

__global__ void flat_field_counts(const tally *counts, bool raised, double *to, int64_t stride)
{
    const bool counted = raised || threadIdx.x != MB_FLAT_FIELD_CLAMPED;
    to[threadIdx.x * stride] = counted ? (double)counts[threadIdx.x] : 0;
}

static stack stack_of(const mb_array *array)
{
    stack s = {};
    if (!array)
        return s;
    const int rank = array->shape.rank;
    s.data = array->data;
    s.type = array->dtype;
    s.frames = rank == 3 ? array->shape.dims[0] : 1;
    s.stride_f = rank == 3 ? array->strides[0] : 0;
    s.stride_y = array->strides[rank - 2];
    s.stride_x = array->strides[rank - 1];
    return s;
}

template <class T>
static mb_status apply(const mb_op_call *call, const stack &data, const frames_out &to,
                       int64_t height, int64_t width, const float *dark, const float *denominator,
                       float replacement, tally *counts)
{
    const unsigned across = mb_blocks(call, height * width, MB_THREADS);
    /* Frames are split among blocks only if the pixels do not fill the device, because every split
    ** reloads the averaged frames. */
    const int64_t want = (int64_t)call->device->facts.threads * 32;
    int64_t down = (want + across - 1) / across;
    down = down > data.frames ? data.frames : down;
    down = down > 65535 ? 65535 : down < 1 ? 1 : down;
    flat_field_apply<T><<<dim3(across, (unsigned)down), MB_THREADS, 0, mb_stream(call)>>>(
        data, to, height, width, dark, denominator, replacement, counts);
    MB_LAUNCHED("flat_field_apply");
    return MB_STATUS_OK;
}

extern "C" mb_status mb_cuda_flat_field(const mb_op_call *call)
{
    const mb_flat_field_params *params = (const mb_flat_field_params *)call->params;
    const mb_array *result = call->arrays[MB_FLAT_FIELD_RESULT],
                   *counts_array = call->arrays[MB_FLAT_FIELD_COUNTS];
    const stack data = stack_of(call->arrays[MB_FLAT_FIELD_DATA]), to = stack_of(result);
    const stack darks = stack_of(call->arrays[MB_FLAT_FIELD_DARKS]),
                flats = stack_of(call->arrays[MB_FLAT_FIELD_FLATS]);
    const int64_t height = result->shape.dims[result->shape.rank - 2],
                  width = result->shape.dims[result->shape.rank - 1];
    float *dark = darks.data ? (float *)call->slots[MB_FLAT_FIELD_DARK] : NULL;
    float *denominator = flats.data ? (float *)call->slots[MB_FLAT_FIELD_DENOMINATOR] : NULL;
    tally *counts = (tally *)call->slots[MB_FLAT_FIELD_TALLY];
    const frames_out out = {(float *)result->data, to.stride_f, to.stride_y, to.stride_x};
    const float replacement = (float)params->nonfinite;
    cudaStream_t stream = mb_stream(call);
    mb_status status = MB_STATUS_OK;
    MB_CUDA(cudaMemsetAsync(counts, 0, 3 * sizeof *counts, stream));
    if (height * width > 0) {
        if (dark || denominator) {
            flat_field_frames<<<mb_blocks(call, height * width, MB_THREADS), MB_THREADS, 0,
                                stream>>>(darks, flats, height, width,
                                          params->mode == MB_FLAT_FIELD_MEDIAN,
                                          (float)params->floor, dark, denominator, counts);
            MB_LAUNCHED("flat_field_frames");
        }
        switch (data.type) {
        case MB_U8:
            status = apply<uint8_t>(call, data, out, height, width, dark, denominator, replacement,
                                    counts);
            break;
        case MB_U16:
            status = apply<uint16_t>(call, data, out, height, width, dark, denominator, replacement,
                                     counts);
            break;
        case MB_I32:
            status = apply<int32_t>(call, data, out, height, width, dark, denominator, replacement,
                                    counts);
            break;
        case MB_F16:
            status = apply<__half>(call, data, out, height, width, dark, denominator, replacement,
                                   counts);
            break;
        case MB_F32:
            status = apply<float>(call, data, out, height, width, dark, denominator, replacement,
                                  counts);
            break;
        default:
            status = apply<double>(call, data, out, height, width, dark, denominator, replacement,
                                   counts);
            break;
        }
    }
    if (status != MB_STATUS_OK || !counts_array)
        return status;
    flat_field_counts<<<1, 3, 0, stream>>>(counts, params->count_raised,
                                           (double *)counts_array->data, counts_array->strides[0]);
    MB_LAUNCHED("flat_field_counts");
    return MB_STATUS_OK;
}
