/*
** convert on CUDA: element types, linear scaling, strided copies. The layout decides between three
** ways: rows (both last axes dense) with a kernel per common pair of types; tiles through shared
** memory (a transposition: the input is dense along another axis); otherwise element by element.
*/
#include "shared/cuda_copy.cuh"
#include "ops/array/op_convert.h"

enum { TO, FROM }; /* in walks */
#define CHUNK                                                                                      \
    1024 /* elements of a row per block: four per thread, so that four loads are in flight */
#define TILE 32

struct linear {
    bool on;
    double scale, offset;
};

/* Not fused, so that the host and the device round in the same way. */
__device__ static inline double apply(const linear &map, double v)
{
    return map.on ? __dadd_rn(__dmul_rn(v, map.scale), map.offset) : v;
}

template <class S, class D>
__global__ void __launch_bounds__(MB_THREADS)
    convert_rows(const S *from, D *to, mb_grid_walk walk, linear map)
{
    const int last = walk.rank - 1;
    const int64_t cols = walk.dims[last], rows = walk.count / cols;
    mb_grid_walk outer = walk;
    outer.rank = last > 0 ? last : 1;
    outer.count = rows;
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
        int64_t at[2] = {0, 0};
        if (last > 0)
            mb_grid_walk_at<2>(outer, row, at);
        const int64_t first = blockIdx.x * (int64_t)CHUNK + threadIdx.x;
#pragma unroll
        for (int k = 0; k < CHUNK / MB_THREADS; k++) {
            int64_t i = first + k * MB_THREADS;
            if (i < cols)
                to[at[TO] + i] = mb_store_as<D>(apply(map, mb_load_as(from[at[FROM] + i])));
        }
    }
}

/* Moves elements unchanged. */
template <class T>
__global__ void __launch_bounds__(MB_THREADS) move_rows(const T *from, T *to, mb_grid_walk walk)
{
    const int last = walk.rank - 1;
    const int64_t cols = walk.dims[last], rows = walk.count / cols;
    mb_grid_walk outer = walk;
    outer.rank = last > 0 ? last : 1;
    outer.count = rows;
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
        int64_t at[2] = {0, 0};
        if (last > 0)
            mb_grid_walk_at<2>(outer, row, at);
        const int64_t first = blockIdx.x * (int64_t)CHUNK + threadIdx.x;
        T v[CHUNK / MB_THREADS];
#pragma unroll
        for (int k = 0; k < CHUNK / MB_THREADS; k++)
            if (first + k * MB_THREADS < cols)
                v[k] = from[at[FROM] + first + k * MB_THREADS];
#pragma unroll
        for (int k = 0; k < CHUNK / MB_THREADS; k++)
            if (first + k * MB_THREADS < cols)
                to[at[TO] + first + k * MB_THREADS] = v[k];
    }
}

__global__ void __launch_bounds__(MB_THREADS)
    convert_any(const void *from, int from_type, void *to, int to_type, mb_grid_walk walk,
                linear map)
{
    MB_GRID_LOOP(i, walk.count)
    {
        int64_t at[2];
        double imag, real;
        mb_grid_walk_at<2>(walk, i, at);
        real = mb_element_load(from_type, from, at[FROM], &imag);
        mb_element_store(to_type, to, at[TO], apply(map, real), map.on ? imag * map.scale : imag);
    }
}

/* The input is dense along walk axis `dense`, the output along the last one. blockIdx.z runs over
** the other axes. */
__global__ void __launch_bounds__(256)
    convert_tiles(const void *from, int from_type, void *to, int to_type, mb_grid_walk walk,
                  int dense, int64_t others, linear map)
{
    __shared__ double re[TILE][TILE + 1], im[TILE][TILE + 1];
    const int last = walk.rank - 1, lane = threadIdx.x & 31, row = threadIdx.x >> 5;
    const int64_t nx = walk.dims[last], ny = walk.dims[dense];
    const int64_t x0 = blockIdx.x * (int64_t)TILE;
    for (int64_t other = blockIdx.z; other < others; other += gridDim.z) {
        int64_t to_at = 0, from_at = 0, left = other;
        for (int i = last - 1; i >= 0; i--)
            if (i != dense) {
                int64_t k = left % walk.dims[i];
                to_at += k * walk.strides[TO][i];
                from_at += k * walk.strides[FROM][i];
                left /= walk.dims[i];
            }
        for (int64_t y0 = blockIdx.y * (int64_t)TILE; y0 < ny; y0 += gridDim.y * (int64_t)TILE) {
            for (int k = row; k < TILE; k += 8) {
                int64_t x = x0 + k, y = y0 + lane;
                if (x < nx && y < ny) {
                    double imag, real = mb_element_load(from_type, from,
                                                        from_at + x * walk.strides[FROM][last] +
                                                            y * walk.strides[FROM][dense],
                                                        &imag);
                    re[k][lane] = apply(map, real);
                    im[k][lane] = map.on ? imag * map.scale : imag;
                }
            }
            __syncthreads();
            for (int k = row; k < TILE; k += 8) {
                int64_t x = x0 + lane, y = y0 + k;
                if (x < nx && y < ny)
                    mb_element_store(to_type, to,
                                     to_at + x * walk.strides[TO][last] +
                                         y * walk.strides[TO][dense],
                                     re[lane][k], im[lane][k]);
            }
            __syncthreads();
        }
    }
}

static dim3 row_grid(const mb_grid_walk &walk)
{
    int64_t cols = walk.dims[walk.rank - 1], rows = walk.count / cols;
    return dim3((unsigned)((cols + CHUNK - 1) / CHUNK), (unsigned)(rows < 65535 ? rows : 65535));
}

/* The arrays of a copy by rows. */
struct row_copy {
    const mb_array *from, *to;
    const mb_grid_walk &walk;
    linear map;
    cudaStream_t stream;
};

template <class T>
static bool move(const row_copy &c)
{
    move_rows<<<row_grid(c.walk), MB_THREADS, 0, c.stream>>>((const T *)c.from->data,
                                                             (T *)c.to->data, c.walk);
    return true;
}

template <class S, class D>
static bool convert(const row_copy &c)
{
    convert_rows<<<row_grid(c.walk), MB_THREADS, 0, c.stream>>>((const S *)c.from->data,
                                                                (D *)c.to->data, c.walk, c.map);
    return true;
}

/* The most common pairs of real types for reading and writing data. */
template <class S>
static bool convert_from(const row_copy &c)
{
    switch (c.to->dtype) {
    case MB_U8: return convert<S, uint8_t>(c);
    case MB_U16: return convert<S, uint16_t>(c);
    case MB_F16: return convert<S, __half>(c);
    case MB_F32: return convert<S, float>(c);
    default: return false;
    }
}

static bool convert_as_rows(const row_copy &c)
{
    if (c.from->dtype == c.to->dtype && !c.map.on)
        switch (mb_cuda_dtype_bytes(c.from->dtype)) {
        case 1: return move<uint8_t>(c);
        case 2: return move<uint16_t>(c);
        case 4: return move<uint32_t>(c);
        case 8: return move<uint64_t>(c);
        default: return move<double2>(c);
        }
    switch (c.from->dtype) {
    case MB_U8: return convert_from<uint8_t>(c);
    case MB_U16: return convert_from<uint16_t>(c);
    case MB_F16: return convert_from<__half>(c);
    case MB_F32: return convert_from<float>(c);
    default: return false;
    }
}

extern "C" mb_status mb_cuda_copy_array(const mb_op_call *call, const mb_array *from,
                                        const mb_array *to, double scale, double offset)
{
    const mb_array *arrays[] = {to, from};
    const linear map = {scale != 1 || offset != 0, scale, offset};
    cudaStream_t stream = mb_stream(call);
    mb_grid_walk walk;
    mb_grid_walk_make(&walk, arrays, 2);
    if (walk.count == 0)
        return MB_STATUS_OK;
    const int last = walk.rank - 1;
    const bool rows = walk.strides[TO][last] == 1 && walk.strides[FROM][last] == 1;
    if (mb_grid_walk_dense(&walk, 2) && from->dtype == to->dtype && !map.on) {
        MB_CUDA(cudaMemcpyAsync(to->data, from->data, walk.count * mb_cuda_dtype_bytes(to->dtype),
                                cudaMemcpyDeviceToDevice, stream));
        return MB_STATUS_OK;
    }
    if (rows && walk.dims[last] >= 128 && convert_as_rows({from, to, walk, map, stream}))
        return MB_LAUNCH_STATUS("convert_rows");
    int dense = last;
    for (int i = 0; i < last; i++)
        if (walk.strides[FROM][i] == 1 || walk.strides[FROM][i] == -1)
            dense = i;
    if (!rows && dense != last && walk.dims[last] >= 8 && walk.dims[dense] >= 8) {
        int64_t nx = (walk.dims[last] + TILE - 1) / TILE, ny = (walk.dims[dense] + TILE - 1) / TILE;
        int64_t others = walk.count / walk.dims[last] / walk.dims[dense];
        dim3 grid((unsigned)nx, (unsigned)(ny < 65535 ? ny : 65535),
                  (unsigned)(others < 65535 ? others : 65535));
        convert_tiles<<<grid, 256, 0, stream>>>(from->data, from->dtype, to->data, to->dtype, walk,
                                                dense, others, map);
        return MB_LAUNCH_STATUS("convert_tiles");
    }
    convert_any<<<mb_blocks(call, walk.count, MB_THREADS), MB_THREADS, 0, stream>>>(
        from->data, from->dtype, to->data, to->dtype, walk, map);
    return MB_LAUNCH_STATUS("convert_any");
}

extern "C" mb_status mb_cuda_convert(const mb_op_call *call)
{
    const mb_convert_params *params = (const mb_convert_params *)call->params;
    return mb_cuda_copy_array(call, call->arrays[MB_CONVERT_A], call->arrays[MB_CONVERT_RESULT],
                              params->scale, params->offset);
}
