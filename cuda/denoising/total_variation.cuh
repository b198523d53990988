/*
** What the kernels of total_variation share: a launch's facts, and the two steps of the primal-dual
** method for one element.
*/
#ifndef MB_CUDA_TOTAL_VARIATION_CUH
#define MB_CUDA_TOTAL_VARIATION_CUH

#include "ops/denoising/op_total_variation.h"
#include "shared/cuda_launch.cuh"

typedef struct tv_job {
    const float *f;
    float *result;
    int64_t f_plane, f_row, result_plane, result_row;
    int64_t plane, pitch; /* of the state */
    int planes, rows, columns;
    int levels;                     /* steps of the pass */
    bool first, last;               /* passes */
    bool fours, pairs;              /* 3-D: columns of the data, and of the result, at a time */
    float step, field, data, least; /* mb_tv_rates */
} tv_job;

/* Image and field of slices. */
typedef struct tv_single {
    float *u, *p[2];
} tv_single;

/* The larger one; NaN stays. */
__device__ static __forceinline__ float tv_at_least(float value, float least)
{
#if __CUDA_ARCH__ >= 800
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(value), "f"(least));
    return larger;
#else
    return value < least ? least : value;
#endif
}

/* 1 / sqrt(x); infinite for what is not a normal number. */
__device__ static __forceinline__ float tv_rsqrt(float x)
{
    float made;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(made) : "f"(x));
    return made;
}

/* The least value of the image that a level of a pass makes. The first one of all is the data. */
__device__ static __forceinline__ float tv_least(const tv_job &job, int level)
{
    return job.first && level == 0 ? -INFINITY : job.least;
}

/* The new image, and 2 u' - u. */
__device__ static __forceinline__ float tv_image(float &u, float f, float div, float least,
                                                 const tv_job &job)
{
    const float old = u, made = fmaf(job.field, div, fmaf(job.data, f - old, old));
    u = tv_at_least(made, least);
    return fmaf(2.0f, u, -old);
}

/* The field, into the unit ball. Steps are 0 where there is no neighbor: the component stays 0. */
__device__ static __forceinline__ void tv_dual(float &px, float &py, float &pz, float gx, float gy,
                                               float gz, float stepx, float stepy, float stepz)
{
    const float x = fmaf(stepx, gx, px), y = fmaf(stepy, gy, py), z = fmaf(stepz, gz, pz);
    const float scale = fminf(1.0f, tv_rsqrt(fmaf(x, x, fmaf(y, y, z * z))));
    px = x * scale;
    py = y * scale;
    pz = z * scale;
}

static __global__ void tv_copy(float *to, int64_t to_plane, int64_t to_row, const float *from,
                               int64_t from_plane, int64_t from_row, int rows, int columns,
                               float least)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    for (int y = blockIdx.y; y < rows && x < columns; y += gridDim.y) {
        const float v = from[blockIdx.z * from_plane + y * from_row + x];
        to[blockIdx.z * to_plane + y * to_row + x] = v < least ? least : v;
    }
}

/* Planes of rows; 65535 planes a launch. */
static inline mb_status tv_copy_planes(const mb_op_call *call, float *to, const int64_t to_step[2],
                                       const float *from, const int64_t from_step[2],
                                       int64_t planes, const tv_job *job)
{
    for (int64_t z = 0; z < planes; z += 65535) {
        const unsigned many = (unsigned)(planes - z < 65535 ? planes - z : 65535);
        const dim3 blocks((job->columns + 255) / 256, job->rows < 4096 ? job->rows : 4096, many);
        tv_copy<<<blocks, 256, 0, mb_stream(call)>>>(
            to + z * to_step[0], to_step[0], to_step[1], from + z * from_step[0], from_step[0],
            from_step[1], job->rows, job->columns, job->least);
        MB_LAUNCHED("tv_copy");
    }
    return MB_STATUS_OK;
}

/* All steps of a volume. */
mb_status tv_volume(const mb_op_call *call, const mb_tv_cuda *c, tv_job job, int64_t steps);

#endif
