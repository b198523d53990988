/*
** otf on CUDA: gathers the PSF by wrapped index into the padded rows of the result, transforms it
** in place, and applies the phase of a fractional center. If the PSF has few planes, only these are
** filled and transformed; the transform along z, which treats the others as zero, writes all of
** them, unless the result stops at the planes.
*/
#include "shared/cuda_complex.cuh"
#include "shared/fft_depth.cuh"
#include "shared/grid_rows.cuh"
#include "ops/fft/op_otf.h"

struct otf_job {
    mb_grid3 n, k, center; /* grid, PSF, whole center */
    int64_t first, planes; /* of the grid, to fill, by wrapped index */
    double rest[3];
    float *grid;
    double scale;
};

__device__ static inline int64_t wrap(int64_t value, int64_t n)
{
    int64_t rest = value % n;
    return rest < 0 ? rest + n : rest;
}

/* Every grid sample is the sum of the PSF samples that map to it (more than one only if the PSF is
** larger than the grid). */
template <class T>
__global__ void __launch_bounds__(MB_THREADS) scatter_kernel(const T *psf, otf_job job)
{
    const int64_t nx = job.n.v[2], pitch = 2 * (nx / 2 + 1), rows = job.planes * job.n.v[1];
    MB_ROW_LOOP(row, rows)
    {
        int64_t plane = wrap(job.first + row / job.n.v[1], job.n.v[0]);
        int64_t z = wrap(plane + job.center.v[0], job.n.v[0]);
        float *line = job.grid + (plane * job.n.v[1] + row % job.n.v[1]) * pitch;
        int64_t y = wrap(row % job.n.v[1] + job.center.v[1], job.n.v[1]);
        bool empty = z >= job.k.v[0] || y >= job.k.v[1];
        MB_LANE_LOOP(x, pitch)
        {
            float sum = 0;
            if (!empty && x < nx) {
                int64_t first = wrap(x + job.center.v[2], nx);
                for (int64_t sz = z; sz < job.k.v[0]; sz += job.n.v[0])
                    for (int64_t sy = y; sy < job.k.v[1]; sy += job.n.v[1])
                        for (int64_t sx = first; sx < job.k.v[2]; sx += nx)
                            sum +=
                                (float)(job.scale *
                                        mb_load_as(psf[(sz * job.k.v[1] + sy) * job.k.v[2] + sx]));
            }
            line[x] = sum;
        }
    }
}

/* exp(2 pi i k shift / n); real at the Nyquist frequency, which represents both signs. */
__device__ static double2 phase(int64_t k, int64_t n, double shift)
{
    double2 w;
    sincospi(2.0 * (double)mb_otf_frequency(k, n) * shift / (double)n, &w.y, &w.x);
    if (2 * k == n)
        w.y = 0;
    return w;
}

__global__ void __launch_bounds__(MB_THREADS) shift_kernel(otf_job job)
{
    const int64_t nx = job.n.v[2], half = nx / 2 + 1, rows = job.n.v[0] * job.n.v[1];
    float2 *spectrum = (float2 *)job.grid;
    MB_ROW_LOOP(row, rows)
    {
        double2 factor = mb_complex_mul(phase(row / job.n.v[1], job.n.v[0], job.rest[0]),
                                        phase(row % job.n.v[1], job.n.v[1], job.rest[1]));
        MB_LANE_LOOP(x, half)
        {
            float2 v = spectrum[row * half + x];
            double2 w = mb_complex_mul(mb_complex_mul(factor, phase(x, nx, job.rest[2])),
                                       make_double2(v.x, v.y));
            spectrum[row * half + x] = make_float2((float)w.x, (float)w.y);
        }
    }
}

/* Along z: `k` planes are not zero, the first of them `center` planes before 0, by wrapped
** index. */
template <int N>
__global__ void __launch_bounds__(mb_fft_depth_tile<N>::threads, mb_fft_depth_tile<N>::blocks)
    spread_kernel(float2 *data, int64_t columns, int center, int k)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    typedef mb_fft_cut_of<N> cut;
    constexpr int W = mb_fft_depth_tile<N>::width;
    extern __shared__ float2 memory[];
    mb_fft_fill_table<cut>(memory);
    __syncthreads();
    const int lane = threadIdx.x % W, t = threadIdx.x / W;
    for (int64_t first = (int64_t)blockIdx.x * W; first < columns;
         first += (int64_t)gridDim.x * W) {
        const bool real = first + lane < columns;
        const float2 *from = data + t * columns + first + lane;
        const int64_t step = mb_fft_step(cut::T * columns);
        float2 v[cut::E];
#pragma unroll
        for (int j = 0; j < cut::E; j++, from += step)
            v[j] = real && ((t + cut::T * j + center) & (N - 1)) < k ? mb_fft_load(from)
                                                                     : make_float2(0, 0);
        mb_fft_run<cut, false>(v, t, memory, memory + cut::table, W, lane);
        mb_fft_columns<cut, W>::store(v, data + first, columns, t, lane, real);
    }
#endif
}

template <int N>
static mb_status spread(const mb_op_call *call, const otf_job &job)
{
    const int64_t columns = job.n.v[1] * (job.n.v[2] / 2 + 1);
    mb_fft_depth_launch launch;
    MB_TRY(mb_fft_depth_prepare<N>(call, (const void *)spread_kernel<N>, columns, 0, &launch));
    spread_kernel<N><<<launch.blocks, launch.threads, launch.shared, mb_stream(call)>>>(
        (float2 *)job.grid, columns, (int)mb_grid_wrap(job.center.v[0], N), (int)job.k.v[0]);
    return MB_LAUNCH_STATUS("spread_kernel");
}

/* Transforms the planes that are not zero. */
static mb_status transform_planes(const mb_op_call *call, const otf_job &job)
{
    const int64_t plane = job.n.v[1] * 2 * (job.n.v[2] / 2 + 1);
    for (int64_t i = 0; i < job.planes; i++) {
        float *data = job.grid + mb_grid_wrap(job.first + i, job.n.v[0]) * plane;
        MB_TRY(mb_cuda_transform(call, MB_OTF_FFT, data, data, MB_OTF_WORK));
    }
    return MB_STATUS_OK;
}

/* Then along z. */
static mb_status spread_planes(const mb_op_call *call, const otf_job &job)
{
    switch (job.n.v[0]) {
#define CASE(N)                                                                                    \
    case N: return spread<N>(call, job);
        MB_FFT_DEPTHS(CASE)
#undef CASE
    }
    return MB_STATUS_OK;
}

extern "C" mb_status mb_cuda_otf(const mb_op_call *call)
{
    const mb_otf_params *p = (const mb_otf_params *)call->params;
    const mb_array *psf = call->arrays[MB_OTF_PSF];
    otf_job job;
    mb_grid_vector(&p->size, 1, job.n.v);
    mb_grid_dims(&psf->shape, job.k.v);
    mb_otf_center(p, &psf->shape, job.center.v, job.rest);
    job.grid = (float *)call->arrays[MB_OTF_RESULT]->data;
    job.scale = p->scale;
    const int64_t few = mb_otf_few(p, &psf->shape);
    if (few)
        mb_otf_stop_at_planes(few, job.n.v, job.center.v);
    const bool spread = !few && mb_otf_by_planes(&call->device->facts, job.k.v, job.n.v);
    job.first = spread ? -job.center.v[0] : 0;
    job.planes = spread ? job.k.v[0] : job.n.v[0];
    unsigned blocks = mb_row_blocks(job.planes * job.n.v[1]);
    if (psf->dtype == MB_U8)
        scatter_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const uint8_t *)psf->data, job);
    else if (psf->dtype == MB_U16)
        scatter_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const uint16_t *)psf->data,
                                                                   job);
    else
        scatter_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const float *)psf->data, job);
    MB_LAUNCHED("scatter_kernel");
    if (few || spread)
        MB_TRY(transform_planes(call, job));
    if (spread)
        MB_TRY(spread_planes(call, job));
    if (!few && !spread)
        MB_TRY(mb_cuda_transform(call, MB_OTF_FFT, job.grid, job.grid, MB_OTF_WORK));
    if (job.rest[0] == 0 && job.rest[1] == 0 && job.rest[2] == 0)
        return MB_STATUS_OK;
    shift_kernel<<<mb_row_blocks(job.n.v[0] * job.n.v[1]), MB_THREADS, 0, mb_stream(call)>>>(job);
    return MB_LAUNCH_STATUS("shift_kernel");
}
