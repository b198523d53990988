/*
** summed_area on CUDA: values with zero planes in front, then running sums along one axis after
** another, a thread per line.
*/
#include "shared/grid_rows.cuh"
#include "ops/filter/op_summed_area.h"

/* Both arrays with three axes. */
struct job {
    mb_grid3 k, n;        /* extents of a and of the result */
    mb_grid3 from, steps; /* strides of a and of the result */
    double scale;
};

template <class T>
__global__ void __launch_bounds__(MB_THREADS) place_kernel(const T *a, double *out, job job)
{
    const mb_grid3 &n = job.n, &k = job.k;
    const int64_t count = n.v[0] * n.v[1] * n.v[2];
    MB_GRID_LOOP(i, count)
    {
        const int64_t at[3] = {i / (n.v[1] * n.v[2]), i / n.v[2] % n.v[1], i % n.v[2]};
        int64_t source = 0, place = 0;
        bool zero = false;
        for (int axis = 0; axis < 3; axis++) {
            const int64_t own =
                at[axis] - (n.v[axis] - k.v[axis]); /* n - k is 1 on axes with a zero plane */
            source += own * job.from.v[axis];
            place += at[axis] * job.steps.v[axis];
            zero = zero || own < 0;
        }
        out[place] = zero ? 0 : mb_load_as(a[source]) * job.scale;
    }
}

/* Lines of `length` elements `step` apart, one for each of `rows` x `columns` at their strides. */
__global__ void __launch_bounds__(MB_THREADS)
    sum_kernel(double *out, int64_t rows, int64_t row_step, int64_t columns, int64_t column_step,
               int64_t length, int64_t step)
{
    MB_GRID_LOOP(line, rows * columns)
    {
        double *at = out + line / columns * row_step + line % columns * column_step, sum = 0;
        for (int64_t i = 0; i < length; i++) {
            sum += at[i * step];
            at[i * step] = sum;
        }
    }
}

extern "C" mb_status mb_cuda_summed_area(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_SUMMED_AREA_A],
                   *result = call->arrays[MB_SUMMED_AREA_RESULT];
    double *out = (double *)result->data;
    job job = {};
    mb_grid_dims(&a->shape, job.k.v);
    mb_grid_dims(&result->shape, job.n.v);
    mb_grid_strides(a, job.from.v);
    mb_grid_strides(result, job.steps.v);
    job.scale = ((const mb_summed_area_params *)call->params)->scale;
    unsigned blocks = mb_blocks(call, mb_count(result), MB_THREADS);
    if (a->dtype == MB_U8)
        place_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const uint8_t *)a->data, out,
                                                                 job);
    else if (a->dtype == MB_U16)
        place_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const uint16_t *)a->data, out,
                                                                 job);
    else
        place_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const float *)a->data, out, job);
    MB_LAUNCHED("place_kernel");
    for (int axis = 2; axis >= 3 - a->shape.rank; axis--) {
        const int row = axis == 0 ? 1 : 0, column = axis == 2 ? 1 : 2; /* the other two axes */
        const mb_grid3 &n = job.n, &steps = job.steps;
        sum_kernel<<<mb_blocks(call, n.v[row] * n.v[column], MB_THREADS), MB_THREADS, 0,
                     mb_stream(call)>>>(out, n.v[row], steps.v[row], n.v[column], steps.v[column],
                                        n.v[axis], steps.v[axis]);
        MB_LAUNCHED("sum_kernel");
    }
    return MB_STATUS_OK;
}
