/*
** Modes of the angles on CUDA (angle_modes.cuh), for many modes: both passes over the sinograms are
** products of matrices. A block of 256 threads makes a tile of M x 128 of the product, M = 16 TR, a
** thread TR x 8 elements of it, from runs of 16 rows of both factors in shared memory; the next run
** is loaded while one is used. Rows of the factors are what is summed over: angles of P and of a
** sinogram, modes of Q and of the profiles.
*/
#ifndef MB_CUDA_MODE_PRODUCTS_CUH
#define MB_CUDA_MODE_PRODUCTS_CUH

#include "stripes/angle_modes.cuh"

#define PRODUCT_THREADS 256
#define PRODUCT_RUN 16
#define PRODUCT_COLUMNS 128

/* A factor: rows of `width` elements, `pitch` apart. */
struct product_factor {
    const float *data;
    int64_t pitch, width;
};

/* Loads of a run of COLUMNS columns. A thread has one column, and every STEP-th row. */
template <int COLUMNS>
struct product_loads {
    static constexpr int STEP = PRODUCT_THREADS / COLUMNS;
    static constexpr int EACH = (PRODUCT_RUN + STEP - 1) / STEP;
    float value[EACH];
    const float *at;
    int64_t pitch;
    bool inside;

    /* Begins with a row and a column. */
    __device__ __forceinline__ void begin(const product_factor &f, int64_t row, int64_t column)
    {
        const int k = threadIdx.x / COLUMNS, m = threadIdx.x % COLUMNS;
        at = f.data + (row + k) * f.pitch + column + m;
        pitch = f.pitch;
        inside = k < STEP && column + m < f.width;
    }
    /* Loads a run, of which `rows` exist. */
    __device__ __forceinline__ void load(int64_t rows)
    {
        const int left = rows < PRODUCT_RUN ? (int)rows : PRODUCT_RUN;
#pragma unroll
        for (int i = 0; i < EACH; i++, at += STEP * pitch)
            value[i] = inside && (int)(threadIdx.x / COLUMNS) + i * STEP < left ? *at : 0.0f;
        at += (PRODUCT_RUN - EACH * STEP) * pitch; /* not 0 if STEP does not divide a run */
    }
    __device__ __forceinline__ void store(float *to) const
    {
        if (threadIdx.x < STEP * COLUMNS)
#pragma unroll
            for (int i = 0; i < EACH; i++)
                if (PRODUCT_RUN % STEP == 0 || threadIdx.x / COLUMNS + i * STEP < PRODUCT_RUN)
                    to[threadIdx.x + i * STEP * COLUMNS] = value[i];
    }
};

template <int TR>
struct product_tile {
    static constexpr int M = 16 * TR;

    float sum[TR][8];

    /* sum = the product of rows first ... end - 1 of the factors, from columns m0 and c0 on. */
    __device__ __forceinline__ void run(const product_factor &a, const product_factor &b,
                                        int64_t first, int64_t end, int64_t m0, int64_t c0)
    {
        __shared__ __align__(16) float as[2][PRODUCT_RUN * M];
        __shared__ __align__(16) float bs[2][PRODUCT_RUN * PRODUCT_COLUMNS];
        const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
        product_loads<M> next_a;
        product_loads<PRODUCT_COLUMNS> next_b;
#pragma unroll
        for (int r = 0; r < TR; r++)
#pragma unroll
            for (int c = 0; c < 8; c++)
                sum[r][c] = 0.0f;
        next_a.begin(a, first, m0);
        next_b.begin(b, first, c0);
        next_a.load(end - first);
        next_b.load(end - first);
        int side = 0;
        for (int64_t k0 = first; k0 < end; k0 += PRODUCT_RUN, side ^= 1) {
            next_a.store(as[side]);
            next_b.store(bs[side]);
            __syncthreads();
            if (k0 + PRODUCT_RUN < end) {
                next_a.load(end - k0 - PRODUCT_RUN);
                next_b.load(end - k0 - PRODUCT_RUN);
            }
#pragma unroll
            for (int k = 0; k < PRODUCT_RUN; k++) {
                float u[TR];
                const float *from = as[side] + k * M + ty * TR;
#pragma unroll
                for (int r = 0; r < TR - TR % 2; r += 2) {
                    if (TR % 2) {
                        u[r] = from[r];
                        u[r + 1] = from[r + 1];
                        continue;
                    }
                    const float2 pair = *(const float2 *)(from + r);
                    u[r] = pair.x;
                    u[r + 1] = pair.y;
                }
                if (TR % 2)
                    u[TR - 1] = from[TR - 1];
                const float4 *row = (const float4 *)(bs[side] + k * PRODUCT_COLUMNS);
                const float4 low = row[tx], high = row[16 + tx];
                const float v[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
                for (int r = 0; r < TR; r++)
#pragma unroll
                    for (int c = 0; c < 8; c++)
                        sum[r][c] = fmaf(u[r], v[c], sum[r][c]);
            }
        }
    }
    /* The row of elements sum[r], and the column of sum[r][0] (half 0) or sum[r][4] (half 1) in
    ** the tile. */
    __device__ static __forceinline__ int row_of(int r)
    {
        return threadIdx.x / 16 * TR + r;
    }
    __device__ static __forceinline__ int column_of(int half)
    {
        return half * 64 + threadIdx.x % 16 * 4;
    }
};

/* Whether rows of this pitch are made of whole vectors of four. */
__device__ static __forceinline__ bool product_wide(const float *data, int64_t pitch)
{
    return (uintptr_t)data % 16 == 0 && pitch % 4 == 0;
}

/* t = P x: a block for some columns, some modes of one part, and a sinogram. */
template <int TR>
__global__ void __launch_bounds__(PRODUCT_THREADS, 2) modes_project_many(modes_group g, int tiles)
{
    product_tile<TR> tile;
    const int64_t c0 = blockIdx.x * (int64_t)PRODUCT_COLUMNS;
    const int part = blockIdx.y / tiles, m0 = blockIdx.y % tiles * product_tile<TR>::M;
    const int64_t a0 = part * (int64_t)g.segment, end = a0 + g.segment;
    const product_factor p = {g.p, g.pad, g.pad};
    const product_factor x = {g.s.from + blockIdx.z * g.s.from_row, g.s.from_angle, g.s.columns};
    const bool wide = g.s.columns % 4 == 0;
    tile.run(p, x, a0, end < g.s.angles ? end : g.s.angles, m0, c0);
#pragma unroll
    for (int r = 0; r < TR; r++) {
        const int mode = m0 + tile.row_of(r);
        if (mode >= g.modes)
            continue;
        float *t = g.t + ((blockIdx.z * (int64_t)g.modes + mode) * g.parts + part) * g.s.columns;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float *v = tile.sum[r] + 4 * half;
            const int64_t c = c0 + tile.column_of(half);
            if (wide && c < g.s.columns)
                *(float4 *)(t + c) = make_float4(v[0], v[1], v[2], v[3]);
            else
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (c + i < g.s.columns)
                        t[c + i] = v[i];
        }
    }
}

/* x - Q s: a block for some columns, some angles and a sinogram. */
__global__ static void __launch_bounds__(PRODUCT_THREADS, 2)
    modes_subtract_many(modes_group g, const float *profiles)
{
    product_tile<8> tile;
    const int64_t c0 = blockIdx.x * (int64_t)PRODUCT_COLUMNS;
    const int64_t a0 = blockIdx.y * (int64_t)product_tile<8>::M;
    const product_factor q = {g.q, g.s.angles, g.s.angles};
    const product_factor s = {profiles + blockIdx.z * (int64_t)g.modes * g.s.columns, g.s.columns,
                              g.s.columns};
    tile.run(q, s, 0, g.modes, a0, c0);
    const float *from = g.s.from + blockIdx.z * g.s.from_row;
    float *to = g.s.to + blockIdx.z * g.s.to_row;
    const bool wide = g.s.columns % 4 == 0 && product_wide(from, g.s.from_angle) &&
                      product_wide(to, g.s.to_angle);
#pragma unroll
    for (int r = 0; r < 8; r++) {
        const int64_t a = a0 + tile.row_of(r);
        if (a >= g.s.angles)
            continue;
        const float *x = from + a * g.s.from_angle;
        float *y = to + a * g.s.to_angle;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float *v = tile.sum[r] + 4 * half;
            const int64_t c = c0 + tile.column_of(half);
            if (wide && c < g.s.columns) {
                const float4 u = *(const float4 *)(x + c);
                *(float4 *)(y + c) = make_float4(u.x - v[0], u.y - v[1], u.z - v[2], u.w - v[3]);
            } else {
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (c + i < g.s.columns)
                        y[c + i] = x[c + i] - v[i];
            }
        }
    }
}

/* The rows of a thread that waste least, 4 to 8: a block has 16 times as many modes. */
static inline int product_rows(int modes)
{
    int best = 8;
    for (int rows = 7; rows >= 4; rows--)
        if (mb_modes_up(modes, 16 * rows) * rows < mb_modes_up(modes, 16 * best) * best)
            best = rows;
    return best;
}

static inline mb_status modes_run_project_many(const mb_op_call *call, const modes_group &g)
{
    static void (*const kernels[])(modes_group, int) = {
        modes_project_many<4>, modes_project_many<5>, modes_project_many<6>, modes_project_many<7>,
        modes_project_many<8>};
    const int rows = product_rows(g.modes), tiles = (int)mb_modes_up(g.modes, 16 * rows);
    const dim3 blocks((unsigned)mb_modes_up(g.s.columns, PRODUCT_COLUMNS),
                      (unsigned)(g.parts * tiles), (unsigned)g.s.count);
    kernels[rows - 4]<<<blocks, PRODUCT_THREADS, 0, mb_stream(call)>>>(g, tiles);
    return MB_LAUNCH_STATUS("modes_project_many");
}

static inline mb_status modes_run_subtract_many(const mb_op_call *call, const modes_group &g,
                                                const float *profiles)
{
    const dim3 blocks((unsigned)mb_modes_up(g.s.columns, PRODUCT_COLUMNS),
                      (unsigned)mb_modes_up(g.s.angles, product_tile<8>::M), (unsigned)g.s.count);
    modes_subtract_many<<<blocks, PRODUCT_THREADS, 0, mb_stream(call)>>>(g, profiles);
    return MB_LAUNCH_STATUS("modes_subtract_many");
}

/* For any number of modes. */
static inline mb_status modes_project_any(const mb_op_call *call, const modes_group &g)
{
    return g.modes > MB_MODES_FEW ? modes_run_project_many(call, g) : modes_run_project(call, g);
}

static inline mb_status modes_subtract_any(const mb_op_call *call, const modes_group &g,
                                           const float *profiles)
{
    return g.modes > MB_MODES_FEW ? modes_run_subtract_many(call, g, profiles)
                                  : modes_run_subtract(call, g, profiles, false);
}

#endif
