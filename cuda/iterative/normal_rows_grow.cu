/*
** normal_operator on CUDA: launches of the transforms along rows, forth, that make the direction. A
** file of its own, because kernels of all lengths take long to compile.
*/
#include "iterative/normal_rows_kernels.cuh"

mb_status normal_rows_grow(const mb_op_call *call, const normal_job &job)
{
    switch (job.px) {
#define CASE(N)                                                                                    \
    case N: return normal_launch_rows<N>(call, job, normal_rows_forth_kernel<N, true>);
        NORMAL_EXTENTS(CASE)
#undef CASE
    }
    return MB_STATUS_OK;
}
