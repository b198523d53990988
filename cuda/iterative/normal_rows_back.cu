/*
** normal_operator on CUDA: launches of the transforms along rows, back.
*/
#include "iterative/normal_rows_kernels.cuh"

mb_status normal_rows_back(const mb_op_call *call, const normal_job &job)
{
    switch (job.px) {
#define CASE(N)                                                                                    \
    case N: return normal_launch_rows<N>(call, job, normal_rows_back_kernel<N>);
        NORMAL_EXTENTS(CASE)
#undef CASE
    }
    return MB_STATUS_OK;
}
