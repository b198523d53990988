/*
** gaussian_filter on CUDA: passes of weighted sums between the result and one array of scratch.
*/
#include "ops/filter/op_gaussian_filter.h"
#include "filter/separable.cuh"

extern "C" mb_status mb_cuda_gaussian_filter(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_GAUSSIAN_FILTER_A];
    float *weights = (float *)call->slots[MB_GAUSSIAN_FILTER_WEIGHTS];
    const mb_separable s =
        mb_gaussian_filter_passes((const mb_gaussian_filter_params *)call->params, &a->shape);
    mb_separable_passes passes = {call, &s, a, weights};
    MB_TRY(mb_separable_upload(call, &s, weights));
    return mb_separable_all(&passes, (float *)call->slots[MB_GAUSSIAN_FILTER_SCRATCH],
                            call->arrays[MB_GAUSSIAN_FILTER_RESULT]);
}
