/*
** eigen_flat_field on CUDA. The sums of a fit are made in segments of samples, whose order does not
** depend on the launch, and then folded for each frame; one pass over the data follows, in which a
** thread keeps what the basis has at its pixel for all frames.
*/
#include "shared/cuda_launch.cuh"
#include "ops/corrections/op_eigen_flat_field.h"

typedef unsigned long long tally;

struct eigen_job {
    const void *data;
    float *to;
    const float *mean, *basis, *dark;
    int64_t frames, height, width, strip, segments;
    int64_t data_f, data_y, to_f, to_y, mean_y, basis_k, basis_y, dark_y;
    int images;
    float floor_value, replacement;
};

template <class T>
__device__ static inline float eigen_sample(const eigen_job &j, int64_t frame, int64_t y, int64_t x)
{
    const float v = (float)mb_load_as(((const T *)j.data)[frame * j.data_f + y * j.data_y + x]);
    return j.dark ? v - j.dark[y * j.dark_y + x] : v;
}

template <class T>
__global__ void __launch_bounds__(MB_THREADS) eigen_fit_kernel(eigen_job j, double *partials)
{
    const int64_t segment = blockIdx.x, across = 2 * j.strip, count = j.height * across;
    for (int64_t frame = blockIdx.y; frame < j.frames; frame += gridDim.y) {
        double sums[MB_EIGEN_MOST];
#pragma unroll
        for (int k = 0; k < MB_EIGEN_MOST; k++)
            sums[k] = 0;
        for (int i = threadIdx.x; i < MB_EIGEN_SEGMENT; i += MB_THREADS) {
            const int64_t at = segment * MB_EIGEN_SEGMENT + i;
            if (at >= count)
                break;
            const int64_t y = at / across, c = at - y * across;
            const int64_t x = c < j.strip ? c : j.width - across + c;
            const float v = eigen_sample<T>(j, frame, y, x);
            if (!(v >= j.floor_value && v <= 3.402823466e38f))
                continue;
            const float rest = -logf(v) - j.mean[y * j.mean_y + x];
#pragma unroll
            for (int k = 0; k < MB_EIGEN_MOST; k++)
                if (k < j.images)
                    sums[k] += (double)j.basis[k * j.basis_k + y * j.basis_y + x] * (double)rest;
        }
#pragma unroll
        for (int k = 0; k < MB_EIGEN_MOST; k++)
            if (k < j.images) {
                const double sum = mb_block_fold(sums[k], mb_fold_sum());
                if (threadIdx.x == 0)
                    partials[(frame * j.segments + segment) * j.images + k] = sum;
            }
    }
}

/* A block of 32 threads for each frame: the sums of its segments, times the inverse. */
__global__ void __launch_bounds__(32)
    eigen_factors_kernel(eigen_job j, const double *partials, const double *inverse, float *factors)
{
    __shared__ double sums[MB_EIGEN_MOST];
    for (int64_t frame = blockIdx.x; frame < j.frames; frame += gridDim.x) {
        const int k = threadIdx.x;
        if (k < j.images) {
            double sum = 0;
            for (int64_t s = 0; s < j.segments; s++)
                sum += partials[(frame * j.segments + s) * j.images + k];
            sums[k] = sum;
        }
        __syncthreads();
        if (k < j.images) {
            double factor = 0;
            for (int l = 0; l < j.images; l++)
                factor += inverse[k * j.images + l] * sums[l];
            factors[frame * j.images + k] = (float)factor;
        }
        __syncthreads();
    }
}

template <class T>
__global__ void __launch_bounds__(MB_THREADS)
    eigen_apply_kernel(eigen_job j, const float *factors, tally *counts)
{
    tally replaced = 0, not_positive = 0;
    MB_GRID_LOOP(i, j.height * j.width)
    {
        const int64_t y = i / j.width, x = i - y * j.width;
        const float mean = j.mean[y * j.mean_y + x];
        float images[MB_EIGEN_MOST];
#pragma unroll
        for (int k = 0; k < MB_EIGEN_MOST; k++)
            images[k] = k < j.images ? j.basis[k * j.basis_k + y * j.basis_y + x] : 0.0f;
        for (int64_t frame = blockIdx.y; frame < j.frames; frame += gridDim.y) {
            float exponent = mean;
#pragma unroll
            for (int k = 0; k < MB_EIGEN_MOST; k++)
                if (k < j.images)
                    exponent += factors[frame * j.images + k] * images[k];
            const float value = eigen_sample<T>(j, frame, y, x) * expf(exponent);
            const bool finite = fabsf(value) <= 3.402823466e38f;
            replaced += !finite;
            not_positive += finite && value <= 0;
            j.to[frame * j.to_f + y * j.to_y + x] = finite ? value : j.replacement;
        }
    }
    replaced = mb_block_fold(replaced, mb_fold_sum());
    not_positive = mb_block_fold(not_positive, mb_fold_sum());
    if (threadIdx.x == 0 && replaced)
        atomicAdd(&counts[0], replaced);
    if (threadIdx.x == 0 && not_positive)
        atomicAdd(&counts[1], not_positive);
}

__global__ void eigen_counts(const tally *counts, double *to, int64_t step)
{
    to[MB_EIGEN_NONFINITE * step] = (double)counts[0];
    to[MB_EIGEN_CLAMPED * step] = 0;
    to[MB_EIGEN_NOT_POSITIVE * step] = (double)counts[1];
}

template <class T>
static mb_status run(const mb_op_call *call, const eigen_job &j)
{
    const mb_eigen_flat_field_params *p = (const mb_eigen_flat_field_params *)call->params;
    double *inverse = (double *)call->slots[MB_EIGEN_INVERSE],
           *partials = (double *)call->slots[MB_EIGEN_PARTIALS];
    float *factors = (float *)call->slots[MB_EIGEN_FACTORS];
    cudaStream_t stream = mb_stream(call);
    const unsigned frames = (unsigned)(j.frames < 65535 ? j.frames : 65535);
    MB_TRY(
        mb_upload(call, inverse, p->inverse.values, (uint64_t)p->inverse.count * sizeof(double)));
    eigen_fit_kernel<T><<<dim3((unsigned)j.segments, frames), MB_THREADS, 0, stream>>>(j, partials);
    MB_LAUNCHED("eigen_fit_kernel");
    eigen_factors_kernel<<<frames, 32, 0, stream>>>(j, partials, inverse, factors);
    MB_LAUNCHED("eigen_factors_kernel");
    const unsigned across = mb_blocks(call, j.height * j.width, MB_THREADS);
    const int64_t want = ((int64_t)call->device->facts.threads * 32 + across - 1) / across;
    const int64_t down = want < 1 ? 1 : want < (int64_t)frames ? want : (int64_t)frames;
    eigen_apply_kernel<T><<<dim3(across, (unsigned)down), MB_THREADS, 0, stream>>>(
        j, factors, (tally *)call->slots[MB_EIGEN_TALLY]);
    return MB_LAUNCH_STATUS("eigen_apply_kernel");
}

static eigen_job job_of(const mb_op_call *call)
{
    const mb_eigen_flat_field_params *p = (const mb_eigen_flat_field_params *)call->params;
    const mb_array *data = call->arrays[MB_EIGEN_DATA], *mean = call->arrays[MB_EIGEN_MEAN],
                   *basis = call->arrays[MB_EIGEN_BASIS], *dark = call->arrays[MB_EIGEN_DARK],
                   *result = call->arrays[MB_EIGEN_RESULT];
    eigen_job j = {};
    j.data = data->data;
    j.to = (float *)result->data;
    j.mean = (const float *)mean->data;
    j.basis = (const float *)basis->data;
    j.dark = dark ? (const float *)dark->data : NULL;
    j.frames = data->shape.dims[0];
    j.height = data->shape.dims[1];
    j.width = data->shape.dims[2];
    j.strip = p->width;
    j.segments = mb_eigen_segments(mb_eigen_samples(j.height, j.strip));
    j.data_f = data->strides[0];
    j.data_y = data->strides[1];
    j.to_f = result->strides[0];
    j.to_y = result->strides[1];
    j.mean_y = mean->strides[0];
    j.basis_k = basis->strides[0];
    j.basis_y = basis->strides[1];
    j.dark_y = dark ? dark->strides[0] : 0;
    j.images = (int)basis->shape.dims[0];
    j.floor_value = (float)p->floor;
    j.replacement = (float)p->nonfinite;
    return j;
}

extern "C" mb_status mb_cuda_eigen_flat_field(const mb_op_call *call)
{
    const mb_array *counts = call->arrays[MB_EIGEN_COUNTS];
    const eigen_job j = job_of(call);
    tally *sums = (tally *)call->slots[MB_EIGEN_TALLY];
    MB_CUDA(cudaMemsetAsync(sums, 0, 2 * sizeof *sums, mb_stream(call)));
    if (j.frames * j.height * j.width > 0)
        switch (call->arrays[MB_EIGEN_DATA]->dtype) {
        case MB_U8: MB_TRY(run<uint8_t>(call, j)); break;
        case MB_U16: MB_TRY(run<uint16_t>(call, j)); break;
        case MB_I32: MB_TRY(run<int32_t>(call, j)); break;
        case MB_F16: MB_TRY(run<__half>(call, j)); break;
        default: MB_TRY(run<float>(call, j)); break;
        }
    if (!counts)
        return MB_STATUS_OK;
    eigen_counts<<<1, 1, 0, mb_stream(call)>>>(sums, (double *)counts->data, counts->strides[0]);
    return MB_LAUNCH_STATUS("eigen_counts");
}
