/*
** adaptive_threshold on CUDA: the last pass of the filter compares what it makes instead of storing it.
*/
#include "ops/op_adaptive_threshold.h"
#include "separable.cuh"

template <class T>
struct compare {
    const T *image;
    uint8_t *to;
    float offset;
    uint8_t above, below;
    __device__ void operator()(int64_t i, float level) const
    {
        to[i] = (float)image[i] > level - offset ? above : below;
    }
};

template <class T>
static mb_status last_pass(const mb_op_call *call, const mb_separable *s, mb_dtype dtype,
                           const void *from, const float *weights)
{
    const mb_adaptive_threshold_params *p = (const mb_adaptive_threshold_params *)call->params;
    const uint8_t mark = (uint8_t)p->foreground;
    const compare<T> store = {(const T *)call->arrays[MB_ADAPTIVE_THRESHOLD_A]->data,
                              (uint8_t *)call->arrays[MB_ADAPTIVE_THRESHOLD_RESULT]->data,
                              (float)p->offset, (uint8_t)(p->invert ? 0 : mark),
                              (uint8_t)(p->invert ? mark : 0)};
    if (s->count == 1)
        return mb_separable_launch(call, s, 0, (const T *)from, weights, store);
    return mb_separable_pass_from(call, s, s->count - 1, dtype, from, weights, store);
}

extern "C" mb_status mb_cuda_adaptive_threshold(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_ADAPTIVE_THRESHOLD_A];
    float *weights = (float *)call->slots[MB_ADAPTIVE_THRESHOLD_WEIGHTS];
    const mb_separable s =
        mb_adaptive_threshold_passes((const mb_adaptive_threshold_params *)call->params, &a->shape);
    mb_dtype dtype = a->dtype;
    const void *from = a->data;
    MB_TRY(mb_separable_upload(call, &s, weights));
    MB_TRY(mb_separable_but_last(call, &s, &dtype, &from, weights,
                                 (float *)call->slots[MB_ADAPTIVE_THRESHOLD_LOCAL],
                                 (float *)call->slots[MB_ADAPTIVE_THRESHOLD_OTHER]));
    switch (a->dtype) {
    case MB_U8: return last_pass<uint8_t>(call, &s, dtype, from, weights);
    case MB_U16: return last_pass<uint16_t>(call, &s, dtype, from, weights);
    default: return last_pass<float>(call, &s, dtype, from, weights);
    }
}
