/*
** box_filter on CUDA: passes of running sums between the result and one array of scratch.
*/
#include "ops/op_box_filter.h"
#include "separable.cuh"

extern "C" mb_status mb_cuda_box_filter(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_BOX_FILTER_A];
    float *result = (float *)call->arrays[MB_BOX_FILTER_RESULT]->data;
    const mb_separable s =
        mb_box_filter_passes((const mb_box_filter_params *)call->params, &a->shape);
    mb_dtype dtype = a->dtype;
    const void *from = a->data;
    MB_TRY(mb_separable_but_last(call, &s, &dtype, &from, NULL,
                                 (float *)call->slots[MB_BOX_FILTER_SCRATCH], result));
    return mb_separable_pass_from(call, &s, s.count - 1, dtype, from, NULL,
                                  mb_separable_store{result});
}
