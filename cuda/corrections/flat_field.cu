/*
** flat_field on CUDA: first the mean or median dark and the denominator, into slots; then one pass
** over the data.
**
** The median needs no memory: it is found bit by bit, by counting how many frames are below a
** candidate. A listed call (op_flat_field.h) has kernels of its own for both; the lists are uploaded.
**
** Counters are integers, so their atomics give the same numbers in any order.
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

/* What a pixel has in the frames of a stack. */
struct stored_samples {
    const stack &s;
    int64_t at;
    __device__ float operator()(int64_t f) const { return sample(s, f, at); }
};

/* What a pixel has in the flats from `first` on: less the dark, times the flat's factor. */
struct scaled_samples {
    const stack &s;
    int64_t at, first;
    const mb_flat_field_flat *list;
    float base;
    __device__ float operator()(int64_t f) const
    {
        return list[first + f].scale * (sample(s, first + f, at) - base);
    }
};

template <class Samples>
__device__ static float median_of(const Samples &samples, int64_t frames)
{
    const int64_t rank = (frames - 1) / 2; /* the lower of the middle two, from 0 */
    unsigned found = 0;
    for (int64_t f = 0; f < frames; f++) {
        float v = samples(f);
        if (v != v)
            return v;
    }
    for (unsigned bit = 0x80000000u; bit;
         bit >>= 1) { /* the largest key with at most `rank` keys below it */
        const unsigned candidate = found | bit;
        int64_t below = 0;
        for (int64_t f = 0; f < frames; f++)
            below += key_of(samples(f)) < candidate;
        if (below <= rank)
            found = candidate;
    }
    if (frames & 1)
        return value_of(found);
    int64_t upto = 0;
    unsigned next = 0xffffffffu;
    for (int64_t f = 0; f < frames; f++) {
        unsigned key = key_of(samples(f));
        upto += key <= found;
        if (key > found && key < next)
            next = key;
    }
    return (float)(0.5 * ((double)value_of(found) +
                          (double)(upto > rank + 1 ? value_of(found) : value_of(next))));
}

__global__ void __launch_bounds__(MB_THREADS)
    flat_field_frames(stack darks, stack flats, int64_t height, int64_t width, bool median,
                      bool dark_median, float floor_value, float *dark, float *denominator,
                      tally *counts)
{
    tally clamped_here = 0;
    MB_GRID_LOOP(i, height * width)
    {
        const int64_t y = i / width, x = i - y * width;
        float base = 0;
        if (dark) {
            int64_t at = y * darks.stride_y + x * darks.stride_x;
            base = dark_median ? median_of(stored_samples{darks, at}, darks.frames)
                               : mean_of(darks, at);
            dark[i] = base;
        }
        if (denominator) {
            int64_t at = y * flats.stride_y + x * flats.stride_x;
            int clamped;
            denominator[i] = mb_flat_field_denominator(
                (median ? median_of(stored_samples{flats, at}, flats.frames) : mean_of(flats, at)) -
                    base,
                floor_value, &clamped);
            clamped_here += clamped;
        }
    }
    clamped_here = mb_block_fold(clamped_here, mb_fold_sum());
    if (threadIdx.x == 0 && clamped_here)
        atomicAdd(&counts[MB_FLAT_FIELD_CLAMPED], clamped_here);
}

__device__ static float group_mean(const scaled_samples &g, int64_t frames)
{
    double sum = 0;
    for (int64_t f = g.first; f < g.first + frames; f++)
        sum +=
            (double)g.list[f].scale *
            (mb_element_load(g.s.type, g.s.data, f * g.s.stride_f + g.at, NULL) - (double)g.base);
    return (float)(sum / (double)frames);
}

/* The denominators of all groups, from the dark frame that is in its slot. */
__global__ void __launch_bounds__(MB_THREADS)
    flat_field_groups(stack flats, const mb_flat_field_flat *list, int64_t height, int64_t width,
                      bool median, float floor_value, const float *dark, float *denominator,
                      tally *counts)
{
    tally clamped_here = 0;
    MB_GRID_LOOP(i, height * width)
    {
        const int64_t y = i / width, x = i - y * width;
        scaled_samples g = {flats, y * flats.stride_y + x * flats.stride_x, 0, list,
                            dark ? dark[i] : 0.0f};
        float *to = denominator + i;
        int any = 0;
        for (int64_t f = 0; f < flats.frames; f++) {
            const int64_t count = list[f].count;
            int clamped;
            if (!count)
                continue;
            g.first = f + 1 - count;
            *to = mb_flat_field_denominator(median ? median_of(g, count) : group_mean(g, count),
                                            floor_value, &clamped);
            to += height * width;
            any |= clamped;
        }
        clamped_here += any;
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
__device__ static inline float as_float(T v)
{
    return (float)v;
}
template <>
__device__ inline float as_float<__half>(__half v)
{
    return __half2float(v);
}

/* a / b from an inverse of b: the quotient's rest corrects it to the last place. An infinity or a
** NaN of a comes out as one that is not finite, as that of the division does. */
__device__ static inline float divided_by(float a, float b, float inverse)
{
    const float q = a * inverse;
    return fmaf(fmaf(-q, b, a), inverse, q);
}

/* One divisor for all frames. */
struct one_divisor {
    float bottom, inverse;
    __device__ one_divisor(const mb_flat_field_frame *, const float *denominator, int64_t,
                           int64_t i)
        : bottom(denominator ? denominator[i] : 1.0f), inverse(1.0f / bottom)
    {
        if (inverse == 0) /* of an infinite flat: the rest is no part of the result */
            bottom = 0;
    }
    __device__ float operator()(float difference, int64_t)
    {
        return divided_by(difference, bottom, inverse);
    }
};

/* One between those of two groups, which are kept until a frame has others. */
struct listed_divisor {
    const mb_flat_field_frame *list;
    const float *denominator;
    int64_t pixels;
    int group, next;
    float low, high;
    __device__ listed_divisor(const mb_flat_field_frame *frames, const float *all, int64_t count,
                              int64_t i)
        : list(frames), denominator(all ? all + i : NULL), pixels(count), group(-1), next(-1),
          low(1), high(1)
    {
    }
    __device__ float operator()(float difference, int64_t frame)
    {
        const int4 stored = __ldg((const int4 *)(list + frame)); /* no store can change it */
        const mb_flat_field_frame f = {stored.x, stored.y, __int_as_float(stored.z),
                                       __int_as_float(stored.w)};
        if (denominator && (f.group != group || f.next != next)) {
            low = denominator[f.group * pixels];
            high = denominator[f.next * pixels];
            group = f.group;
            next = f.next;
        }
        const float above = difference * f.scale;
        const float bottom = f.part == 0 ? low : low + f.part * (high - low);
        return bottom < 8e37f ? divided_by(above, bottom, __fdividef(1.0f, bottom))
                              : above / bottom;
    }
};

template <class T, class Divisor>
__global__ void __launch_bounds__(MB_THREADS)
    flat_field_apply(stack data, frames_out to, int64_t height, int64_t width, const float *dark,
                     const float *denominator, const mb_flat_field_frame *list, float replacement,
                     tally *counts)
{
    tally replaced = 0, not_positive = 0;
    MB_GRID_LOOP(i, height * width)
    {
        const int64_t y = i / width, x = i - y * width;
        const T *in = (const T *)data.data + y * data.stride_y + x * data.stride_x;
        float *out = to.data + y * to.stride_y + x * to.stride_x;
        const float base = dark ? dark[i] : 0.0f;
        Divisor divided(list, denominator, height * width, i);
        const int64_t step = gridDim.y, in_step = step * data.stride_f;
        const int64_t out_step = step * to.stride_f;
        unsigned bad = 0, low = 0;
        int64_t f = blockIdx.y;
        in += f * data.stride_f;
        out += f * to.stride_f;
        const auto store = [&](float *place, float v) {
            const bool finite = fabsf(v) <= 3.402823466e38f;
            bad += !finite;
            low += finite && v <= 0;
            *place = finite ? v : replacement;
        };
        for (; f + (BATCH - 1) * step < data.frames; f += BATCH * step) {
            float v[BATCH]; /* all loads before the first store: the result may be the same array */
#pragma unroll
            for (int k = 0; k < BATCH; k++)
                v[k] = as_float(in[k * in_step]);
#pragma unroll
            for (int k = 0; k < BATCH; k++)
                v[k] = divided(v[k] - base, f + k * step);
#pragma unroll
            for (int k = 0; k < BATCH; k++)
                store(out + k * out_step, v[k]);
            in += BATCH * in_step;
            out += BATCH * out_step;
        }
        for (; f < data.frames; f += step, in += in_step, out += out_step)
            store(out, divided(as_float(*in) - base, f));
        replaced += bad;
        not_positive += low;
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

/* What a launch needs beside the data. */
struct job {
    const mb_op_call *call;
    stack data, darks, flats;
    frames_out out;
    int64_t height, width;
    float *dark, *denominator;
    mb_flat_field_frame *frame_list; /* NULL unless the call is listed */
    mb_flat_field_flat *flat_list;
    tally *counts;
};

#define LISTED 2048 /* entries of an upload */

static mb_status upload_lists(const job &j)
{
    const mb_flat_field_params *p = (const mb_flat_field_params *)j.call->params;
    for (int64_t first = 0; first < j.data.frames; first += LISTED) {
        mb_flat_field_frame list[LISTED];
        const int64_t left = j.data.frames - first, n = left < LISTED ? left : LISTED;
        for (int64_t i = 0; i < n; i++)
            list[i] = mb_flat_field_frame_at(p, first + i);
        MB_TRY(mb_upload(j.call, j.frame_list + first, list, (uint64_t)n * sizeof list[0]));
    }
    for (int64_t first = 0; j.flat_list && first < j.flats.frames; first += LISTED) {
        mb_flat_field_flat list[LISTED];
        const int64_t left = j.flats.frames - first, n = left < LISTED ? left : LISTED;
        for (int64_t i = 0; i < n; i++)
            list[i] = mb_flat_field_flat_at(p, j.flats.frames, first + i);
        MB_TRY(mb_upload(j.call, j.flat_list + first, list, (uint64_t)n * sizeof list[0]));
    }
    return MB_STATUS_OK;
}

static mb_status make_frames(const job &j)
{
    const mb_flat_field_params *p = (const mb_flat_field_params *)j.call->params;
    const bool median = p->mode == MB_FLAT_FIELD_MEDIAN;
    const int64_t pixels = j.height * j.width;
    const unsigned blocks = mb_blocks(j.call, pixels, MB_THREADS);
    if (j.dark || (j.denominator && !j.flat_list)) {
        flat_field_frames<<<blocks, MB_THREADS, 0, mb_stream(j.call)>>>(
            j.darks, j.flats, j.height, j.width, median,
            mb_flat_field_mode_of_darks(p) == MB_FLAT_FIELD_MEDIAN, (float)p->floor, j.dark,
            j.flat_list ? NULL : j.denominator, j.counts);
        MB_LAUNCHED("flat_field_frames");
    }
    if (j.denominator && j.flat_list) {
        flat_field_groups<<<blocks, MB_THREADS, 0, mb_stream(j.call)>>>(
            j.flats, j.flat_list, j.height, j.width, median, (float)p->floor, j.dark, j.denominator,
            j.counts);
        MB_LAUNCHED("flat_field_groups");
    }
    return MB_STATUS_OK;
}

template <class T>
static mb_status apply(const job &j)
{
    const unsigned across = mb_blocks(j.call, j.height * j.width, MB_THREADS);
    const float replacement = (float)((const mb_flat_field_params *)j.call->params)->nonfinite;
    /* Frames are split among blocks only if the pixels do not fill the device, because every split
    ** reloads the averaged frames. */
    const int64_t want = (int64_t)j.call->device->facts.threads * 32;
    int64_t down = (want + across - 1) / across;
    down = down > j.data.frames ? j.data.frames : down;
    down = down > 65535 ? 65535 : down < 1 ? 1 : down;
    auto kernel =
        j.frame_list ? flat_field_apply<T, listed_divisor> : flat_field_apply<T, one_divisor>;
    kernel<<<dim3(across, (unsigned)down), MB_THREADS, 0, mb_stream(j.call)>>>(
        j.data, j.out, j.height, j.width, j.dark, j.denominator, j.frame_list, replacement,
        j.counts);
    return MB_LAUNCH_STATUS("flat_field_apply");
}

static mb_status run(const job &j)
{
    if (j.frame_list)
        MB_TRY(upload_lists(j));
    if (j.dark || j.denominator)
        MB_TRY(make_frames(j));
    switch (j.data.type) {
    case MB_U8: return apply<uint8_t>(j);
    case MB_U16: return apply<uint16_t>(j);
    case MB_I32: return apply<int32_t>(j);
    case MB_F16: return apply<__half>(j);
    case MB_F32: return apply<float>(j);
    default: return apply<double>(j);
    }
}

extern "C" mb_status mb_cuda_flat_field(const mb_op_call *call)
{
    const mb_flat_field_params *params = (const mb_flat_field_params *)call->params;
    const mb_array *result = call->arrays[MB_FLAT_FIELD_RESULT],
                   *counts_array = call->arrays[MB_FLAT_FIELD_COUNTS];
    const stack to = stack_of(result);
    job j = {};
    j.call = call;
    j.data = stack_of(call->arrays[MB_FLAT_FIELD_DATA]);
    j.darks = stack_of(call->arrays[MB_FLAT_FIELD_DARKS]);
    j.flats = stack_of(call->arrays[MB_FLAT_FIELD_FLATS]);
    j.out = {(float *)result->data, to.stride_f, to.stride_y, to.stride_x};
    j.height = result->shape.dims[result->shape.rank - 2];
    j.width = result->shape.dims[result->shape.rank - 1];
    j.dark = (float *)call->slots[MB_FLAT_FIELD_DARK];
    j.denominator = (float *)call->slots[MB_FLAT_FIELD_DENOMINATOR];
    j.frame_list = (mb_flat_field_frame *)call->slots[MB_FLAT_FIELD_FRAME_LIST];
    j.flat_list = (mb_flat_field_flat *)call->slots[MB_FLAT_FIELD_FLAT_LIST];
    j.counts = (tally *)call->slots[MB_FLAT_FIELD_TALLY];
    MB_CUDA(cudaMemsetAsync(j.counts, 0, 3 * sizeof *j.counts, mb_stream(call)));
    if (j.data.frames > 0 && j.height * j.width > 0)
        MB_TRY(run(j));
    if (!counts_array)
        return MB_STATUS_OK;
    flat_field_counts<<<1, 3, 0, mb_stream(call)>>>(
        j.counts, params->count_raised, (double *)counts_array->data, counts_array->strides[0]);
    return MB_LAUNCH_STATUS("flat_field_counts");
}
