/*
** Modes of the angles on CUDA (ops/stripes/angle_modes.h), for few modes: both passes over the
** sinograms move memory. P is [angle][modes, up to a multiple of MB_MODES_PAD], Q is [mode][angle].
** t is [sinogram][mode][part][column], where a part is the sum over MB_MODES_SEGMENT angles; s is
** [sinogram][mode][column]. Sums are in an order that depends on the number of angles alone.
*/
#ifndef MB_CUDA_ANGLE_MODES_CUH
#define MB_CUDA_ANGLE_MODES_CUH

#include "ops/stripes/angle_modes.h"
#include "shared/cuda_launch.cuh"

#define MODES_THREADS 128
#define MODES_COLUMNS 2 /* of a thread */
#define MODES_RUN 32    /* angles whose sum is added to the sum of its part */
#define MODES_AHEAD 8   /* angles loaded before the first is used */
#define MODES_CHUNK 64  /* angles of a block that subtracts */

/* A group of sinograms at work. */
struct modes_group {
    mb_sinograms
        s; /* `from` and `to` are those of the first of the group; `count` is of the group */
    int modes, pad, parts, segment; /* pad: floats of a row of P; segment: angles of a part */
    const float *p, *q;
    float *t, *filtered;
};

static inline modes_group modes_group_of(const mb_op_call *call, int64_t modes)
{
    modes_group g = {};
    g.s = mb_sinograms_of(call->arrays[0], call->arrays[1]);
    g.modes = (int)modes;
    g.pad = (int)(mb_modes_up(modes, MB_MODES_PAD) * MB_MODES_PAD);
    g.segment = (int)mb_modes_segment(modes);
    g.parts = (int)mb_modes_parts(call->device, g.s.angles, modes);
    g.p = (const float *)call->slots[MB_MODES_P];
    g.q = (const float *)call->slots[MB_MODES_Q];
    g.t = (float *)call->slots[MB_MODES_T];
    g.filtered = (float *)call->slots[MB_MODES_S];
    return g;
}

/* The group that begins with sinogram `first`. */
static inline modes_group modes_group_at(const modes_group &all, int64_t first, int64_t many)
{
    modes_group g = all;
    g.s.from += first * g.s.from_row;
    g.s.to += first * g.s.to_row;
    g.s.count = many;
    return g;
}

/* R: room for modes. */
template <int R>
__global__ void __launch_bounds__(MODES_THREADS) modes_project(modes_group g)
{
    __shared__ float p[MB_MODES_SEGMENT * R];
    const int64_t a0 = (int64_t)blockIdx.y * MB_MODES_SEGMENT;
    const int64_t left = g.s.angles - a0;
    const int count = left < MB_MODES_SEGMENT ? (int)left : MB_MODES_SEGMENT;
    for (int i = threadIdx.x; i < MB_MODES_SEGMENT * R; i += MODES_THREADS)
        p[i] = i / R < count ? g.p[(a0 + i / R) * g.pad + i % R] : 0.0f;
    __syncthreads();
    const int64_t c0 = blockIdx.x * (int64_t)(MODES_THREADS * MODES_COLUMNS) + threadIdx.x;
    const float *from = g.s.from + blockIdx.z * g.s.from_row + a0 * g.s.from_angle + c0;
    bool inside[MODES_COLUMNS];
#pragma unroll
    for (int j = 0; j < MODES_COLUMNS; j++)
        inside[j] = c0 + j * MODES_THREADS < g.s.columns;
    float total[R][MODES_COLUMNS] = {};
    for (int k0 = 0; k0 < count; k0 += MODES_RUN) {
        float sum[R][MODES_COLUMNS] = {};
#pragma unroll 1
        for (int k = k0; k < k0 + MODES_RUN && k < count; k += MODES_AHEAD) {
            float x[MODES_AHEAD][MODES_COLUMNS];
#pragma unroll
            for (int i = 0; i < MODES_AHEAD; i++)
#pragma unroll
                for (int j = 0; j < MODES_COLUMNS; j++)
                    x[i][j] = k + i < count && inside[j]
                                  ? from[(k + i) * g.s.from_angle + j * MODES_THREADS]
                                  : 0.0f;
#pragma unroll
            for (int i = 0; i < MODES_AHEAD; i++)
#pragma unroll
                for (int r = 0; r < R; r++)
#pragma unroll
                    for (int j = 0; j < MODES_COLUMNS; j++)
                        sum[r][j] = fmaf(p[(k + i) * R + r], x[i][j], sum[r][j]);
        }
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int j = 0; j < MODES_COLUMNS; j++)
                total[r][j] += sum[r][j];
    }
#pragma unroll
    for (int r = 0; r < R; r++)
        if (r < g.modes)
#pragma unroll
            for (int j = 0; j < MODES_COLUMNS; j++)
                if (inside[j])
                    g.t[((blockIdx.z * g.modes + r) * (int64_t)g.parts + blockIdx.y) * g.s.columns +
                        c0 + j * MODES_THREADS] = total[r][j];
}

/* The parts of each profile, added up into the first. RELATIVE: minus the first column. */
template <bool RELATIVE>
__global__ void __launch_bounds__(MB_THREADS) modes_add_parts(modes_group g, int64_t profiles)
{
    MB_GRID_LOOP(i, profiles * g.s.columns)
    {
        const int64_t profile = i / g.s.columns, c = i % g.s.columns;
        float *t = g.t + profile * g.parts * g.s.columns;
        double sum = 0, first = 0;
        for (int k = 0; k < g.parts; k++)
            sum += t[k * g.s.columns + c];
        if (RELATIVE)
            for (int k = 0; k < g.parts; k++)
                first += t[k * g.s.columns];
        /* the first column itself is read by others: it goes to `filtered` */
        g.filtered[profile * g.s.columns + c] = (float)(sum - first);
    }
}

template <int R, bool DIVIDE>
__global__ void __launch_bounds__(MODES_THREADS) modes_subtract(modes_group g, const float *s)
{
    __shared__ float q[R][MODES_CHUNK];
    const int64_t a0 = (int64_t)blockIdx.y * MODES_CHUNK, left = g.s.angles - a0;
    const int count = left < MODES_CHUNK ? (int)left : MODES_CHUNK;
    for (int i = threadIdx.x; i < R * MODES_CHUNK; i += MODES_THREADS)
        q[i / MODES_CHUNK][i % MODES_CHUNK] =
            i / MODES_CHUNK < g.modes && i % MODES_CHUNK < count
                ? g.q[i / MODES_CHUNK * g.s.angles + a0 + i % MODES_CHUNK]
                : 0.0f;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < MODES_COLUMNS; j++) {
        const int64_t c = (blockIdx.x * (int64_t)MODES_COLUMNS + j) * MODES_THREADS + threadIdx.x;
        if (c >= g.s.columns)
            continue;
        const float *from = g.s.from + blockIdx.z * g.s.from_row + a0 * g.s.from_angle + c;
        float *to = g.s.to + blockIdx.z * g.s.to_row + a0 * g.s.to_angle + c;
        float profile[R];
#pragma unroll
        for (int r = 0; r < R; r++)
            profile[r] = r < g.modes ? s[(blockIdx.z * g.modes + r) * g.s.columns + c] : 0.0f;
        for (int k = 0; k < count; k += MODES_AHEAD) {
            float x[MODES_AHEAD];
#pragma unroll
            for (int i = 0; i < MODES_AHEAD; i++)
                x[i] = k + i < count ? from[(k + i) * g.s.from_angle] : 0.0f;
#pragma unroll
            for (int i = 0; i < MODES_AHEAD; i++) {
                float sum = 0;
#pragma unroll
                for (int r = 0; r < R; r++)
                    sum = fmaf(q[r][k + i], profile[r], sum);
                if (k + i < count)
                    to[(k + i) * g.s.to_angle] = DIVIDE ? x[i] / profile[0] : x[i] - sum;
            }
        }
    }
}

static inline unsigned modes_column_blocks(const modes_group &g)
{
    return (unsigned)mb_modes_up(g.s.columns, MODES_THREADS * MODES_COLUMNS);
}

/* t = P x of a group, for at most MB_MODES_FEW modes. */
static inline mb_status modes_run_project(const mb_op_call *call, const modes_group &g)
{
    const dim3 blocks(modes_column_blocks(g), (unsigned)g.parts, (unsigned)g.s.count);
    if (g.modes == 1)
        modes_project<1><<<blocks, MODES_THREADS, 0, mb_stream(call)>>>(g);
    else
        modes_project<MB_MODES_FEW><<<blocks, MODES_THREADS, 0, mb_stream(call)>>>(g);
    return MB_LAUNCH_STATUS("modes_project");
}

/* The whole profiles go to g.filtered, from where a filter may take them back to g.t. */
static inline mb_status modes_run_add_parts(const mb_op_call *call, const modes_group &g,
                                            bool relative)
{
    const int64_t profiles = g.s.count * g.modes;
    const unsigned blocks = mb_blocks(call, profiles * g.s.columns, MB_THREADS);
    if (relative)
        modes_add_parts<true><<<blocks, MB_THREADS, 0, mb_stream(call)>>>(g, profiles);
    else
        modes_add_parts<false><<<blocks, MB_THREADS, 0, mb_stream(call)>>>(g, profiles);
    return MB_LAUNCH_STATUS("modes_add_parts");
}

/* x - Q s, or x / s where there is one mode. */
static inline mb_status modes_run_subtract(const mb_op_call *call, const modes_group &g,
                                           const float *s, bool divide)
{
    const int64_t chunks = mb_modes_up(g.s.angles, MODES_CHUNK);
    const dim3 blocks(modes_column_blocks(g), (unsigned)chunks, (unsigned)g.s.count);
    if (divide)
        modes_subtract<1, true><<<blocks, MODES_THREADS, 0, mb_stream(call)>>>(g, s);
    else if (g.modes == 1)
        modes_subtract<1, false><<<blocks, MODES_THREADS, 0, mb_stream(call)>>>(g, s);
    else
        modes_subtract<MB_MODES_FEW, false><<<blocks, MODES_THREADS, 0, mb_stream(call)>>>(g, s);
    return MB_LAUNCH_STATUS("modes_subtract");
}

#endif
