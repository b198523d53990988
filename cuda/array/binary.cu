/*
** binary on CUDA: elementwise arithmetic of two arrays, or of an array and a number, with
** broadcasting. The function is chosen inside the kernel: the branch is the same for all threads,
** and memory limits the speed.
*/
#include "shared/cuda_complex.cuh"
#include "shared/cuda_launch.cuh"
#include "ops/array/op_binary.h"

enum { TO, A, B }; /* in walks */

template <class T>
struct integer_rule {
    __device__ static T go(int fn, T x, T y)
    {
        switch (fn) {
        case MB_BINARY_ADD: return (T)((uint32_t)x + (uint32_t)y);
        case MB_BINARY_SUB: return (T)((uint32_t)x - (uint32_t)y);
        case MB_BINARY_MUL: return (T)((uint32_t)x * (uint32_t)y);
        case MB_BINARY_MIN: return x < y ? x : y;
        default: return x > y ? x : y;
        }
    }
};

/* Not inlined, because pow is long and would be repeated for every element of a batch. */
__device__ static __noinline__ float power(float x, float y)
{
    return powf(x, y);
}
__device__ static __noinline__ double power(double x, double y)
{
    return pow(x, y);
}

template <class T>
struct real_rule {
    __device__ static T go(int fn, T x, T y)
    {
        switch (fn) {
        case MB_BINARY_ADD: return x + y;
        case MB_BINARY_SUB: return x - y;
        case MB_BINARY_MUL: return x * y;
        case MB_BINARY_DIV: return x / y;
        case MB_BINARY_MIN: return x < y || x != x ? x : y;
        case MB_BINARY_MAX: return x > y || x != x ? x : y;
        default: return power(x, y);
        }
    }
};

template <class T>
struct complex_rule {
    __device__ static T go(int fn, T x, T y)
    {
        switch (fn) {
        case MB_BINARY_ADD: return mb_complex<T>(x.x + y.x, x.y + y.y);
        case MB_BINARY_SUB: return mb_complex<T>(x.x - y.x, x.y - y.y);
        case MB_BINARY_MUL: return mb_complex_mul(x, y);
        default: return mb_complex_div(x, y);
        }
    }
};

struct binary_job {
    mb_grid_walk walk;
    int fn;
    bool reverse, dense, scalar;
};

template <class T, class Rule>
__global__ void __launch_bounds__(MB_THREADS)
    binary_kernel(T *to, const T *a, const T *b, T number, binary_job job)
{
    MB_BATCH_LOOP(first, job.walk.count)
    {
        T x[MB_BATCH], y[MB_BATCH];
        int64_t at[MB_BATCH][3];
#pragma unroll
        for (int k = 0; k < MB_BATCH; k++) {
            int64_t i = first + k * MB_THREADS;
            at[k][TO] = at[k][A] = at[k][B] = i;
            x[k] = y[k] = number;
            if (i >= job.walk.count)
                continue;
            if (!job.dense)
                mb_grid_walk_at<3>(job.walk, i, at[k]);
            x[k] = a[at[k][A]];
            if (!job.scalar)
                y[k] = b[at[k][B]];
        }
#pragma unroll
        for (int k = 0; k < MB_BATCH; k++)
            if (first + k * MB_THREADS < job.walk.count)
                to[at[k][TO]] =
                    Rule::go(job.fn, job.reverse ? y[k] : x[k], job.reverse ? x[k] : y[k]);
    }
}

template <class T, template <class> class Rule>
static mb_status run(const mb_op_call *call, const binary_job &job, T number)
{
    const mb_array *a = call->arrays[MB_BINARY_A], *b = call->arrays[MB_BINARY_B];
    binary_kernel<T, Rule<T>><<<mb_blocks(call, job.walk.count, MB_THREADS * MB_BATCH), MB_THREADS,
                                0, mb_stream(call)>>>((T *)call->arrays[MB_BINARY_RESULT]->data,
                                                      (const T *)a->data,
                                                      b ? (const T *)b->data : NULL, number, job);
    return MB_LAUNCH_STATUS("binary_kernel");
}

extern "C" mb_status mb_cuda_binary(const mb_op_call *call)
{
    const mb_binary_params *params = (const mb_binary_params *)call->params;
    const mb_array *arrays[] = {call->arrays[MB_BINARY_RESULT], call->arrays[MB_BINARY_A],
                                call->arrays[MB_BINARY_B]};
    const double s =
        arrays[B] ? 0 : params->scalar; /* infer has checked that it is a value of the type */
    binary_job job;
    mb_grid_walk_make(&job.walk, arrays, 3);
    job.fn = params->fn;
    job.reverse = params->reverse;
    job.scalar = !arrays[B];
    job.dense = mb_grid_walk_dense(&job.walk, job.scalar ? 2 : 3);
    if (job.walk.count == 0)
        return MB_STATUS_OK;
    switch (arrays[A]->dtype) {
    case MB_U8: return run<uint8_t, integer_rule>(call, job, (uint8_t)s);
    case MB_U16: return run<uint16_t, integer_rule>(call, job, (uint16_t)s);
    case MB_I32: return run<int32_t, integer_rule>(call, job, (int32_t)s);
    case MB_F32: return run<float, real_rule>(call, job, (float)s);
    case MB_F64: return run<double, real_rule>(call, job, s);
    case MB_C64: return run<float2, complex_rule>(call, job, make_float2((float)s, 0));
    case MB_C128: return run<double2, complex_rule>(call, job, make_double2(s, 0));
    default:
        return mb_cuda_core->fail(MB_STATUS_DTYPE, "a",
                                  "binary on CUDA: element type not accepted");
    }
}
