/*
** unary on CUDA: elementwise functions of one array, any strides.
*/
#include "shared/cuda_complex.cuh"
#include "shared/cuda_launch.cuh"
#include "ops/array/op_unary.h"

enum { TO, FROM }; /* in walks */

/* The least i32 is its own negative in wrapping arithmetic. */
__device__ static inline int32_t magnitude(int32_t x)
{
    return x < 0 ? (int32_t)(0u - (uint32_t)x) : x;
}
__device__ static inline uint8_t magnitude(uint8_t x)
{
    return x;
}
__device__ static inline uint16_t magnitude(uint16_t x)
{
    return x;
}

template <class T>
struct integer_rule {
    typedef T result;
    __device__ static T go(int fn, T x)
    {
        switch (fn) {
        case MB_UNARY_NEG: return (T)(0u - (uint32_t)x);
        case MB_UNARY_ABS: return magnitude(x);
        default: return (T)((uint32_t)x * (uint32_t)x);
        }
    }
};

template <class T>
struct real_rule {
    typedef T result;
    __device__ static T go(int fn, T x)
    {
        switch (fn) {
        case MB_UNARY_NEG: return -x;
        case MB_UNARY_ABS: return fabs(x);
        case MB_UNARY_EXP: return exp(x);
        case MB_UNARY_LOG: return log(x);
        case MB_UNARY_SQRT: return sqrt(x);
        case MB_UNARY_SQUARE: return x * x;
        default: return 1 / x;
        }
    }
};

template <class T>
struct complex_rule {
    typedef T result;
    __device__ static T go(int fn, T x)
    {
        return fn == MB_UNARY_NEG ? mb_complex<T>(-x.x, -x.y) : mb_complex_mul(x, x);
    }
};

template <class T>
struct magnitude_rule {
    typedef decltype(T::x) result;
    __device__ static result go(int, T x) { return hypot(x.x, x.y); }
};

template <class T, class Rule>
__global__ void __launch_bounds__(MB_THREADS)
    unary_kernel(typename Rule::result *to, const T *from, int fn, mb_grid_walk walk, bool dense)
{
    MB_BATCH_LOOP(first, walk.count)
    {
        T v[MB_BATCH];
        int64_t at[MB_BATCH][2];
#pragma unroll
        for (int k = 0; k < MB_BATCH; k++) {
            int64_t i = first + k * MB_THREADS;
            at[k][TO] = at[k][FROM] = i;
            if (!dense && i < walk.count)
                mb_grid_walk_at<2>(walk, i, at[k]);
            if (i < walk.count)
                v[k] = from[at[k][FROM]];
        }
#pragma unroll
        for (int k = 0; k < MB_BATCH; k++)
            if (first + k * MB_THREADS < walk.count)
                to[at[k][TO]] = Rule::go(fn, v[k]);
    }
}

template <class T, template <class> class Rule>
static mb_status run(const mb_op_call *call, int fn, const mb_grid_walk &walk)
{
    unary_kernel<T, Rule<T>>
        <<<mb_blocks(call, walk.count, MB_THREADS * MB_BATCH), MB_THREADS, 0, mb_stream(call)>>>(
            (typename Rule<T>::result *)call->arrays[MB_UNARY_RESULT]->data,
            (const T *)call->arrays[MB_UNARY_A]->data, fn, walk, mb_grid_walk_dense(&walk, 2));
    return MB_LAUNCH_STATUS("unary_kernel");
}

extern "C" mb_status mb_cuda_unary(const mb_op_call *call)
{
    const int fn = ((const mb_unary_params *)call->params)->fn;
    const mb_array *arrays[] = {call->arrays[MB_UNARY_RESULT], call->arrays[MB_UNARY_A]};
    mb_grid_walk walk;
    mb_grid_walk_make(&walk, arrays, 2);
    if (walk.count == 0)
        return MB_STATUS_OK;
    switch (arrays[FROM]->dtype) {
    case MB_U8: return run<uint8_t, integer_rule>(call, fn, walk);
    case MB_U16: return run<uint16_t, integer_rule>(call, fn, walk);
    case MB_I32: return run<int32_t, integer_rule>(call, fn, walk);
    case MB_F32: return run<float, real_rule>(call, fn, walk);
    case MB_F64: return run<double, real_rule>(call, fn, walk);
    case MB_C64:
        return fn == MB_UNARY_ABS ? run<float2, magnitude_rule>(call, fn, walk)
                                  : run<float2, complex_rule>(call, fn, walk);
    case MB_C128:
        return fn == MB_UNARY_ABS ? run<double2, magnitude_rule>(call, fn, walk)
                                  : run<double2, complex_rule>(call, fn, walk);
    default:
        return mb_cuda_core->fail(MB_STATUS_DTYPE, "a", "unary on CUDA: element type not accepted");
    }
}
