/*
** gaussian_filter on CUDA: passes of weighted sums between the result and one array of scratch.
*/
#include "ops/op_gaussian_filter.h"
#include "separable.cuh"

extern "C" mb_status mb_cuda_gaussian_filter(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_GAUSSIAN_FILTER_A];
    float *result = (float *)call->arrays[MB_GAUSSIAN_FILTER_RESULT]->data;
    float *weights = (float *)call->slots[MB_GAUSSIAN_FILTER_WEIGHTS];
    const mb_separable s =
        mb_gaussian_filter_passes((const mb_gaussian_filter_params *)call->params, &a->shape);
    mb_dtype dtype = a->dtype;
    const void *from = a->data;
    MB_TRY(mb_separable_upload(call, &s, weights));
    MB_TRY(mb_separable_but_last(call, &s, &dtype, &from, weights,
                                 (float *)call->slots[MB_GAUSSIAN_FILTER_SCRATCH], result));
    return mb_separable_pass_from(call, &s, s.count - 1, dtype, from, weights,
                                  mb_separable_store{result});
}
