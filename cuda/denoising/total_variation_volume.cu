/*
** total_variation of a volume: LEVELS steps a pass over memory. A block has a tile of rows and columns
** and goes from plane to plane. Level l makes the image of plane s - l and the field of the plane
** before, s - l - 1, and hands that plane to level l + 1, in registers. Neighbors in the plane come
** through shared memory, with one barrier a level. The tile's border is spoiled by one element a
** level; tiles and chunks of planes overlap by so many. Where there is no neighbor the step of the
** field is 0, so that it stays 0; nothing else knows the edges.
**
** Each plane is in one of LEVELS + 1 sets of registers. A set is the incoming plane of level 0, then
** held by level 0, level 1 and so on, then written and free for the next plane: no value is moved.
** The loop over planes is written LEVELS + 1 times, so that the numbers of the sets are constant.
*/
#include "denoising/total_variation.cuh"

#define SIDE MB_TV_SIDE
#define PATCH 4 /* rows of a thread */

/* Field as halves: columns and rows in one word, planes in an array of their own. */
typedef struct tv_half {
    float *u;
    uint32_t *xy;
    __half *z;
} tv_half;

typedef struct tv_planes {
    int first, end; /* of the launch */
    int chunk;      /* planes of a block */
    int in, out;    /* plane z is in slot z + in, and goes to slot z + out */
    bool wide;      /* the data can be loaded by 16 bytes */
} tv_planes;

__device__ static __forceinline__ void tv_fetch16(void *to, const void *from, int bytes)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(bytes)
                 : "memory");
#else
    float4 v = make_float4(0, 0, 0, 0);
    if (bytes == 16)
        v = *(const float4 *)from;
    else
        for (int i = 0; i < bytes / 4; i++)
            (&v.x)[i] = ((const float *)from)[i];
    *(float4 *)to = v;
#endif
}

__device__ static __forceinline__ void tv_fetch8(void *to, const void *from, int bytes)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(bytes)
                 : "memory");
#else
    ushort4 v = make_ushort4(0, 0, 0, 0);
    for (int i = 0; i < bytes / 2; i++)
        (&v.x)[i] = ((const unsigned short *)from)[i];
    *(ushort4 *)to = v;
#endif
}

__device__ static __forceinline__ void tv_fetch4(void *to, const void *from, int bytes)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(bytes)
                 : "memory");
#else
    *(float *)to = bytes ? *(const float *)from : 0.0f;
#endif
}

__device__ static __forceinline__ void tv_fetched()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* A plane of a thread's elements: image, field, data, and 2 u' - u of the level that has it. */
struct tv_set {
    float u[PATCH], x[PATCH], y[PATCH], z[PATCH], f[PATCH], b[PATCH];
};

template <int LEVELS, int TX, int TY, bool HALF>
struct tv_shape {
    static constexpr int points = TX * TY, threads = points / PATCH;
    static constexpr int words = HALF ? 4 : 5; /* of an element that is loaded; halves: 3.5 */
    /* 2 u' - u of two planes a level, with a row more; the field's columns and rows, two of each, with
    ** a row before; loads of two planes */
    static constexpr int ahead = points + TX, side = points + 4, top = threads + TX;
    static constexpr int floats = LEVELS * 2 * ahead + 2 * side + 2 * top + 2 * words * points + 16;
};

template <int LEVELS, int TX, int TY, bool HALF, class STATE>
struct tv_block {
    typedef tv_shape<LEVELS, TX, TY, HALF> shape;
    static constexpr int P = shape::points;
    const STATE in, out;
    const tv_job &job;
    const tv_planes &w;
    float *ahead, *side, *top, *loads;
    int tx, ty, x, y0, read_first, read_end, first, end;
    float stepx, stepy[PATCH];
    tv_set sets[LEVELS + 1];

    __device__ __forceinline__ tv_block(STATE in_, STATE out_, const tv_job &job_,
                                        const tv_planes &w_, float *memory)
        : in(in_), out(out_), job(job_), w(w_)
    {
        ahead = memory;
        side = ahead + LEVELS * 2 * shape::ahead + 4;
        top = side + 2 * shape::side;
        loads = memory + (LEVELS * 2 * shape::ahead + 2 * shape::side + 2 * shape::top + 8) / 4 * 4;
        tx = threadIdx.x % TX;
        ty = threadIdx.x / TX * PATCH;
        x = (int)blockIdx.x * (TX - 2 * SIDE) - SIDE + tx;
        y0 = (int)blockIdx.y * (TY - 2 * LEVELS) - LEVELS + ty;
        first = w.first + (int)blockIdx.z * w.chunk;
        end = min(first + w.chunk, w.end);
        read_first = max(first - LEVELS, 0);
        read_end = min(end + LEVELS, job.planes);
        stepx = (unsigned)x < (unsigned)(job.columns - 1) ? job.step : 0;
#pragma unroll
        for (int i = 0; i < PATCH; i++)
            stepy[i] = (unsigned)(y0 + i) < (unsigned)(job.rows - 1) ? job.step : 0;
#pragma unroll
        for (int k = 0; k <= LEVELS; k++)
#pragma unroll
            for (int i = 0; i < PATCH; i++)
                sets[k].u[i] = sets[k].x[i] = sets[k].y[i] = sets[k].z[i] = sets[k].f[i] =
                    sets[k].b[i] = 0;
        for (int i = threadIdx.x; i < shape::floats; i += shape::threads)
            memory[i] = 0; /* so that there is no NaN where nothing is read */
    }

    /* Four elements of a row, a thread each. What is beyond the volume becomes 0. */
    __device__ __forceinline__ void fetch(int z, int slot) const
    {
        const int row = threadIdx.x / (TX / 4), column = threadIdx.x % (TX / 4) * 4;
        const int gx = x - tx + column, gy = y0 - ty + row;
        const bool there = (unsigned)gy < (unsigned)job.rows && gx >= 0 && z < read_end;
        const int count = there ? min(max(job.columns - gx, 0), 4) : 0;
        float *to = loads + slot * shape::words * P + row * TX + column;
        const float *f = count ? job.f + z * job.f_plane + gy * job.f_row + gx : job.f;
        if (w.wide) {
            tv_fetch16(to, f, 4 * count);
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                tv_fetch4(to + i, i < count ? f + i : f, i < count ? 4 : 0);
        }
        if (job.first)
            return;
        const int64_t at = count ? (z + w.in) * job.plane + gy * job.pitch + gx : 0;
        tv_fetch16(to + P, in.u + at, 4 * count);
        if constexpr (HALF) {
            tv_fetch16(to + 2 * P, in.xy + at, 4 * count);
            tv_fetch8((__half *)(loads + slot * shape::words * P + 3 * P) + row * TX + column,
                      in.z + at, 2 * count);
        } else {
            tv_fetch16(to + 2 * P, in.p[0] + at, 4 * count);
            tv_fetch16(to + 3 * P, in.p[1] + at, 4 * count);
            tv_fetch16(to + 4 * P, in.p[2] + at, 4 * count);
        }
    }

    __device__ __forceinline__ void load(tv_set &s, int slot) const
    {
        const float *from = loads + slot * shape::words * P + ty * TX + tx;
#pragma unroll
        for (int i = 0; i < PATCH; i++, from += TX) {
            s.f[i] = from[0];
            if (job.first) {
                s.u[i] = s.f[i];
                s.x[i] = s.y[i] = s.z[i] = 0;
                continue;
            }
            s.u[i] = from[P];
            if constexpr (HALF) {
                const float2 xy = __half22float2(*(const __half2 *)(from + 2 * P));
                s.x[i] = xy.x;
                s.y[i] = xy.y;
                s.z[i] = __half2float((
                    (const __half *)(loads + slot * shape::words * P + 3 * P))[(ty + i) * TX + tx]);
            } else {
                s.x[i] = from[2 * P];
                s.y[i] = from[3 * P];
                s.z[i] = from[4 * P];
            }
        }
    }

    /* Level l: the image of the incoming plane z, and the field of the plane that it holds. */
    __device__ __forceinline__ void level(int l, int turn, int z, tv_set &now, tv_set &held) const
    {
        float *const b = ahead + l * 2 * shape::ahead + turn * shape::ahead;
        float *const next = ahead + l * 2 * shape::ahead + (turn ^ 1) * shape::ahead;
        /* Two buffers in turn: one is written a barrier after its last reader. */
        const int which = (l + (LEVELS & 1 ? turn : 0)) & 1;
        float *const sx = side + which * shape::side, *const sy = top + which * shape::top;
        const int column = threadIdx.x / TX * TX + tx, at = ty * TX + tx;
#pragma unroll
        for (int i = 0; i < PATCH; i++)
            sx[at + i * TX] = now.x[i];
        sy[column + TX] = now.y[PATCH - 1];
        __syncthreads();
        const float stepz = (unsigned)(z - 1) < (unsigned)(job.planes - 1) ? job.step : 0;
#pragma unroll
        for (int i = 0; i < PATCH; i++) {
            const float left = sx[at + i * TX - 1];
            const float above = i > 0 ? now.y[i > 0 ? i - 1 : 0] : sy[column];
            const float div = (now.x[i] - left) + (now.y[i] - above) + (now.z[i] - held.z[i]);
            now.b[i] = tv_image(now.u[i], now.f[i], div, job);
            next[at + i * TX] = now.b[i];
        }
#pragma unroll
        for (int i = 0; i < PATCH; i++) {
            const float c = held.b[i], right = b[at + i * TX + 1];
            const float below =
                i < PATCH - 1 ? held.b[i + 1 < PATCH ? i + 1 : i] : b[at + PATCH * TX];
            tv_dual(held.x[i], held.y[i], held.z[i], right - c, below - c, now.b[i] - c, stepx,
                    stepy[i], stepz);
        }
    }

    __device__ __forceinline__ void store(const tv_set &s, int z) const
    {
        if (z < first || z >= end || (unsigned)x >= (unsigned)job.columns || tx < SIDE ||
            tx >= TX - SIDE)
            return;
#pragma unroll
        for (int i = 0; i < PATCH; i++) {
            const int y = y0 + i;
            if (ty + i < LEVELS || ty + i >= TY - LEVELS || y >= job.rows)
                continue;
            if (job.last) {
                job.result[z * job.result_plane + y * job.result_row + x] = s.u[i];
                continue;
            }
            const int64_t at = (z + w.out) * job.plane + y * job.pitch + x;
            __stcs(out.u + at, s.u[i]);
            if constexpr (HALF) {
                const __half2 xy = __floats2half2_rn(s.x[i], s.y[i]);
                __stcs(out.xy + at, *(const uint32_t *)&xy);
                out.z[at] = __float2half_rn(s.z[i]);
            } else {
                __stcs(out.p[0] + at, s.x[i]);
                __stcs(out.p[1] + at, s.y[i]);
                __stcs(out.p[2] + at, s.z[i]);
            }
        }
    }

    /* Plane s comes in. PHASE: s - read_first, modulo LEVELS + 1. */
    template <int PHASE>
    __device__ __forceinline__ void advance(int s)
    {
        constexpr int N = LEVELS + 1;
        const int slot = N % 2 == 0 ? PHASE & 1 : (s - read_first) & 1;
        fetch(s + 1, slot ^ 1);
        load(sets[(N - PHASE) % N], slot);
#pragma unroll
        for (int l = 0; l < LEVELS; l++)
            level(l, slot, s - l, sets[(l + N - PHASE) % N], sets[(l + 1 + N - PHASE) % N]);
        store(sets[(LEVELS + N - PHASE) % N], s - LEVELS);
        tv_fetched();
        __syncthreads();
    }

    template <int PHASE>
    __device__ __forceinline__ bool advance_all(int s)
    {
        if constexpr (PHASE <= LEVELS) {
            if (s + PHASE >= end + LEVELS)
                return false;
            advance<PHASE>(s + PHASE);
            return advance_all<PHASE + 1>(s);
        }
        return true;
    }

    __device__ __forceinline__ void run()
    {
        __syncthreads();
        fetch(read_first, 0);
        tv_fetched();
        __syncthreads();
        for (int s = read_first; advance_all<0>(s); s += LEVELS + 1)
            ;
    }
};

template <int LEVELS, int TX, int TY, bool HALF, class STATE>
__global__ void __launch_bounds__(TX *TY / PATCH, 1)
    tv_pass(STATE in, STATE out, tv_job job, tv_planes w)
{
    extern __shared__ float4 memory[];
    tv_block<LEVELS, TX, TY, HALF, STATE> block(in, out, job, w, (float *)memory);
    block.run();
}

template <int LEVELS, int TX, int TY, bool HALF, class STATE>
static mb_status tv_launch(const mb_op_call *call, const STATE &state, const tv_job &job,
                           const tv_planes &w)
{
    typedef tv_shape<LEVELS, TX, TY, HALF> shape;
    const int bytes = shape::floats * (int)sizeof(float);
    const auto kernel = tv_pass<LEVELS, TX, TY, HALF, STATE>;
    const int across = TX - 2 * SIDE, down = TY - 2 * LEVELS;
    const dim3 blocks((job.columns + across - 1) / across, (job.rows + down - 1) / down,
                      (w.end - w.first + w.chunk - 1) / w.chunk);
    MB_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<blocks, shape::threads, bytes, mb_stream(call)>>>(state, state, job, w);
    MB_LAUNCHED("tv_pass");
    return MB_STATUS_OK;
}

template <bool HALF, class STATE>
static mb_status tv_levels(const mb_op_call *call, const mb_tv_cuda *c, const STATE &state,
                           const tv_job &job, const tv_planes &w)
{
    if (!c->large)
        return job.levels == 2 ? tv_launch<2, 32, 32, HALF>(call, state, job, w)
                               : tv_launch<1, 32, 32, HALF>(call, state, job, w);
    return job.levels == 3   ? tv_launch<3, 64, 32, HALF>(call, state, job, w)
           : job.levels == 2 ? tv_launch<2, 64, 32, HALF>(call, state, job, w)
                             : tv_launch<1, 64, 32, HALF>(call, state, job, w);
}

template <bool HALF, class STATE>
static mb_status tv_passes(const mb_op_call *call, const mb_tv_cuda *c, const STATE &state,
                           tv_job job, int64_t steps)
{
    const mb_array *a = call->arrays[MB_TOTAL_VARIATION_A];
    const mb_array *result = call->arrays[MB_TOTAL_VARIATION_RESULT];
    tv_planes w = {};
    w.chunk = (int)c->zc;
    w.wide = (uintptr_t)job.f % 16 == 0 && job.f_plane % 4 == 0 && job.f_row % 4 == 0;
    const tv_job given = job;
    w.in = (int)c->shift;
    for (int64_t first = 0; first < steps; first += c->levels) {
        job.levels = (int)(steps - first < c->levels ? steps - first : c->levels);
        job.first = first == 0;
        job.last = first + job.levels == steps;
        w.out = w.in ? 0 : (int)c->shift;
        if (job.last && a->data == result->data) {
            job.result = state.u + w.out * c->slot;
            job.result_plane = c->slot;
            job.result_row = c->pitch;
        }
        /* Planes in ascending order go to lower slots, in descending order to higher ones. */
        const int64_t launches = (given.planes + c->launch - 1) / c->launch;
        for (int64_t i = 0; i < launches; i++) {
            const int64_t from = (w.out ? launches - 1 - i : i) * c->launch;
            w.first = (int)from;
            w.end = (int)(from + c->launch < given.planes ? from + c->launch : given.planes);
            MB_TRY((tv_levels<HALF>(call, c, state, job, w)));
        }
        w.in = w.out;
    }
    if (a->data != result->data)
        return MB_STATUS_OK;
    const int64_t to[2] = {given.result_plane, given.result_row}, own[2] = {c->slot, c->pitch};
    return tv_copy_planes(call, given.result, to, state.u + w.in * c->slot, own, given.planes,
                          &given);
}

mb_status tv_volume(const mb_op_call *call, const mb_tv_cuda *c, tv_job job, int64_t steps)
{
    float *state = (float *)call->slots[MB_TOTAL_VARIATION_STATE];
    const mb_total_variation_params *p = (const mb_total_variation_params *)call->params;
    const int64_t count = c->slots * c->slot;
    if (p->precision == MB_TV_HALF) {
        tv_half half = {state, (uint32_t *)(state + count), (__half *)(state + 2 * count)};
        return tv_passes<true>(call, c, half, job, steps);
    }
    tv_single single = {state, {state + count, state + 2 * count, state + 3 * count}};
    return tv_passes<false>(call, c, single, job, steps);
}
