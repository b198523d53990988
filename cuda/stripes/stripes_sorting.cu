/*
** stripes_sorting on CUDA.
*/
#include "stripes/stripes_launch.h"

extern "C" mb_status mb_cuda_stripes_sorting(const mb_op_call *call)
{
    const mb_stripes_job job =
        mb_stripes_job_of(MB_STRIPES_BY_SORTING, (const mb_stripes_params *)call->params);
    return mb_stripes_launch(call, &job);
}
