/*
** summed_area on CUDA: values with zero planes in front, then running sums along one axis after another, a thread per line.
*/
#include "grid_rows.cuh"
#include "ops/op_summed_area.h"

template <class T>
__global__ void __launch_bounds__(MB_THREADS)
    place_kernel(const T *a, double *out, mb_grid3 k, mb_grid3 n, double scale)
{
    const int64_t count = n.v[0] * n.v[1] * n.v[2];
    MB_GRID_LOOP(i, count)
    {
        /* 1 on the axes that have grown */
        int64_t z = i / (n.v[1] * n.v[2]) - (n.v[0] - k.v[0]),
                y = i / n.v[2] % n.v[1] - (n.v[1] - k.v[1]);
        int64_t x = i % n.v[2] - (n.v[2] - k.v[2]);
        out[i] = z < 0 || y < 0 || x < 0 ? 0 : mb_load_as(a[(z * k.v[1] + y) * k.v[2] + x]) * scale;
    }
}

__global__ void __launch_bounds__(MB_THREADS)
    sum_kernel(double *out, int64_t lines, int64_t length, int64_t step)
{
    MB_GRID_LOOP(line, lines)
    {
        double *at = out + line / step * step * length + line % step, sum = 0;
        for (int64_t i = 0; i < length; i++) {
            sum += at[i * step];
            at[i * step] = sum;
        }
    }
}

extern "C" mb_status mb_cuda_summed_area(const mb_op_call *call)
{
    const mb_summed_area_params *p = (const mb_summed_area_params *)call->params;
    const mb_array *a = call->arrays[MB_SUMMED_AREA_A];
    double *out = (double *)call->arrays[MB_SUMMED_AREA_RESULT]->data;
    mb_grid3 k, n;
    mb_grid_dims(&a->shape, k.v);
    for (int i = 0; i < 3; i++)
        n.v[i] = k.v[i] + (i >= 3 - a->shape.rank);
    int64_t count = n.v[0] * n.v[1] * n.v[2], steps[3] = {n.v[1] * n.v[2], n.v[2], 1};
    unsigned blocks = mb_blocks(call, count, MB_THREADS);
    if (a->dtype == MB_U8)
        place_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const uint8_t *)a->data, out, k,
                                                                 n, p->scale);
    else if (a->dtype == MB_U16)
        place_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const uint16_t *)a->data, out, k,
                                                                 n, p->scale);
    else
        place_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const float *)a->data, out, k, n,
                                                                 p->scale);
    MB_LAUNCHED("place_kernel");
    for (int axis = 2; axis >= 3 - a->shape.rank; axis--) {
        int64_t lines = count / n.v[axis];
        sum_kernel<<<mb_blocks(call, lines, MB_THREADS), MB_THREADS, 0, mb_stream(call)>>>(
            out, lines, n.v[axis], steps[axis]);
        MB_LAUNCHED("sum_kernel");
    }
    return MB_STATUS_OK;
}
