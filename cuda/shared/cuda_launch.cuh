/*
** Helpers of the operators' launchers: grids, dtype-generic loads and stores, walks over strided
** arrays, block sums, and uploads of small tables. Header only; every function is static. Indices
** are 64-bit wherever an array may have more than 2^31 elements. Sums are computed in a fixed
** order, so that the same input gives the same bits on every run.
*/
#ifndef MB_CUDA_LAUNCH_CUH
#define MB_CUDA_LAUNCH_CUH

#include "backend/cuda_check.h"
#include <cuda_fp16.h>

#define MB_THREADS 256

static inline cudaStream_t mb_stream(const mb_op_call *call)
{
    return (cudaStream_t)call->stream;
}

/* Blocks of a grid-stride loop: at most enough to fill the device a few times over. */
static inline unsigned mb_blocks(const mb_op_call *call, int64_t count, int threads)
{
    int64_t want = (count + threads - 1) / threads,
            most = (int64_t)call->device->facts.threads * 32;
    if (most < 64)
        most = 64;
    return (unsigned)(want < 1 ? 1 : want < most ? want : most);
}

static inline int64_t mb_count(const mb_array *array)
{
    int64_t count = 1;
    for (int i = 0; i < array->shape.rank; i++)
        count *= array->shape.dims[i];
    return count;
}

/* Copies a small host table into a slot, in order with the launches and without waiting for
** them. */
static inline mb_status mb_upload(const mb_op_call *call, void *to, const void *host,
                                  uint64_t bytes)
{
    return call->device->backend->upload(call->device->self, to, host, bytes);
}

#define MB_GRID_LOOP(i, count)                                                                     \
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < (count);                  \
         i += (int64_t)gridDim.x * blockDim.x)

/* Elementwise kernels take MB_BATCH elements per thread, all loads before the first store: one load
** in flight per thread does not hide the memory's latency, and the compiler may not reorder loads
** and stores if the result may be the input. */
#define MB_BATCH 4
#define MB_BATCH_LOOP(first, count)                                                                \
    for (int64_t first = blockIdx.x * (int64_t)(MB_THREADS * MB_BATCH) + threadIdx.x;              \
         first < (count); first += (int64_t)gridDim.x * (MB_THREADS * MB_BATCH))

/* ---- element types
** --------------------------------------------------------------------------------------------- */

static inline size_t mb_cuda_dtype_bytes(mb_dtype dtype)
{
    static const unsigned char bytes[] = {
#define MB_DTYPE(id, name, size, cls) size,
        MB_DTYPES(MB_DTYPE)
#undef MB_DTYPE
    };
    return bytes[dtype];
}

/* Stores round to nearest even and clamp; NaN becomes 0 in an integer (the rule of
** mb_element_set). */
template <class T>
__device__ static inline T mb_store_as(double v);
template <>
__device__ inline double mb_store_as<double>(double v)
{
    return v;
}
template <>
__device__ inline float mb_store_as<float>(double v)
{
    return (float)v;
}
template <>
__device__ inline __half mb_store_as<__half>(double v)
{
    return __float2half_rn((float)v);
}
template <>
__device__ inline int32_t mb_store_as<int32_t>(double v)
{
    return v != v ? 0 : __double2int_rn(v);
}
template <>
__device__ inline uint16_t mb_store_as<uint16_t>(double v)
{
    return (uint16_t)(v != v ? 0 : __double2int_rn(fmin(fmax(v, 0.0), 65535.0)));
}
template <>
__device__ inline uint8_t mb_store_as<uint8_t>(double v)
{
    return (uint8_t)(v != v ? 0 : __double2int_rn(fmin(fmax(v, 0.0), 255.0)));
}

template <class T>
__device__ static inline double mb_load_as(T v)
{
    return (double)v;
}
template <>
__device__ inline double mb_load_as<__half>(__half v)
{
    return (double)__half2float(v);
}

/* One element of a type known at run time. The switch is the same for a whole launch, so it costs
** little compared with the memory access. */
__device__ static inline double mb_element_load(int dtype, const void *base, int64_t i,
                                                double *imag)
{
    double zero = 0;
    double *im = imag ? imag : &zero;
    *im = 0;
    switch (dtype) {
    case MB_U8: return ((const uint8_t *)base)[i];
    case MB_U16: return ((const uint16_t *)base)[i];
    case MB_I32: return ((const int32_t *)base)[i];
    case MB_F16: return __half2float(((const __half *)base)[i]);
    case MB_F32: return ((const float *)base)[i];
    case MB_F64: return ((const double *)base)[i];
    case MB_C64: {
        float2 v = ((const float2 *)base)[i];
        *im = v.y;
        return v.x;
    }
    default: {
        double2 v = ((const double2 *)base)[i];
        *im = v.y;
        return v.x;
    }
    }
}

__device__ static inline void mb_element_store(int dtype, void *base, int64_t i, double real,
                                               double imag)
{
    switch (dtype) {
    case MB_U8: ((uint8_t *)base)[i] = mb_store_as<uint8_t>(real); break;
    case MB_U16: ((uint16_t *)base)[i] = mb_store_as<uint16_t>(real); break;
    case MB_I32: ((int32_t *)base)[i] = mb_store_as<int32_t>(real); break;
    case MB_F16: ((__half *)base)[i] = mb_store_as<__half>(real); break;
    case MB_F32: ((float *)base)[i] = (float)real; break;
    case MB_F64: ((double *)base)[i] = real; break;
    case MB_C64: ((float2 *)base)[i] = make_float2((float)real, (float)imag); break;
    default: ((double2 *)base)[i] = make_double2(real, imag); break;
    }
}

/* ---- walks
**
** ------------------------------------------------------------------------------------------------------ */

/* A walk over several arrays with the shape of the first. Axes of extent 1 are dropped, and axes
** are merged if every array allows it, so that dense arrays of any rank become one long axis. */
#define MB_GRID_WALK_ARRAYS 3
typedef struct mb_grid_walk {
    int rank; /* >= 1 */
    int64_t count;
    int64_t dims[MB_MAX_RANK];
    int64_t strides[MB_GRID_WALK_ARRAYS][MB_MAX_RANK];
} mb_grid_walk;

/* `arrays[0]` gives the shape. The others are aligned to its last axes, and their extents of 1 are
** repeated. NULLs are skipped. */
static inline void mb_grid_walk_make(mb_grid_walk *walk, const mb_array *const *arrays, int n)
{
    const mb_array *shape = arrays[0];
    int rank = 0;
    walk->count = 1;
    for (int axis = 0; axis < shape->shape.rank; axis++) {
        int64_t extent = shape->shape.dims[axis];
        walk->count *= extent;
        if (extent == 1)
            continue;
        int64_t step[MB_GRID_WALK_ARRAYS] = {0, 0, 0};
        for (int k = 0; k < n; k++) {
            if (!arrays[k])
                continue;
            int own = axis - (shape->shape.rank - arrays[k]->shape.rank);
            step[k] = own >= 0 && arrays[k]->shape.dims[own] != 1 ? arrays[k]->strides[own] : 0;
        }
        bool merge = rank > 0;
        for (int k = 0; k < n && merge; k++)
            merge = walk->strides[k][rank - 1] == step[k] * extent;
        if (merge) {
            walk->dims[rank - 1] *= extent;
        } else {
            walk->dims[rank++] = extent;
        }
        for (int k = 0; k < MB_GRID_WALK_ARRAYS; k++)
            walk->strides[k][rank - 1] = k < n ? step[k] : 0;
    }
    if (rank == 0) {
        walk->dims[0] = walk->count; /* one element, or none */
        for (int k = 0; k < MB_GRID_WALK_ARRAYS; k++)
            walk->strides[k][0] = k < n;
        rank = 1;
    }
    walk->rank = rank;
}

/* Whether all `n` arrays are dense in the same order. */
static inline bool mb_grid_walk_dense(const mb_grid_walk *walk, int n)
{
    for (int k = 0; k < n; k++)
        if (walk->strides[k][0] != 1)
            return false;
    return walk->rank == 1;
}

template <int N, class Index>
__device__ static inline void mb_grid_walk_split(const mb_grid_walk &walk, Index left,
                                                 int64_t *offsets)
{
#pragma unroll
    for (int k = 0; k < N; k++)
        offsets[k] = 0;
    for (int axis = walk.rank - 1; axis > 0; axis--) {
        const Index extent = (Index)walk.dims[axis], next = left / extent,
                    at = left - next * extent;
#pragma unroll
        for (int k = 0; k < N; k++)
            offsets[k] += at * walk.strides[k][axis];
        left = next;
    }
#pragma unroll
    for (int k = 0; k < N; k++)
        offsets[k] += left * walk.strides[k][0];
}

/* Offsets of element `i` (row-major) in each array. Uses 32-bit division if it is enough, which is
** several times cheaper. */
template <int N>
__device__ static inline void mb_grid_walk_at(const mb_grid_walk &walk, int64_t i, int64_t *offsets)
{
    if (walk.count <= 0x7fffffff)
        mb_grid_walk_split<N>(walk, (uint32_t)i, offsets);
    else
        mb_grid_walk_split<N>(walk, i, offsets);
}

/* ---- sums of a block
** --------------------------------------------------------------------------------------------- */

/* Folds one value per thread into thread 0, always in the same order. `fold` is a functor (a, b) ->
** c. All threads must call it. */
template <class T, class Fold>
__device__ static inline T mb_block_fold(T value, Fold fold)
{
    __shared__ T part[32];
#pragma unroll
    for (int step = 16; step > 0; step >>= 1)
        value = fold(value, __shfl_down_sync(0xffffffffu, value, step));
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
    __syncthreads(); /* `part` may still be read from an earlier fold */
    if (lane == 0)
        part[warp] = value;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w < warps; w++)
            value = fold(value, part[w]);
    return value;
}

struct mb_fold_sum {
    template <class T>
    __device__ T operator()(T a, T b) const
    {
        return a + b;
    }
};
struct mb_fold_max {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

#endif
