/*
** rl_consensus on CUDA: both grids in one pass.
*/
#include "shared/grid_rows.cuh"
#include "ops/deconvolution/op_rl_consensus.h"

__global__ void __launch_bounds__(MB_THREADS)
    consensus_kernel(float *first, float *second, mb_rl_normalizer n)
{
    const int64_t nx = n.grid[2], pitch = 2 * (nx / 2 + 1), rows = n.grid[0] * n.grid[1];
    MB_ROW_LOOP(row, rows)
    {
        const mb_rl_normalizer_row rule = mb_rl_normalizer_row_of(&n, row);
        float *a = first + row * pitch, *b = second + row * pitch;
        MB_LANE_LOOP(x, pitch)
        {
            float mean = 0, product = 0;
            if (x < nx) {
                mean = (a[x] + b[x]) / 2;
                product =
                    mb_rl_consensus_product(a[x], b[x], mb_rl_normalizer_at(&n, &rule, x), n.floor);
            }
            a[x] = mean;
            b[x] = product;
        }
    }
}

extern "C" mb_status mb_cuda_rl_consensus(const mb_op_call *call)
{
    const mb_rl_consensus_params *p = (const mb_rl_consensus_params *)call->params;
    const mb_array *first = call->arrays[MB_RL_CONSENSUS_FIRST];
    const mb_shape grid = mb_rl_consensus_grid(&first->shape, p->n);
    const mb_rl_normalizer n =
        mb_rl_normalizer_make(&p->normalizer, &grid, call->arrays[MB_RL_CONSENSUS_TABLE],
                              call->arrays[MB_RL_CONSENSUS_NORMALIZER]);
    consensus_kernel<<<mb_row_blocks(n.grid[0] * n.grid[1]), MB_THREADS, 0, mb_stream(call)>>>(
        (float *)first->data, (float *)call->arrays[MB_RL_CONSENSUS_SECOND]->data, n);
    MB_LAUNCHED("consensus_kernel");
    return MB_STATUS_OK;
}
