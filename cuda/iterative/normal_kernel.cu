/*
** normal_kernel on CUDA, in double precision: the sums of sincs, a thread a place; their transforms
** along x and then along y by the definition, a thread a frequency, whose factor turns from place
** to place and is made anew before its rounding errors count. The latter are real, and half of the
** rows is enough.
*/
#include "ops/iterative/op_normal_kernel.h"
#include "shared/cuda_launch.cuh"

#define NORMAL_TURNS MB_THREADS /* between two factors that are made anew: a tile */

/* [py / 2][px]: rows y = 0 ..., x after px / 2 is negative. */
__global__ static void __launch_bounds__(MB_THREADS)
    normal_kernel_values(const mb_normal_angle *angles, int64_t count, double *to, int64_t points,
                         int64_t px, double period)
{
    const double inverse = 1.0 / period;
    MB_GRID_LOOP(i, points)
    {
        const int64_t y = i / px, place = i - y * px, x = 2 * place < px ? place : place - px;
        double sum = 0;
        for (int64_t a = 0; a < count && 2 * x > -px; a++) {
            const mb_normal_angle t = angles[a];
            const double u = (double)x * t.cosine - (double)y * t.sine,
                         rest = u - period * rint(u * inverse);
            sum += t.weight * (fabs(rest) < 1e-7 ? (period - 1) * inverse
                                                 : sinpi(rest - rest * inverse) /
                                                       (period * sinpi(rest * inverse)));
        }
        to[i] = sum;
    }
}

/* exp(-2 pi i k j / n) */
__device__ static inline double2 normal_factor(int64_t k, int64_t j, int64_t n)
{
    double2 w;
    sincospi(-2.0 * (double)(k * j % n) / (double)n, &w.y, &w.x);
    return w;
}

__device__ static inline double2 normal_turned(double2 a, double2 b)
{
    return make_double2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

/* Row y = blockIdx.y of the values, at frequencies k of this block, to [k][y]. */
__global__ static void __launch_bounds__(MB_THREADS)
    normal_kernel_rows(const double *from, double2 *to, int64_t px, int64_t half, int64_t rows)
{
    __shared__ double tile[NORMAL_TURNS];
    const int64_t k = blockIdx.x * (int64_t)MB_THREADS + threadIdx.x;
    const double2 turn = normal_factor(k, 1, px);
    for (int64_t y = blockIdx.y; y < rows; y += gridDim.y) {
        double2 sum = make_double2(0, 0);
        for (int64_t first = 0; first < px; first += NORMAL_TURNS) {
            const int count = px - first < NORMAL_TURNS ? (int)(px - first) : NORMAL_TURNS;
            double2 w = normal_factor(k, first, px);
            __syncthreads();
            if (threadIdx.x < count)
                tile[threadIdx.x] = from[y * px + first + threadIdx.x];
            __syncthreads();
            for (int i = 0; i < count; i++) {
                sum.x += tile[i] * w.x;
                sum.y += tile[i] * w.y;
                w = normal_turned(w, turn);
            }
        }
        if (k < half)
            to[k * rows + y] = sum;
    }
}

/* Column kx = blockIdx.y of these, at frequencies ky of this block: a row of y is the conjugate of
** that of -y. */
__global__ static void __launch_bounds__(MB_THREADS)
    normal_kernel_columns(const double2 *from, float *to, int64_t py, int64_t half, double scale)
{
    __shared__ double2 tile[NORMAL_TURNS];
    const int64_t k = blockIdx.x * (int64_t)MB_THREADS + threadIdx.x, rows = py / 2;
    const double2 turn = normal_factor(k, 1, py);
    for (int64_t x = blockIdx.y; x < half; x += gridDim.y) {
        double sum = -0.5 * from[x * rows].x; /* row 0 comes once */
        for (int64_t first = 0; first < rows; first += NORMAL_TURNS) {
            const int count = rows - first < NORMAL_TURNS ? (int)(rows - first) : NORMAL_TURNS;
            double2 w = normal_factor(k, first, py);
            __syncthreads();
            if (threadIdx.x < count)
                tile[threadIdx.x] = from[x * rows + first + threadIdx.x];
            __syncthreads();
            for (int i = 0; i < count; i++) {
                sum += tile[i].x * w.x - tile[i].y * w.y;
                w = normal_turned(w, turn);
            }
        }
        if (k < py)
            to[x * py + k] = (float)(2 * sum * scale);
    }
}

static mb_status upload_angles(const mb_op_call *call, const mb_normal_kernel_params *p)
{
    const int64_t count = p->angles.count;
    mb_normal_angle *angles = (mb_normal_angle *)malloc((size_t)count * sizeof *angles);
    if (!angles)
        return mb_cuda_core->fail(MB_STATUS_MEMORY, NULL, "no host memory for %lld angles",
                                  (long long)count);
    for (int64_t a = 0; a < count; a++)
        angles[a] = mb_normal_angle_of(p, a);
    const mb_status status = mb_upload(call, call->slots[MB_NORMAL_KERNEL_ANGLES], angles,
                                       (uint64_t)count * sizeof *angles);
    free(angles);
    return status;
}

extern "C" mb_status mb_cuda_normal_kernel(const mb_op_call *call)
{
    const mb_normal_kernel_params *p = (const mb_normal_kernel_params *)call->params;
    const mb_array *result = call->arrays[MB_NORMAL_KERNEL_RESULT];
    const int64_t half = result->shape.dims[0], py = result->shape.dims[1], px = 2 * (half - 1),
                  rows = py / 2, most = 65535;
    double *values = (double *)call->slots[MB_NORMAL_KERNEL_VALUES];
    double2 *spectra = (double2 *)call->slots[MB_NORMAL_KERNEL_ROWS];
    if (p->angles.count == 0)
        return mb_cuda_core->fail(MB_STATUS_ARGUMENT, "angles",
                                  "angles is empty; give at least one");
    MB_TRY(upload_angles(call, p));
    normal_kernel_values<<<mb_blocks(call, rows * px, MB_THREADS), MB_THREADS, 0,
                           mb_stream(call)>>>(
        (const mb_normal_angle *)call->slots[MB_NORMAL_KERNEL_ANGLES], p->angles.count, values,
        rows * px, px, (double)mb_normal_period(p));
    MB_LAUNCHED("normal_kernel_values");
    normal_kernel_rows<<<dim3((unsigned)((half + MB_THREADS - 1) / MB_THREADS),
                              (unsigned)(rows < most ? rows : most)),
                         MB_THREADS, 0, mb_stream(call)>>>(values, spectra, px, half, rows);
    MB_LAUNCHED("normal_kernel_rows");
    normal_kernel_columns<<<dim3((unsigned)((py + MB_THREADS - 1) / MB_THREADS),
                                 (unsigned)(half < most ? half : most)),
                            MB_THREADS, 0, mb_stream(call)>>>(spectra, (float *)result->data, py,
                                                              half, p->scale);
    MB_LAUNCHED("normal_kernel_columns");
    return MB_STATUS_OK;
}
