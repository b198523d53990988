/*
** pad on CUDA: every output element finds its source by index arithmetic along each axis
** (mb_pad_source), or in the tables of mode custom. Elements are moved as raw bits of their size.
*/
#include "shared/cuda_launch.cuh"
#include "ops/array/op_pad.h"

struct pad_job {
    int rank, mode;
    int64_t count;
    int64_t dims[MB_MAX_RANK], to_strides[MB_MAX_RANK]; /* of the result */
    int64_t source[MB_MAX_RANK], from_strides[MB_MAX_RANK], before[MB_MAX_RANK];
    const int32_t *table[MB_MAX_RANK]; /* 0-based sources, or NULL */
};

/* The constants before and after every axis. */
template <class T>
struct pad_constants {
    T value[MB_MAX_RANK][2];
};

template <class T>
__global__ void __launch_bounds__(MB_THREADS)
    pad_kernel(const T *from, T *to, pad_job job, pad_constants<T> constants)
{
    MB_GRID_LOOP(i, job.count)
    {
        int64_t left = i, at = 0, src = 0;
        int outside = -1, side = 0; /* the last axis that is outside says which constant */
        for (int axis = job.rank - 1; axis >= 0; axis--) {
            int64_t next, k;
            if (job.count <= 0x7fffffff) { /* 32-bit division is several times cheaper */
                next = (uint32_t)left / (uint32_t)job.dims[axis];
                k = (uint32_t)left - (uint32_t)next * (uint32_t)job.dims[axis];
            } else {
                next = left / job.dims[axis];
                k = left - next * job.dims[axis];
            }
            left = next;
            at += k * job.to_strides[axis];
            const int64_t place = k - job.before[axis];
            k = job.table[axis] ? job.table[axis][k]
                                : mb_pad_source(job.mode, place, job.source[axis]);
            if (k < 0 && outside < 0) {
                outside = axis;
                side = place >= 0;
            }
            src += k * job.from_strides[axis];
        }
        to[at] = outside < 0 ? from[src] : constants.value[outside][side];
    }
}

/* The constant as mb_element_set would store it. */
static double clamped(double v, double low, double high)
{
    return v != v ? 0 : v < low ? low : v > high ? high : rint(v);
}

static void set(uint8_t *to, double v)
{
    *to = (uint8_t)clamped(v, 0, 255);
}
static void set(uint16_t *to, double v)
{
    *to = (uint16_t)clamped(v, 0, 65535);
}
static void set(int32_t *to, double v)
{
    *to = (int32_t)clamped(v, -2147483648.0, 2147483647.0);
}
static void set(__half *to, double v)
{
    *to = __float2half_rn((float)v);
}
static void set(float *to, double v)
{
    *to = (float)v;
}
static void set(double *to, double v)
{
    *to = v;
}
static void set(float2 *to, double v)
{
    *to = make_float2((float)v, 0);
}
static void set(double2 *to, double v)
{
    *to = make_double2(v, 0);
}

template <class T>
static mb_status run(const mb_op_call *call, const pad_job &job)
{
    pad_constants<T> constants = {};
    for (int axis = 0; axis < job.rank; axis++)
        for (int side = 0; side < 2; side++)
            set(&constants.value[axis][side],
                mb_pad_value((const mb_pad_params *)call->params, axis, side));
    pad_kernel<<<mb_blocks(call, job.count, MB_THREADS), MB_THREADS, 0, mb_stream(call)>>>(
        (const T *)call->arrays[MB_PAD_A]->data, (T *)call->arrays[MB_PAD_RESULT]->data, job,
        constants);
    return MB_LAUNCH_STATUS("pad_kernel");
}

/* 1-based doubles to the 0-based table in the slot, a piece at a time. */
static mb_status upload_index(const mb_op_call *call, const mb_vector *index, int slot)
{
    int32_t piece[1024];
    for (int64_t first = 0; first < index->count; first += 1024) {
        const int64_t n = index->count - first < 1024 ? index->count - first : 1024;
        for (int64_t i = 0; i < n; i++)
            piece[i] = (int32_t)index->values[first + i] - 1;
        MB_TRY(mb_upload(call, (int32_t *)call->slots[slot] + first, piece,
                         (uint64_t)n * sizeof *piece));
    }
    return MB_STATUS_OK;
}

extern "C" mb_status mb_cuda_pad(const mb_op_call *call)
{
    const mb_pad_params *params = (const mb_pad_params *)call->params;
    const mb_array *a = call->arrays[MB_PAD_A], *result = call->arrays[MB_PAD_RESULT];
    pad_job job = {};
    job.rank = result->shape.rank;
    job.mode = params->mode;
    job.count = 1;
    for (int i = 0; i < job.rank; i++) {
        job.count *= job.dims[i] = result->shape.dims[i];
        job.to_strides[i] = result->strides[i];
        job.source[i] = a->shape.dims[i];
        job.from_strides[i] = a->strides[i];
        job.before[i] =
            mb_margin_front(&params->margins, i, a->shape.dims[i], result->shape.dims[i]);
    }
    if (job.count == 0)
        return MB_STATUS_OK;
    if (params->mode == MB_PAD_CUSTOM) {
        MB_TRY(upload_index(call, &params->rows_index, MB_PAD_ROWS_TABLE));
        MB_TRY(upload_index(call, &params->cols_index, MB_PAD_COLS_TABLE));
        if (job.rank > 1)
            job.table[job.rank - 2] = (const int32_t *)call->slots[MB_PAD_ROWS_TABLE];
        job.table[job.rank - 1] = (const int32_t *)call->slots[MB_PAD_COLS_TABLE];
    }
    switch (a->dtype) {
    case MB_U8: return run<uint8_t>(call, job);
    case MB_U16: return run<uint16_t>(call, job);
    case MB_I32: return run<int32_t>(call, job);
    case MB_F16: return run<__half>(call, job);
    case MB_F32: return run<float>(call, job);
    case MB_F64: return run<double>(call, job);
    case MB_C64: return run<float2>(call, job);
    default: return run<double2>(call, job);
    }
}
