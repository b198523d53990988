/*
** normal_operator on CUDA: launches of the transforms along rows, forth.
*/
#include "iterative/normal_rows_kernels.cuh"

mb_status normal_rows_forth(const mb_op_call *call, const normal_job &job)
{
    if (job.direction.data)
        return normal_rows_grow(call, job);
    switch (job.px) {
#define CASE(N)                                                                                    \
    case N: return normal_launch_forth<N>(call, job);
        NORMAL_EXTENTS(CASE)
#undef CASE
    }
    return MB_STATUS_OK;
}
