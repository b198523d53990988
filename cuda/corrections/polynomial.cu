/*
** polynomial on CUDA: Horner's rule on each element, in place or apart, any strides. The
** coefficients are kernel arguments.
*/
#include "shared/cuda_launch.cuh"
#include "ops/corrections/op_polynomial.h"

enum { TO, FROM }; /* in walks */

struct polynomial_terms {
    int count;
    float c[MB_POLYNOMIAL_MOST];
};

__global__ void __launch_bounds__(MB_THREADS)
    polynomial_kernel(float *to, const float *from, mb_grid_walk walk, bool dense,
                      polynomial_terms terms)
{
    MB_BATCH_LOOP(first, walk.count)
    {
        float v[MB_BATCH], r[MB_BATCH];
        int64_t at[MB_BATCH][2];
#pragma unroll
        for (int k = 0; k < MB_BATCH; k++) {
            int64_t i = first + k * MB_THREADS;
            at[k][TO] = at[k][FROM] = i;
            if (!dense && i < walk.count)
                mb_grid_walk_at<2>(walk, i, at[k]);
            v[k] = i < walk.count ? from[at[k][FROM]] : 0.0f;
            r[k] = terms.c[terms.count - 1];
        }
        for (int t = terms.count - 2; t >= 0; t--)
#pragma unroll
            for (int k = 0; k < MB_BATCH; k++)
                r[k] = r[k] * v[k] + terms.c[t];
#pragma unroll
        for (int k = 0; k < MB_BATCH; k++)
            if (first + k * MB_THREADS < walk.count)
                to[at[k][TO]] = v[k] == v[k] ? r[k] : v[k];
    }
}

extern "C" mb_status mb_cuda_polynomial(const mb_op_call *call)
{
    const mb_vector *given = &((const mb_polynomial_params *)call->params)->coefficients;
    const mb_array *arrays[] = {call->arrays[MB_POLYNOMIAL_RESULT], call->arrays[MB_POLYNOMIAL_A]};
    polynomial_terms terms = {};
    mb_grid_walk walk;
    mb_grid_walk_make(&walk, arrays, 2);
    if (walk.count == 0)
        return MB_STATUS_OK;
    terms.count = (int)given->count;
    for (int k = 0; k < terms.count; k++)
        terms.c[k] = (float)given->values[k];
    polynomial_kernel<<<mb_blocks(call, walk.count, MB_THREADS * MB_BATCH), MB_THREADS, 0,
                        mb_stream(call)>>>((float *)arrays[TO]->data,
                                           (const float *)arrays[FROM]->data, walk,
                                           mb_grid_walk_dense(&walk, 2), terms);
    return MB_LAUNCH_STATUS("polynomial_kernel");
}
