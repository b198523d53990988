/*
** reduce on CUDA: sum, minimum, maximum, mean or norm, of all elements or along one axis; in
** double, in a fixed order.
**
** The elements of one output are cut into blocks of MB_REDUCE_BLOCK (op_reduce.h); a thread block
** folds one of them into a cell, and a second launch folds the cells. Where one block is enough its
** cell is the result. Reductions along an axis that is not the last, and short ones, take a thread
** each instead, so that neighbors read neighboring elements. The order of additions differs, so
** that neither strides nor the number of outputs may decide.
*/
#include "shared/cuda_launch.cuh"
#include "ops/array/op_reduce.h"

struct axes {
    int rank;
    int64_t dims[MB_MAX_RANK], strides[MB_MAX_RANK];
};

struct reduction {
    int fn;
    int axis; /* that is reduced; -1: all */
    bool complex_result;
    axes inner; /* the axes that one output sums over, in row-major order */
    axes outer; /* the remaining axes, with the strides of the input */
    int64_t result_strides[MB_MAX_RANK];
    int64_t length, blocks, outputs;
};

__device__ static inline int64_t offset_of(const axes &a, int64_t index)
{
    int64_t offset = 0;
    for (int i = a.rank - 1; i > 0; i--) {
        int64_t next = index / a.dims[i];
        offset += (index - next * a.dims[i]) * a.strides[i];
        index = next;
    }
    return a.rank > 0 ? offset + index * a.strides[0] : 0;
}

struct fold {
    int fn;
    __device__ double operator()(double a, double b) const
    {
        if (fn == MB_REDUCE_MIN)
            return b < a || b != b ? b : a; /* NaN wins */
        if (fn == MB_REDUCE_MAX)
            return b > a || b != b ? b : a;
        return a + b;
    }
};

__device__ static inline double neutral(int fn)
{
    return fn == MB_REDUCE_MIN ? INFINITY : fn == MB_REDUCE_MAX ? -INFINITY : 0.0;
}

template <class T>
__device__ static inline mb_reduce_cell term(int fn, T v)
{
    double x = mb_load_as(v);
    return mb_reduce_cell{fn == MB_REDUCE_NORM       ? x * x
                          : fn == MB_REDUCE_POSITIVE ? mb_reduce_positive(x)
                                                     : x,
                          0};
}
template <>
__device__ inline mb_reduce_cell term<float2>(int fn, float2 v)
{
    return fn == MB_REDUCE_NORM ? mb_reduce_cell{(double)v.x * v.x + (double)v.y * v.y, 0}
                                : mb_reduce_cell{v.x, v.y};
}
template <>
__device__ inline mb_reduce_cell term<double2>(int fn, double2 v)
{
    return fn == MB_REDUCE_NORM ? mb_reduce_cell{v.x * v.x + v.y * v.y, 0}
                                : mb_reduce_cell{v.x, v.y};
}

__device__ static inline void store(const reduction &r, double *to, int64_t index,
                                    mb_reduce_cell cell)
{
    int64_t offset = 0;
    if (r.fn == MB_REDUCE_MEAN) {
        cell.re /= (double)r.length;
        cell.im /= (double)r.length;
    } else if (r.fn == MB_REDUCE_NORM) {
        cell.re = sqrt(cell.re);
    }
    for (int i = r.outer.rank - 1; i >= 0; i--) {
        int64_t next = index / r.outer.dims[i];
        offset += (index - next * r.outer.dims[i]) * r.result_strides[i];
        index = next;
    }
    if (r.complex_result) {
        to[2 * offset] = cell.re;
        to[2 * offset + 1] = cell.im;
    } else {
        to[offset] = cell.re;
    }
}

/* One thread block folds one block of elements of one output. */
template <class T>
__global__ void __launch_bounds__(MB_THREADS)
    reduce_blocks(const T *from, double *to, mb_reduce_cell *partials, reduction r)
{
    const fold join = {r.fn};
    const int64_t blocks = r.blocks > 1 ? r.blocks : 1;
    for (int64_t item = blockIdx.x; item < r.outputs * blocks; item += gridDim.x) {
        const int64_t output = item / blocks, first = (item - output * blocks) * MB_REDUCE_BLOCK;
        const int64_t end = r.length - first < MB_REDUCE_BLOCK ? r.length : first + MB_REDUCE_BLOCK;
        const T *base = from + offset_of(r.outer, output);
        mb_reduce_cell cell = {neutral(r.fn), 0};
        if (r.inner.rank == 1) {
#pragma unroll 4
            for (int64_t i = first + threadIdx.x; i < end; i += MB_THREADS) {
                mb_reduce_cell t = term(r.fn, base[i * r.inner.strides[0]]);
                cell.re = join(cell.re, t.re);
                cell.im += t.im;
            }
        } else {
            for (int64_t i = first + threadIdx.x; i < end; i += MB_THREADS) {
                mb_reduce_cell t = term(r.fn, base[offset_of(r.inner, i)]);
                cell.re = join(cell.re, t.re);
                cell.im += t.im;
            }
        }
        cell.re = mb_block_fold(cell.re, join);
        if (r.complex_result)
            cell.im = mb_block_fold(cell.im, mb_fold_sum());
        if (threadIdx.x == 0) {
            if (r.blocks > 1)
                partials[item] = cell;
            else
                store(r, to, output, cell);
        }
    }
}

__global__ void __launch_bounds__(MB_THREADS)
    reduce_cells(const mb_reduce_cell *partials, double *to, reduction r)
{
    const fold join = {r.fn};
    for (int64_t output = blockIdx.x; output < r.outputs; output += gridDim.x) {
        mb_reduce_cell cell = {neutral(r.fn), 0};
        for (int64_t i = threadIdx.x; i < r.blocks; i += MB_THREADS) {
            mb_reduce_cell t = partials[output * r.blocks + i];
            cell.re = join(cell.re, t.re);
            cell.im += t.im;
        }
        cell.re = mb_block_fold(cell.re, join);
        cell.im = mb_block_fold(cell.im, mb_fold_sum());
        if (threadIdx.x == 0)
            store(r, to, output, cell);
    }
}

/* One thread folds one output. */
template <class T>
__global__ void __launch_bounds__(MB_THREADS) reduce_threads(const T *from, double *to, reduction r)
{
    const fold join = {r.fn};
    MB_GRID_LOOP(output, r.outputs)
    {
        const T *base = from + offset_of(r.outer, output);
        mb_reduce_cell cell = {neutral(r.fn), 0};
#pragma unroll 4
        for (int64_t i = 0; i < r.length; i++) {
            mb_reduce_cell t = term(r.fn, base[i * r.inner.strides[0]]);
            cell.re = join(cell.re, t.re);
            cell.im += t.im;
        }
        store(r, to, output, cell);
    }
}

template <class T>
static mb_status run(const mb_op_call *call, const reduction &r)
{
    cudaStream_t stream = mb_stream(call);
    const T *from = (const T *)call->arrays[MB_REDUCE_A]->data;
    double *to = (double *)call->arrays[MB_REDUCE_RESULT]->data;
    mb_reduce_cell *partials = (mb_reduce_cell *)call->slots[MB_REDUCE_PARTIALS];
    const int last = call->arrays[MB_REDUCE_A]->shape.rank - 1;
    if (r.blocks <= 1 && r.axis >= 0 && (r.axis < last || r.length <= 32)) {
        reduce_threads<T>
            <<<mb_blocks(call, r.outputs, MB_THREADS), MB_THREADS, 0, stream>>>(from, to, r);
        return MB_LAUNCH_STATUS("reduce_threads");
    }
    const int64_t items = r.outputs * (r.blocks > 1 ? r.blocks : 1);
    reduce_blocks<T><<<mb_blocks(call, items, 1), MB_THREADS, 0, stream>>>(from, to, partials, r);
    MB_LAUNCHED("reduce_blocks");
    if (r.blocks > 1) {
        reduce_cells<<<mb_blocks(call, r.outputs, 1), MB_THREADS, 0, stream>>>(partials, to, r);
        MB_LAUNCHED("reduce_cells");
    }
    return MB_STATUS_OK;
}

extern "C" mb_status mb_cuda_reduce(const mb_op_call *call)
{
    const mb_reduce_params *params = (const mb_reduce_params *)call->params;
    const mb_array *a = call->arrays[MB_REDUCE_A], *result = call->arrays[MB_REDUCE_RESULT];
    const int axis = mb_reduce_axis(params, a->shape.rank);
    reduction r = {};
    r.fn = params->fn;
    r.axis = axis;
    r.complex_result = result->dtype == MB_C128;
    r.length = mb_reduce_length(params, &a->shape);
    r.blocks = mb_reduce_blocks(r.length);
    r.outputs = 1;
    for (int i = 0; i < a->shape.rank; i++) {
        axes *to = axis >= 0 && i != axis ? &r.outer : &r.inner;
        if (to == &r.outer) {
            r.result_strides[to->rank] = result->strides[to->rank];
            r.outputs *= a->shape.dims[i];
        } else if (to->rank > 0 && to->strides[to->rank - 1] == a->strides[i] * a->shape.dims[i]) {
            to->dims[to->rank - 1] *= a->shape.dims[i];
            to->strides[to->rank - 1] = a->strides[i];
            continue;
        }
        to->dims[to->rank] = a->shape.dims[i];
        to->strides[to->rank++] = a->strides[i];
    }
    if (r.inner.rank == 0) { /* a scalar */
        r.inner.rank = 1;
        r.inner.dims[0] = 1;
        r.inner.strides[0] = 1;
    }
    if (r.outputs == 0)
        return MB_STATUS_OK;
    switch (a->dtype) {
    case MB_U8: return run<uint8_t>(call, r);
    case MB_U16: return run<uint16_t>(call, r);
    case MB_I32: return run<int32_t>(call, r);
    case MB_F16: return run<__half>(call, r);
    case MB_F32: return run<float>(call, r);
    case MB_F64: return run<double>(call, r);
    case MB_C64: return run<float2>(call, r);
    default: return run<double2>(call, r);
    }
}
