/*
** total_variation of a volume: LEVELS steps a pass over memory. A block has a tile of 64 columns and
** some rows, and goes from plane to plane. Level l makes the image of plane s - l and the field of
** the plane before, s - l - 1, and hands that plane to level l + 1, in registers. A warp has ROWS
** rows of the tile, a lane two columns of them: neighbors come from other lanes by shuffles, and
** through shared memory from the warps above and below, with one barrier a level. The tile's border
** is spoiled by one element a level; tiles and chunks of planes overlap by so many. Where there is
** no neighbor the step of the field is 0, so that it stays 0; nothing else knows the edges.
**
** Each plane is in one of LEVELS + 1 sets of registers. A set is the incoming plane of level 0, then
** held by level 0, level 1 and so on, then written and free for the next plane: no value is moved.
** The loop over planes is written LEVELS + 1 times, so that the numbers of the sets are constant.
*/
#ifndef MB_CUDA_TOTAL_VARIATION_PLANES_CUH
#define MB_CUDA_TOTAL_VARIATION_PLANES_CUH

#include "denoising/total_variation.cuh"

typedef struct tv_planes {
    int first, end; /* of the launch */
    int chunk;      /* planes of a block */
    int in, out;    /* plane z is in slot z + in, and goes to slot z + out */
} tv_planes;

/* Image and field of a volume's elements. */
typedef struct tv_state {
    float *u;
    uint2 *field; /* tv_pack */
} tv_state;

/* The data as the image, and no field, in slots from `shift`. */
mb_status tv_begin_all(const mb_op_call *call, const tv_state &state, const tv_job &job, int shift);
/* job.levels steps of all planes. */
mb_status tv_one_pass(const mb_op_call *call, const mb_tv_cuda *c, const tv_state &state,
                      const tv_job &job, tv_planes w);

/* The field of an element in 64 bits: 21 for each component, which is in -1 ... 1, so that its error
** is below 5e-7. A code is the end of the mantissa of TV_MIDDLE + TV_STEPS p, with its first bit
** turned, so that 0 is 0; the code of NaN is 21 ones before that. To read a code one is added to it
** below the exponent of the largest floats: NaN becomes a NaN again. */
#define TV_STEPS 1048574.0f
#define TV_MIDDLE 9437184.0f /* 2^23 + 2^20 */
#define TV_MASK 0x1fffffu
#define TV_FIRST 0x100000u

__device__ static __forceinline__ unsigned tv_code(float p)
{
    return (__float_as_uint(fmaf(p, TV_STEPS, TV_MIDDLE)) & TV_MASK) ^ TV_FIRST;
}

__device__ static __forceinline__ float tv_decoded(unsigned bits)
{
    /* 2^127 (1 + (4 (code + 1) + 1) / 2^23) */
    const float large = __uint_as_float(((bits & TV_MASK) ^ TV_FIRST) * 4 + 0x7f000005u);
    const float middle = 2.0f + (4.0f * 1048577.0f + 1.0f) / 4194304.0f;
    return fmaf(large, 0x1p-126f, -middle) * (1048576.0f / TV_STEPS);
}

__device__ static __forceinline__ uint2 tv_pack(float x, float y, float z)
{
    const unsigned a = tv_code(x), b = tv_code(y), c = tv_code(z);
    return make_uint2(a | b << 21, b >> 11 | c << 10);
}

__device__ static __forceinline__ void tv_unpack(uint2 v, float &x, float &y, float &z)
{
    x = tv_decoded(v.x);
    y = tv_decoded(__funnelshift_r(v.x, v.y, 21));
    z = tv_decoded(v.y >> 10);
}

/* Copies an element to shared memory, or zeros where `there` is false, the same for all lanes. */
template <int BYTES>
__device__ static __forceinline__ void tv_fetch(unsigned to, const void *from, bool there)
{
#if __CUDA_ARCH__ >= 800
    const int bytes = there ? BYTES : 0; /* the rest becomes 0 */
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                     "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from),
                     "n"(BYTES), "r"(bytes)
                     : "memory");
#else
#pragma unroll
    for (int i = 0; i < BYTES / 4; i++) {
        const float v = there ? ((const float *)from)[i] : 0.0f;
        asm volatile("st.shared.f32 [%0], %1;" ::"r"(to + 4 * i), "f"(v) : "memory");
    }
#endif
}

__device__ static __forceinline__ void tv_commit()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until at most so many groups are on their way. */
template <int LEFT>
__device__ static __forceinline__ void tv_wait()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
    __syncwarp();
}

template <int LEVELS, int WARPS, int ROWS, int SLOTS>
struct tv_shape {
    static constexpr int threads = 32 * WARPS, height = WARPS * ROWS;
    static constexpr int points = MB_TV_COLUMNS * height;
    /* Shared memory: 2 u' - u of the first row of each warp, for two planes a level; the field of the
    ** last row, twice; the planes that come in. */
    static constexpr int line = (WARPS + 1) * MB_TV_COLUMNS;
    static constexpr int words = 3; /* of an element's state */
    static constexpr int floats =
        (2 * LEVELS + 2) * line + SLOTS * (words + 1) * points + words * points;
};

/* A plane of a lane's elements: image, field, data, and 2 u' - u of the level that has it. */
template <int ROWS>
struct tv_set {
    float u[ROWS][2], x[ROWS][2], y[ROWS][2], z[ROWS][2], f[ROWS][2], b[ROWS][2];
};

template <int LEVELS, int WARPS, int ROWS, int SLOTS>
struct tv_block {
    typedef tv_shape<LEVELS, WARPS, ROWS, SLOTS> shape;
    typedef tv_set<ROWS> set;
    static constexpr int P = shape::points, WORDS = shape::words;
    const tv_state &in, &out;
    const tv_job &job;
    const tv_planes &w;
    /* Elements of the tile as [row][64]: even columns, then odd ones. The last slot of the state is
    ** for what goes out. The fields of all slots lie behind all images. */
    float *data, *state;
    float2 *ahead, *top;
    int lane, warp, x, y, read_first, read_end, first, end;
    /* A lane works on columns 2 lane and 2 lane + 1, and loads and stores lane and lane + 32. */
    unsigned at; /* of the lane's first element in a plane of the state */
    unsigned
        inside; /* bit k: element k % 2, row k / 2 is in the volume; bit 16 + k: and is written */
    float stepx[2], stepy[ROWS];
    set sets[LEVELS + 1];

    __device__ __forceinline__ tv_block(const tv_state &in_, const tv_state &out_,
                                        const tv_job &job_, const tv_planes &w_, float *memory)
        : in(in_), out(out_), job(job_), w(w_)
    {
        state = memory;
        data = state + (SLOTS + 1) * WORDS * P;
        ahead = (float2 *)(data + SLOTS * P);
        top = ahead + LEVELS * shape::line;
        lane = threadIdx.x % 32;
        warp = threadIdx.x / 32;
        x = (int)blockIdx.x * (MB_TV_COLUMNS - 2 * LEVELS) - LEVELS;
        y = (int)blockIdx.y * (shape::height - 2 * LEVELS) - LEVELS + warp * ROWS;
        first = w.first + (int)blockIdx.z * w.chunk;
        end = min(first + w.chunk, w.end);
        read_first = max(first - LEVELS, 0);
        read_end = min(end + LEVELS, job.planes);
        at = (unsigned)(y * (int)job.pitch + x + lane);
        inside = 0;
#pragma unroll
        for (int k = 0; k < 2 * ROWS; k++) {
            const int i = k / 2, column = k % 2 * 32 + lane, row = warp * ROWS + i;
            const bool there = (unsigned)(y + i) < (unsigned)job.rows &&
                               (unsigned)(x + column) < (unsigned)job.columns;
            const bool mine = there && row >= LEVELS && row < shape::height - LEVELS &&
                              column >= LEVELS && column < MB_TV_COLUMNS - LEVELS;
            inside |= (there ? 1u : 0) << k | (mine ? 1u : 0) << (16 + k);
        }
#pragma unroll
        for (int j = 0; j < 2; j++)
            stepx[j] = (unsigned)(x + 2 * lane + j) < (unsigned)(job.columns - 1) ? job.step : 0;
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            stepy[i] = (unsigned)(y + i) < (unsigned)(job.rows - 1) ? job.step : 0;
#pragma unroll
        for (int k = 0; k <= LEVELS; k++)
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int j = 0; j < 2; j++)
                    sets[k].u[i][j] = sets[k].x[i][j] = sets[k].y[i][j] = sets[k].z[i][j] =
                        sets[k].f[i][j] = sets[k].b[i][j] = 0;
        /* Zeros beyond the volume, and no NaN where nothing is read. */
        for (int i = threadIdx.x; i < shape::floats; i += shape::threads)
            memory[i] = 0;
    }

    /* The lane's place among a slot's elements, for working on them or for loads and stores. */
    __device__ __forceinline__ int working(int slot) const
    {
        return slot * P + warp * ROWS * MB_TV_COLUMNS + lane;
    }

    __device__ __forceinline__ int moving(int slot) const
    {
        return slot * P + warp * ROWS * MB_TV_COLUMNS + lane / 2 + (lane & 1) * 32;
    }

    __device__ __forceinline__ uint2 *fields() const
    {
        return (uint2 *)(state + (SLOTS + 1) * P);
    }

    /* The rows of a warp. Zeros behind the last plane. */
    __device__ __forceinline__ void fetch(int z, int slot) const
    {
        const bool there = z < read_end;
        const int to = moving(slot);
        const int64_t plane = (z + w.in) * job.plane;
        const float *const f = job.f + z * job.f_plane + ((int64_t)y * job.f_row + x + lane);
        const unsigned to_data = (unsigned)__cvta_generic_to_shared(data + to);
        const unsigned to_state = (unsigned)__cvta_generic_to_shared(state + to);
        const unsigned to_field = (unsigned)__cvta_generic_to_shared(fields() + to);
#pragma unroll
        for (int k = 0; k < 2 * ROWS; k++) {
            const int i = k / 2, h = k % 2 * 32, skip = i * MB_TV_COLUMNS + h / 2;
            if (!(inside >> k & 1))
                continue;
            const unsigned from = at + i * (unsigned)job.pitch + h;
            tv_fetch<4>(to_data + 4 * skip, f + i * job.f_row + h, there);
            tv_fetch<4>(to_state + 4 * skip, in.u + plane + from, there);
            tv_fetch<8>(to_field + 8 * skip, in.field + plane + from, there);
        }
        tv_commit();
    }

    __device__ __forceinline__ void load(set &s, int slot) const
    {
        const int from = working(slot);
#pragma unroll
        for (int k = 0; k < 2 * ROWS; k++) {
            const int i = k / 2, j = k % 2, own = from + i * MB_TV_COLUMNS + j * 32;
            s.f[i][j] = data[own];
            s.u[i][j] = state[own];
            tv_unpack(fields()[own], s.x[i][j], s.y[i][j], s.z[i][j]);
        }
    }

    /* Level l: the image of the incoming plane z, and the field of the plane that it holds. */
    __device__ __forceinline__ void level(int l, int turn, int z, set &now, set &held) const
    {
        constexpr int line = shape::line / 2;
        const float2 *const b = ahead + (2 * l + turn) * line + warp * 32 + lane;
        float2 *const next = ahead + (2 * l + (turn ^ 1)) * line + warp * 32 + lane;
        /* Two lines in turn: one is written a barrier after its last reader. */
        float2 *const t = top + ((l + (LEVELS & 1 ? turn : 0)) & 1) * line + warp * 32 + lane;
        t[32] = make_float2(now.y[ROWS - 1][0], now.y[ROWS - 1][1]);
        __syncthreads();
        const float2 above = t[0], below = b[32];
        const float least = tv_least(job, l);
        const float stepz = (unsigned)(z - 1) < (unsigned)(job.planes - 1) ? job.step : 0;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const float left = __shfl_up_sync(0xffffffffu, now.x[i][1], 1);
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const float up = i > 0 ? now.y[i > 0 ? i - 1 : 0][j] : j ? above.y : above.x;
                const float div = (now.x[i][j] - (j ? now.x[i][0] : left)) + (now.y[i][j] - up) +
                                  (now.z[i][j] - held.z[i][j]);
                now.b[i][j] = tv_image(now.u[i][j], now.f[i][j], div, least, job);
            }
        }
        next[0] = make_float2(now.b[0][0], now.b[0][1]);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const float right = __shfl_down_sync(0xffffffffu, held.b[i][0], 1);
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const float c = held.b[i][j];
                const float down = i < ROWS - 1 ? held.b[i < ROWS - 1 ? i + 1 : 0][j]
                                   : j          ? below.y
                                                : below.x;
                tv_dual(held.x[i][j], held.y[i][j], held.z[i][j], (j ? right : held.b[i][1]) - c,
                        down - c, now.b[i][j] - c, stepx[j], stepy[i], stepz);
            }
        }
    }

    /* By way of shared memory, so that lanes write elements that are neighbors. */
    __device__ __forceinline__ void store(const set &s, int z) const
    {
        const int to = working(SLOTS), from = moving(SLOTS);
        __syncwarp();
#pragma unroll
        for (int k = 0; k < 2 * ROWS; k++) {
            const int i = k / 2, j = k % 2, own = to + i * MB_TV_COLUMNS + j * 32;
            state[own] = s.u[i][j];
            fields()[own] = tv_pack(s.x[i][j], s.y[i][j], s.z[i][j]);
        }
        __syncwarp();
        const int64_t plane = (z + w.out) * job.plane;
#pragma unroll
        for (int k = 0; k < 2 * ROWS; k++) {
            const int i = k / 2, h = k % 2 * 32, own = from + i * MB_TV_COLUMNS + h / 2;
            if (!(inside >> (16 + k) & 1))
                continue;
            const unsigned to_state = at + i * (unsigned)job.pitch + h;
            if (job.last) {
                job.result[z * job.result_plane + (y + i) * job.result_row + x + lane + h] =
                    state[own];
            } else {
                __stcs(out.u + plane + to_state, state[own]);
                __stcs(out.field + plane + to_state, fields()[own]);
            }
        }
    }

    /* Plane s comes in. PHASE: s - read_first, modulo LEVELS + 1. */
    template <int PHASE>
    __device__ __forceinline__ void advance(int s, int &slot)
    {
        constexpr int N = LEVELS + 1;
        const int turn = N % 2 == 0 ? PHASE & 1 : (s - read_first) & 1;
        const int last = slot == 0 ? SLOTS - 1 : slot - 1; /* was loaded a plane ago */
        __syncwarp();
        fetch(s + SLOTS - 1, last);
        tv_wait<SLOTS - 1>();
        load(sets[(N - PHASE) % N], slot);
#pragma unroll
        for (int l = 0; l < LEVELS; l++)
            level(l, turn, s - l, sets[(l + N - PHASE) % N], sets[(l + 1 + N - PHASE) % N]);
        const set &made = sets[(LEVELS + N - PHASE) % N];
        if (s - LEVELS >= first)
            store(made, s - LEVELS);
        slot = slot == SLOTS - 1 ? 0 : slot + 1;
    }

    template <int PHASE>
    __device__ __forceinline__ bool advance_all(int s, int &slot)
    {
        if constexpr (PHASE <= LEVELS) {
            if (s + PHASE >= end + LEVELS)
                return false;
            advance<PHASE>(s + PHASE, slot);
            return advance_all<PHASE + 1>(s, slot);
        }
        return true;
    }

    __device__ __forceinline__ void run()
    {
        int slot = 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < SLOTS - 1; i++)
            fetch(read_first + i, i);
        for (int s = read_first; advance_all<0>(s, slot); s += LEVELS + 1)
            ;
    }
};

template <int LEVELS, int WARPS, int ROWS, int SLOTS>
__global__ void __launch_bounds__(32 * WARPS, 1)
    tv_pass(tv_state in, tv_state out, tv_job job, tv_planes w)
{
    extern __shared__ float4 memory[];
    tv_block<LEVELS, WARPS, ROWS, SLOTS> block(in, out, job, w, (float *)memory);
    block.run();
}

#endif
