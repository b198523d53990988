/*
** box_filter on CUDA: passes of running sums between the result and one array of scratch.
*/
#include "ops/filter/op_box_filter.h"
#include "filter/separable.cuh"

extern "C" mb_status mb_cuda_box_filter(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_BOX_FILTER_A];
    const mb_separable s =
        mb_box_filter_passes((const mb_box_filter_params *)call->params, &a->shape);
    mb_separable_passes passes = {call, &s, a};
    return mb_separable_all(&passes, (float *)call->slots[MB_BOX_FILTER_SCRATCH],
                            call->arrays[MB_BOX_FILTER_RESULT]);
}
