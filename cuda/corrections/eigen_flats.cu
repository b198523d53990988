/*
** eigen_flats on CUDA: a thread for each pixel of each resulting frame. Weights are uploaded to a
** slot.
*/
#include "shared/cuda_launch.cuh"
#include "ops/corrections/op_eigen_flats.h"

struct eigen_frames {
    const float *from;
    float *to;
    const double *weights;
    int64_t n, components, height, width;
    int64_t from_f, from_y, to_f, to_y;
};

__global__ void __launch_bounds__(MB_THREADS) eigen_flats_kernel(eigen_frames s)
{
    const int64_t k = blockIdx.y;
    MB_GRID_LOOP(i, s.height * s.width)
    {
        const int64_t y = i / s.width, x = i - y * s.width;
        float value = 1;
        if (k < s.components) {
            double sum = 0;
            for (int64_t j = 0; j < s.n; j++)
                sum += s.weights[k * s.n + j] * (double)s.from[j * s.from_f + y * s.from_y + x];
            value = (float)sum;
        } else if (k == s.components + 1)
            value = mb_eigen_flats_ramp(x, s.width);
        else if (k == s.components + 2)
            value = mb_eigen_flats_ramp(y, s.height);
        s.to[k * s.to_f + y * s.to_y + x] = value;
    }
}

extern "C" mb_status mb_cuda_eigen_flats(const mb_op_call *call)
{
    const mb_eigen_flats_params *p = (const mb_eigen_flats_params *)call->params;
    const mb_array *a = call->arrays[MB_EIGEN_FLATS_A],
                   *result = call->arrays[MB_EIGEN_FLATS_RESULT];
    eigen_frames s = {};
    s.from = (const float *)a->data;
    s.to = (float *)result->data;
    s.weights = (const double *)call->slots[MB_EIGEN_FLATS_WEIGHTS];
    s.n = a->shape.dims[0];
    s.components = p->weights.count / s.n;
    s.height = a->shape.dims[1];
    s.width = a->shape.dims[2];
    s.from_f = a->strides[0];
    s.from_y = a->strides[1];
    s.to_f = result->strides[0];
    s.to_y = result->strides[1];
    if (s.height * s.width == 0)
        return MB_STATUS_OK;
    if (p->weights.count > 0)
        MB_TRY(mb_upload(call, call->slots[MB_EIGEN_FLATS_WEIGHTS], p->weights.values,
                         (uint64_t)p->weights.count * sizeof(double)));
    const dim3 grid(mb_blocks(call, s.height * s.width, MB_THREADS),
                    (unsigned)(s.components + MB_EIGEN_FLATS_EXTRA));
    eigen_flats_kernel<<<grid, MB_THREADS, 0, mb_stream(call)>>>(s);
    return MB_LAUNCH_STATUS("eigen_flats_kernel");
}
