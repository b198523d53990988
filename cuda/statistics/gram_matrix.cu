/*
** gram_matrix on CUDA: a block adds the products of four frames with four others over a segment of
** rows, so that it reads eight rows for sixteen sums; a second kernel adds the segments.
*/
#include "shared/cuda_launch.cuh"
#include "ops/statistics/op_gram_matrix.h"

#define TILE 4

struct gram_frames {
    const float *data;
    int64_t n, rows, columns, segments, stride_f, stride_y;
};

__global__ void __launch_bounds__(MB_THREADS) gram_matrix_kernel(gram_frames s, double *partials)
{
    const int64_t segment = blockIdx.x, i0 = (int64_t)blockIdx.y * TILE;
    const int64_t j0 = (int64_t)blockIdx.z * TILE;
    const int64_t first = segment * s.rows / s.segments, end = (segment + 1) * s.rows / s.segments;
    double sums[TILE][TILE] = {};
    if (j0 > i0)
        return;
    for (int64_t y = first; y < end; y++)
        for (int64_t x = threadIdx.x; x < s.columns; x += MB_THREADS) {
            const float *at = s.data + y * s.stride_y + x;
            float a[TILE], b[TILE];
#pragma unroll
            for (int k = 0; k < TILE; k++) {
                a[k] = i0 + k < s.n ? at[(i0 + k) * s.stride_f] : 0.0f;
                b[k] = j0 + k < s.n ? at[(j0 + k) * s.stride_f] : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < TILE; i++)
#pragma unroll
                for (int j = 0; j < TILE; j++)
                    sums[i][j] += (double)a[i] * (double)b[j];
        }
#pragma unroll
    for (int i = 0; i < TILE; i++)
#pragma unroll
        for (int j = 0; j < TILE; j++) {
            const double sum = mb_block_fold(sums[i][j], mb_fold_sum());
            if (threadIdx.x == 0 && i0 + i < s.n && j0 + j <= i0 + i)
                partials[(segment * s.n + i0 + i) * s.n + j0 + j] = sum;
        }
}

__global__ void __launch_bounds__(MB_THREADS)
    gram_matrix_sum(gram_frames s, const double *partials, double *to, int64_t step_i,
                    int64_t step_j)
{
    MB_GRID_LOOP(at, s.n * s.n)
    {
        const int64_t i = at / s.n, j = at - i * s.n;
        double sum = 0;
        if (j > i)
            continue;
        for (int64_t k = 0; k < s.segments; k++)
            sum += partials[(k * s.n + i) * s.n + j];
        to[i * step_i + j * step_j] = sum;
        to[j * step_i + i * step_j] = sum;
    }
}

extern "C" mb_status mb_cuda_gram_matrix(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_GRAM_MATRIX_A],
                   *result = call->arrays[MB_GRAM_MATRIX_RESULT];
    double *partials = (double *)call->slots[MB_GRAM_MATRIX_PARTIALS];
    gram_frames s = {};
    s.data = (const float *)a->data;
    s.n = a->shape.dims[0];
    s.rows = a->shape.dims[1];
    s.columns = a->shape.dims[2];
    s.segments = mb_gram_matrix_segments(s.n, s.rows);
    s.stride_f = a->strides[0];
    s.stride_y = a->strides[1];
    if (s.n == 0)
        return MB_STATUS_OK;
    const unsigned tiles = (unsigned)((s.n + TILE - 1) / TILE);
    if (s.segments > 0) {
        gram_matrix_kernel<<<dim3((unsigned)s.segments, tiles, tiles), MB_THREADS, 0,
                             mb_stream(call)>>>(s, partials);
        MB_LAUNCHED("gram_matrix_kernel");
    }
    gram_matrix_sum<<<mb_blocks(call, s.n * s.n, MB_THREADS), MB_THREADS, 0, mb_stream(call)>>>(
        s, partials, (double *)result->data, result->strides[0], result->strides[1]);
    return MB_LAUNCH_STATUS("gram_matrix_sum");
}
