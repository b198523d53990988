/*
** stripes_sorting on CUDA: a group of sinograms at a time.
*/
#include "stripes/stripes_launch.h"
#include "shared/cuda_launch.cuh"

extern "C" mb_status mb_cuda_stripes_sorting(const mb_op_call *call)
{
    const mb_stripes_params *p = (const mb_stripes_params *)call->params;
    const mb_array *sino = call->arrays[MB_STRIPES_SINO];
    int32_t *values = (int32_t *)call->slots[MB_STRIPES_VALUES];
    int32_t *medians = (int32_t *)call->slots[MB_STRIPES_MEDIANS];
    if (mb_count(sino) == 0)
        return MB_STATUS_OK;
    const int64_t rows = mb_stripes_sinos_of(&sino->shape).rows;
    for (int64_t z = 0; z < rows;) {
        const mb_stripes_batch batch = mb_stripes_batch_at(call, z);
        MB_TRY(mb_stripes_launch_sort(call, &batch));
        MB_TRY(mb_stripes_launch_medians(call, &batch, values, medians, p->size));
        MB_TRY(mb_stripes_launch_put_back(call, &batch, medians));
        z += batch.count;
    }
    return MB_STATUS_OK;
}
