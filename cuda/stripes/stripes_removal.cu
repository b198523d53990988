/*
** Removal of stripes on CUDA: what an operator does to a group of sinograms, one group after the
** other.
*/
#include "stripes/stripes_launch.h"
#include "shared/cuda_launch.cuh"

static mb_status remove_stripes(const mb_op_call *call, const mb_stripes_job *job,
                                mb_stripes_batch b)
{
    int32_t *values = (int32_t *)call->slots[MB_STRIPES_VALUES];
    int32_t *medians = (int32_t *)call->slots[MB_STRIPES_MEDIANS];
    if (job->dead) {
        MB_TRY(mb_stripes_launch_fluctuations(call, &b, job->large_size));
        MB_TRY(mb_stripes_launch_find(call, &b, job->snr, true));
        MB_TRY(mb_stripes_launch_fill_in(call, &b));
        b.from = b.to;
        b.from_row = b.to_row;
        b.from_angle = b.to_angle;
    }
    if (!job->large && !job->sorting)
        return MB_STATUS_OK;
    MB_TRY(mb_stripes_launch_sort(call, &b));
    if (job->large) {
        MB_TRY(mb_stripes_launch_medians(call, &b, values, medians, job->large_size));
        MB_TRY(mb_stripes_launch_factors(call, &b, job->drop_ratio));
        MB_TRY(mb_stripes_launch_find(call, &b, job->snr, false));
        MB_TRY(mb_stripes_launch_choose(call, &b, job->normalize));
    }
    if (job->large && job->sorting)
        MB_TRY(mb_stripes_launch_medians(call, &b, medians, values, job->small_size));
    else if (job->sorting)
        MB_TRY(mb_stripes_launch_medians(call, &b, values, medians, job->small_size));
    return mb_stripes_launch_put_back(call, &b, job->large && job->sorting ? values : medians);
}

mb_status mb_stripes_launch(const mb_op_call *call, const mb_stripes_job *job)
{
    const mb_array *sino = call->arrays[MB_STRIPES_SINO];
    if (mb_count(sino) == 0)
        return MB_STATUS_OK;
    const int64_t rows = mb_stripes_sinos_of(&sino->shape).rows;
    for (int64_t z = 0; z < rows;) {
        const mb_stripes_batch batch = mb_stripes_batch_at(call, z);
        MB_TRY(remove_stripes(call, job, batch));
        z += batch.count;
    }
    return MB_STATUS_OK;
}
