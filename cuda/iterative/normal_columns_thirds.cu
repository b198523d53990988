/*
** normal_operator on CUDA: launches of the transforms along columns of 3 * 2^k points. A file of
** its own, because kernels of all lengths take long to compile.
*/
#include "iterative/normal_columns_kernel.cuh"

mb_status normal_columns_thirds(const mb_op_call *call, const normal_job &job)
{
    switch (job.py) {
#define CASE(N)                                                                                    \
    case N: return normal_launch_columns<N>(call, job);
        NORMAL_THIRDS(CASE)
#undef CASE
    }
    return MB_STATUS_OK;
}
