/*
** Columns of sinograms on CUDA, sorted and put back. A warp sorts a run of a column in registers;
** columns of more angles are several runs, and a value finds its rank by searching the other runs.
** Values go back to their angles in shared memory, so that rows are read and written in whole
** sectors.
*/
#include "stripes/stripes_launch.h"
#include "stripes/stripes_sort.cuh"

typedef unsigned short mb_u16;

mb_stripes_batch mb_stripes_batch_at(const mb_op_call *call, int64_t first)
{
    const mb_array *sino = call->arrays[MB_STRIPES_SINO], *out = call->arrays[MB_STRIPES_RESULT];
    const int rank = sino->shape.rank;
    mb_stripes_batch b;
    b.sinos = mb_stripes_sinos_of(&sino->shape);
    b.count = mb_stripes_group(&b.sinos, &call->device->facts);
    if (b.count > b.sinos.rows - first)
        b.count = b.sinos.rows - first;
    b.from_row = rank == 3 ? sino->strides[0] : 0;
    b.to_row = rank == 3 ? out->strides[0] : 0;
    b.from_angle = sino->strides[rank - 2];
    b.to_angle = out->strides[rank - 2];
    b.from = (const float *)sino->data + first * b.from_row;
    b.to = (float *)out->data + first * b.to_row;
    return b;
}

static bool four_at_a_time(const void *data, int64_t row, int64_t angle, int64_t columns)
{
    return (uintptr_t)data % 16 == 0 && row % 4 == 0 && angle % 4 == 0 && columns % 4 == 0;
}

/* ---- sorting ---- */

enum { SORT_COLUMNS = 8 }; /* of a block; a warp each */

struct sort_job {
    mb_stripes_sinos s;
    const float *from;
    int64_t row, angle; /* strides */
    int64_t run;        /* values of a run */
    int32_t *keys;
    mb_u16 *order;
};

template <int W>
__device__ static __forceinline__ void load_floats(const float *from, float (&x)[W])
{
    if constexpr (W == 4) {
        const float4 v = __ldcs((const float4 *)from);
        x[0] = v.x;
        x[1] = v.y;
        x[2] = v.z;
        x[3] = v.w;
    } else {
        x[0] = __ldcs(from);
    }
}

template <int E, bool FOUR>
__global__ void __launch_bounds__(32 * SORT_COLUMNS, 2) stripes_sort_runs(sort_job job)
{
    constexpr int C = SORT_COLUMNS, PITCH = 32 * E + 4;
    extern __shared__ float tile[]; /* [column][PITCH] */
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t c0 = (int64_t)blockIdx.x * C, a0 = blockIdx.y * job.run;
    const int64_t left_angles = job.s.angles - a0, left_columns = job.s.columns - c0;
    const int n = (int)(left_angles < job.run ? left_angles : job.run);
    const int columns = left_columns < C ? (int)left_columns : C;
    const float *in = job.from + blockIdx.z * job.row + a0 * job.angle + c0;
    constexpr int W = FOUR ? 4 : 1, PER = C / W, AHEAD = FOUR ? 4 : 8;
    for (int first = threadIdx.x; first < n * PER; first += AHEAD * 32 * C) {
        float x[AHEAD][W];
#pragma unroll
        for (int j = 0; j < AHEAD; j++) { /* all loads before the first store */
            const int i = first + j * 32 * C, r = i / PER, q = i % PER * W;
            if (i < n * PER && q < columns)
                load_floats<W>(in + r * job.angle + q, x[j]);
        }
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            const int i = first + j * 32 * C, r = i / PER, q = i % PER * W;
#pragma unroll
            for (int k = 0; k < W; k++)
                if (i < n * PER && q < columns)
                    tile[(q + k) * PITCH + r] = x[j][k];
        }
    }
    __syncthreads();
    if (warp >= columns)
        return;
    int k[E];
    unsigned v[E];
#pragma unroll
    for (int j = 0; j < E; j++) {
        v[j] = 32 * j + lane;
        k[j] = (int)v[j] < n ? mb_stripes_key(tile[warp * PITCH + 32 * j + lane]) : INT_MAX;
    }
    mb_warp_sort<E>(k, v, lane);
    const int64_t at = (blockIdx.z * job.s.columns + c0 + warp) * job.s.pitch + a0 + E * lane;
    const int64_t room = job.s.pitch - a0 < job.run ? job.s.pitch - a0 : job.run;
    const int left = (int)room - E * lane; /* a multiple of 8 */
#pragma unroll
    for (int j = 0; j < E; j += 4)
        if (j < left)
            *(int4 *)(job.keys + at + j) = make_int4(k[j], k[j + 1], k[j + 2], k[j + 3]);
#pragma unroll
    for (int j = 0; j < E; j += 8)
        if (j < left)
            *(uint4 *)(job.order + at + j) =
                make_uint4(v[j] | v[j + 1] << 16, v[j + 2] | v[j + 3] << 16,
                           v[j + 4] | v[j + 5] << 16, v[j + 6] | v[j + 7] << 16);
}

template <int E>
static mb_status sort_runs(const mb_op_call *call, const mb_stripes_batch *b, const sort_job &job)
{
    const int64_t runs = (job.s.angles + job.run - 1) / job.run;
    const int bytes = SORT_COLUMNS * (32 * E + 4) * 4;
    const dim3 grid((unsigned)((job.s.columns + SORT_COLUMNS - 1) / SORT_COLUMNS), (unsigned)runs,
                    (unsigned)b->count);
    auto kernel = four_at_a_time(job.from, job.row, job.angle, job.s.columns)
                      ? stripes_sort_runs<E, true>
                      : stripes_sort_runs<E, false>;
    MB_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<grid, 32 * SORT_COLUMNS, bytes, mb_stream(call)>>>(job);
    return MB_LAUNCH_STATUS("stripes_sort_runs");
}

/* How many of the n sorted keys are not above `key`. `top` is the largest power of 2 up to n. */
__device__ static __forceinline__ int keys_upto(const int32_t *keys, int n, int top, int32_t key)
{
    int count = 0;
    for (int step = top; step > 0; step /= 2)
        if (count + step <= n && keys[count + step - 1] <= key)
            count += step;
    return count;
}

enum { MERGE_THREADS = 512, MERGE_HELD = 12288 }; /* values in shared memory */

/* A value of a run gets its rank in the column: equal values of earlier runs come before it. A
** block has a column; HELD: its values are in shared memory. */
template <class T, bool HELD>
__global__ void __launch_bounds__(MERGE_THREADS)
    stripes_merge_runs(const int32_t *runs, const mb_u16 *run_order, mb_stripes_sinos s, int run,
                       int top, int32_t *keys, T *order)
{
    extern __shared__ int32_t held[];
    const int n = (int)s.angles;
    const int64_t at = blockIdx.x * s.pitch;
    const int32_t *own = HELD ? held : runs + at;
    for (int i = threadIdx.x; HELD && i < n; i += MERGE_THREADS)
        held[i] = runs[at + i];
    if (HELD)
        __syncthreads();
    for (int i = threadIdx.x; i < n; i += MERGE_THREADS) {
        const int mine = i / run * run, number = mine + run_order[at + i];
        const int32_t key = own[i]; /* never the least whole number */
        int rank = i - mine;
        for (int a = 0; a < n; a += run)
            if (a != mine)
                rank += keys_upto(own + a, min(run, n - a), top, a < mine ? key : key - 1);
        keys[at + rank] = key;
        order[at + rank] = (T)number;
    }
}

template <class T>
static mb_status merge_runs(const mb_op_call *call, const mb_stripes_batch *b, const sort_job &job)
{
    const mb_stripes_sinos &s = b->sinos;
    const bool held = s.angles <= MERGE_HELD;
    const size_t shared = held ? (size_t)s.angles * 4 : 0;
    auto kernel = held ? stripes_merge_runs<T, true> : stripes_merge_runs<T, false>;
    int top = 1;
    while (2 * top <= job.run)
        top *= 2;
    kernel<<<(unsigned)(s.columns * b->count), MERGE_THREADS, shared, mb_stream(call)>>>(
        job.keys, job.order, s, (int)job.run, top, (int32_t *)call->slots[MB_STRIPES_VALUES],
        (T *)call->slots[MB_STRIPES_ORDER]);
    return MB_LAUNCH_STATUS("stripes_merge_runs");
}

mb_status mb_stripes_launch_sort(const mb_op_call *call, const mb_stripes_batch *b)
{
    const int64_t run = mb_stripes_run_length(&b->sinos);
    const bool merge = run < b->sinos.angles;
    const int keys = merge ? MB_STRIPES_MEDIANS : MB_STRIPES_VALUES;
    const int order = merge ? MB_STRIPES_RUN_ORDER : MB_STRIPES_ORDER;
    const sort_job job = {b->sinos,
                          b->from,
                          b->from_row,
                          b->from_angle,
                          run,
                          (int32_t *)call->slots[keys],
                          (mb_u16 *)call->slots[order]};
    if (run <= 32 * 8)
        MB_TRY(sort_runs<8>(call, b, job));
    else if (run <= 32 * 16)
        MB_TRY(sort_runs<16>(call, b, job));
    else if (run <= 32 * 24)
        MB_TRY(sort_runs<24>(call, b, job));
    else if (run <= 32 * 32)
        MB_TRY(sort_runs<32>(call, b, job));
    else
        MB_TRY(sort_runs<MB_STRIPES_RUN / 32>(call, b, job));
    if (!merge)
        return MB_STATUS_OK;
    return mb_stripes_order_bytes(&b->sinos, false) == 2 ? merge_runs<mb_u16>(call, b, job)
                                                         : merge_runs<uint32_t>(call, b, job);
}

/* ---- putting back ---- */

enum {
    BACK_THREADS = 512,
    BACK_SHARED = 113 << 10,
    BACK_AHEAD = 4
}; /* bytes; two blocks a multiprocessor */

struct back_job {
    mb_stripes_sinos s;
    const int32_t *keys;
    const void *order;
    float *to;
    int64_t row, angle; /* strides */
    int angles;         /* that are in shared memory at a time */
};

template <class T>
struct __align__(2 * sizeof(T)) two
{
    T x, y;
};

/* U columns of a sinogram. Where not all angles fit, columns are read several times. */
template <class T, int U, bool FOUR>
__global__ void __launch_bounds__(BACK_THREADS, 2) stripes_put_back(back_job job)
{
    extern __shared__ float tile[]; /* [angle][U + 1] */
    const int64_t c0 = (int64_t)blockIdx.x * U;
    const int columns = job.s.columns - c0 < U ? (int)(job.s.columns - c0) : U;
    const int64_t base = (blockIdx.y * job.s.columns + c0) * job.s.pitch;
    const int32_t *keys = job.keys + base;
    const T *order = (const T *)job.order + base;
    float *to = job.to + blockIdx.y * job.row + c0;
    for (int64_t a0 = 0; a0 < job.s.angles; a0 += job.angles) {
        const unsigned n =
            job.s.angles - a0 < job.angles ? (unsigned)(job.s.angles - a0) : (unsigned)job.angles;
        for (int r = 2 * threadIdx.x; r < (int)job.s.angles; r += 2 * BACK_THREADS) {
            const bool second = r + 1 < (int)job.s.angles;
#pragma unroll
            for (int c = 0; c < U; c += BACK_AHEAD) {
                int2 k[BACK_AHEAD];
                two<T> o[BACK_AHEAD];
#pragma unroll
                for (int j = 0; j < BACK_AHEAD; j++)
                    if (c + j < columns) {
                        k[j] = *(const int2 *)(keys + (c + j) * job.s.pitch + r);
                        o[j] = *(const two<T> *)(order + (c + j) * job.s.pitch + r);
                    }
#pragma unroll
                for (int j = 0; j < BACK_AHEAD; j++) {
                    const unsigned x = (unsigned)o[j].x - (unsigned)a0;
                    const unsigned y = (unsigned)o[j].y - (unsigned)a0;
                    if (c + j < columns && x < n)
                        tile[x * (U + 1) + c + j] = mb_stripes_value(k[j].x);
                    if (c + j < columns && second && y < n)
                        tile[y * (U + 1) + c + j] = mb_stripes_value(k[j].y);
                }
            }
        }
        __syncthreads();
        if (FOUR) {
            for (int i = threadIdx.x; i < (int)n * (U / 4); i += BACK_THREADS) {
                const int a = i / (U / 4), q = i % (U / 4) * 4;
                const float *t = tile + a * (U + 1) + q;
                if (q < columns)
                    __stcs((float4 *)(to + (a0 + a) * job.angle + q),
                           make_float4(t[0], t[1], t[2], t[3]));
            }
        } else {
            for (int i = threadIdx.x; i < (int)n * U; i += BACK_THREADS) {
                const int a = i / U, q = i % U;
                if (q < columns)
                    __stcs(to + (a0 + a) * job.angle + q, tile[a * (U + 1) + q]);
            }
        }
        __syncthreads();
    }
}

template <class T, int U>
static mb_status put_back(const mb_op_call *call, const mb_stripes_batch *b, back_job job,
                          int64_t bytes)
{
    const int64_t most = bytes / (4 * (U + 1));
    job.angles = (int)(job.s.angles < most ? job.s.angles : most);
    const int shared = job.angles * (U + 1) * 4;
    const dim3 grid((unsigned)((job.s.columns + U - 1) / U), (unsigned)b->count);
    auto kernel = four_at_a_time(job.to, job.row, job.angle, job.s.columns)
                      ? stripes_put_back<T, U, true>
                      : stripes_put_back<T, U, false>;
    MB_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    kernel<<<grid, BACK_THREADS, shared, mb_stream(call)>>>(job);
    return MB_LAUNCH_STATUS("stripes_put_back");
}

mb_status mb_stripes_launch_put_back(const mb_op_call *call, const mb_stripes_batch *b,
                                     const int32_t *keys)
{
    const uint64_t limit = call->device->facts.block_shared_bytes;
    const int64_t own = limit ? (int64_t)limit : 48 << 10;
    const int64_t bytes = own < BACK_SHARED ? own : (int64_t)BACK_SHARED;
    const back_job job = {b->sinos,    keys, call->slots[MB_STRIPES_ORDER], b->to, b->to_row,
                          b->to_angle, 0};
    const bool whole = job.s.angles * 17 * 4 <= bytes;
    if (mb_stripes_order_bytes(&job.s, false) == 4)
        return put_back<uint32_t, 8>(call, b, job, bytes);
    return whole ? put_back<mb_u16, 16>(call, b, job, bytes)
                 : put_back<mb_u16, 8>(call, b, job, bytes);
}
