/*
** adaptive_threshold on CUDA: the last pass of the filter compares its values instead of storing
** them.
*/
#include "ops/filter/op_adaptive_threshold.h"
#include "filter/separable.cuh"

template <class T>
struct compare {
    const T *image;
    uint8_t *to;
    mb_separable_lines image_lines, lines;
    float offset;
    uint8_t above, below;
    struct place {
        const compare &job;
        const T *image;
        uint8_t *to;
        __device__ void operator()(int64_t i, float level) const
        {
            to[i * job.lines.step] =
                (float)image[i * job.image_lines.step] > level - job.offset ? job.above : job.below;
        }
    };
    __device__ place line(int64_t o, int64_t c) const
    {
        return {*this, image + mb_separable_first(image_lines, o, c),
                to + mb_separable_first(lines, o, c)};
    }
};

template <class T>
static mb_status last_pass(const mb_separable_passes *passes)
{
    const mb_op_call *call = passes->call;
    const mb_adaptive_threshold_params *p = (const mb_adaptive_threshold_params *)call->params;
    const mb_array *a = passes->a, *result = call->arrays[MB_ADAPTIVE_THRESHOLD_RESULT];
    const uint8_t mark = (uint8_t)p->foreground;
    const int last = passes->s->count - 1;
    const mb_separable_pass *pass = &passes->s->pass[last];
    const compare<T> store = {(const T *)a->data,
                              (uint8_t *)result->data,
                              mb_separable_lines_of(pass, &a->shape, a->strides),
                              mb_separable_lines_of(pass, &a->shape, result->strides),
                              (float)p->offset,
                              (uint8_t)(p->invert ? 0 : mark),
                              (uint8_t)(p->invert ? mark : 0)};
    if (passes->from)
        return mb_separable_launch(
            call, mb_separable_reads<float>(passes, last, passes->from, passes->strides),
            passes->weights, store);
    return mb_separable_launch(call, mb_separable_reads<T>(passes, last, a->data, a->strides),
                               passes->weights, store);
}

extern "C" mb_status mb_cuda_adaptive_threshold(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_ADAPTIVE_THRESHOLD_A];
    float *weights = (float *)call->slots[MB_ADAPTIVE_THRESHOLD_WEIGHTS];
    const mb_separable s =
        mb_adaptive_threshold_passes((const mb_adaptive_threshold_params *)call->params, &a->shape);
    mb_separable_passes passes = {call, &s, a, weights};
    MB_TRY(mb_separable_upload(call, &s, weights));
    MB_TRY(mb_separable_but_last(&passes, (float *)call->slots[MB_ADAPTIVE_THRESHOLD_LOCAL],
                                 (float *)call->slots[MB_ADAPTIVE_THRESHOLD_OTHER], NULL));
    switch (a->dtype) {
    case MB_U8: return last_pass<uint8_t>(&passes);
    case MB_U16: return last_pass<uint16_t>(&passes);
    default: return last_pass<float>(&passes);
    }
}
