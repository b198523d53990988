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
    /* Blocks: `whole` have a tile of a chunk each, tiles fastest. The ones behind them, which would
    ** keep few multiprocessors busy at the end, have parts of a chunk, `parts` blocks each. */
    int across, tiles; /* tiles of a row, of a plane */
    int whole, parts;
} tv_planes;

/* Image and field of a volume's elements. */
typedef struct tv_state {
    float *u;
    uint2 *field; /* tv_pack */
} tv_state;

/* job.levels steps of all planes. The first pass of all reads the data alone. */
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

/* Copies so many bytes to shared memory, multiples of 4, and zeros up to SIZE. */
template <int SIZE>
__device__ static __forceinline__ void tv_fetch(unsigned to, const void *from, int bytes)
{
#if __CUDA_ARCH__ >= 800
    if constexpr (SIZE == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                     "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from),
                     "n"(SIZE), "r"(bytes)
                     : "memory");
#else
#pragma unroll
    for (int i = 0; i < SIZE / 4; i++) {
        const float v = 4 * i < bytes ? ((const float *)from)[i] : 0.0f;
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
    static constexpr int floats = (2 * LEVELS + 2) * line + SLOTS * (words + 1) * points + 2;
    static_assert(ROWS == 2 && LEVELS <= MB_TV_MARGIN, "see tv_block::fetch");
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
    /* Elements of the tile as [row][64]. The fields of all slots lie behind all images. */
    float *data, *state;
    float2 *ahead, *top;
    int *origin; /* {x, y} of the tile, for the last pass: other passes have no register for it */
    int lane, warp, read_first, read_end, first, end;
    /* A lane works on columns 2 lane and 2 lane + 1 of each row, loads their field, stores them,
    ** and loads image and data of columns 4 (lane % 16) ... of row lane / 16. */
    unsigned pair, four; /* the first of these columns in a plane of the state */
    const float *f;      /* those four of the data's first plane */
    /* Bytes of the four that are in the volume; from bit 8 + 8 i: of the field of row i's pair; bit
    ** 24 + i: row i's pair is stored. */
    unsigned inside;
    float stepx[2], stepy[ROWS];
    set sets[LEVELS + 1];

    __device__ __forceinline__ tv_block(const tv_state &in_, const tv_state &out_,
                                        const tv_job &job_, const tv_planes &w_, float *memory)
        : in(in_), out(out_), job(job_), w(w_)
    {
        state = memory;
        data = state + SLOTS * WORDS * P;
        ahead = (float2 *)(data + SLOTS * P);
        top = ahead + LEVELS * shape::line;
        origin = (int *)(top + shape::line);
        lane = threadIdx.x % 32;
        warp = threadIdx.x / 32;
        const int block = (int)blockIdx.x, split = block - w.whole, parts = split < 0 ? 1 : w.parts,
                  part = split < 0 ? 0 : split % parts,
                  item = split < 0 ? block : w.whole + split / parts, tile = item % w.tiles;
        const int x = tile % w.across * (MB_TV_COLUMNS - 2 * MB_TV_MARGIN) - MB_TV_MARGIN,
                  y = tile / w.across * (shape::height - 2 * LEVELS) - LEVELS + warp * ROWS;
        first = w.first + item / w.tiles * w.chunk;
        end = min(first + w.chunk, w.end);
        const int many = end - first;
        end = first + many * (part + 1) / parts;
        first += many * part / parts;
        read_first = max(first - LEVELS, 0);
        read_end = min(end + LEVELS, job.planes);
        const int row = y + lane / 16, column = x + 4 * (lane % 16);
        pair = (unsigned)(y * (int)job.pitch + x + 2 * lane);
        four = (unsigned)(row * (int)job.pitch + column);
        f = job.f + (row * job.f_row + column);
        inside = 4 * many_of(row, column, 4);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const unsigned many = many_of(y + i, x + 2 * lane, 2);
            const bool mine = warp * ROWS + i >= LEVELS &&
                              warp * ROWS + i < shape::height - LEVELS &&
                              2 * lane >= MB_TV_MARGIN && 2 * lane < MB_TV_COLUMNS - MB_TV_MARGIN;
            inside |= many << (11 + 8 * i) | (mine && many > 0 ? 1u : 0) << (24 + i);
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
        __syncthreads();
        if (threadIdx.x == 0) {
            origin[0] = x;
            origin[1] = y;
        }
    }

    /* Elements from here on, of so many in a row, that are in the volume; none or all before it. */
    __device__ __forceinline__ unsigned many_of(int row, int column, int most) const
    {
        const bool there = (unsigned)row < (unsigned)job.rows && column >= 0;
        return there ? (unsigned)min(max(job.columns - column, 0), most) : 0;
    }

    /* The pair of the warp's first row among a slot's elements. */
    __device__ __forceinline__ int place(int slot) const
    {
        return slot * P + warp * ROWS * MB_TV_COLUMNS + 2 * lane;
    }

    __device__ __forceinline__ uint2 *fields() const
    {
        return (uint2 *)(state + SLOTS * P);
    }

    /* The rows of a warp. Zeros behind the last plane, and beyond the columns. */
    __device__ __forceinline__ void fetch(int z, int slot) const
    {
        const int to = slot * P + warp * ROWS * MB_TV_COLUMNS;
        const unsigned there = z < read_end ? 0xffu : 0;
        const float *const from = f + z * job.f_plane;
        const unsigned to_data = (unsigned)__cvta_generic_to_shared(data + to + 4 * lane);
        if (inside & 0xff) {
            if (job.fours)
                tv_fetch<16>(to_data, from, inside & there);
            else
#pragma unroll
                for (int k = 0; k < 4; k++)
                    if (4 * k < (inside & 0xff))
                        tv_fetch<4>(to_data + 4 * k, from + k, there & 4);
        }
        if (!job.first) {
            const int64_t plane = (z + w.in) * job.plane;
            if (inside & 0xff)
                tv_fetch<16>((unsigned)__cvta_generic_to_shared(state + to + 4 * lane),
                             in.u + plane + four, inside & there);
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const unsigned bytes = inside >> (8 + 8 * i) & 0xff;
                if (bytes > 0)
                    tv_fetch<16>((unsigned)__cvta_generic_to_shared(fields() + to +
                                                                    i * MB_TV_COLUMNS + 2 * lane),
                                 in.field + plane + (pair + i * (unsigned)job.pitch),
                                 bytes & there);
            }
        }
        tv_commit();
    }

    __device__ __forceinline__ void load(set &s, int slot) const
    {
        const int from = place(slot);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const int own = from + i * MB_TV_COLUMNS;
            const float2 f = *(const float2 *)(data + own);
            const float2 u = job.first ? f : *(const float2 *)(state + own);
            const uint4 field = *(const uint4 *)(fields() + own);
            s.f[i][0] = f.x;
            s.f[i][1] = f.y;
            s.u[i][0] = u.x;
            s.u[i][1] = u.y;
            tv_unpack(make_uint2(field.x, field.y), s.x[i][0], s.y[i][0], s.z[i][0]);
            tv_unpack(make_uint2(field.z, field.w), s.x[i][1], s.y[i][1], s.z[i][1]);
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

    __device__ __forceinline__ void store(const set &s, int z) const
    {
        const int64_t plane = (z + w.out) * job.plane;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (!(inside >> (24 + i) & 1))
                continue;
            const float2 u = make_float2(s.u[i][0], s.u[i][1]);
            if (job.last) {
                const int x = origin[0] + 2 * lane, y = origin[1] + warp * ROWS + i;
                float *const to = job.result + z * job.result_plane + y * job.result_row + x;
                if (job.pairs) {
                    *(float2 *)to = u;
                } else {
                    to[0] = u.x;
                    if (x + 1 < job.columns)
                        to[1] = u.y;
                }
            } else {
                const int64_t to = plane + (pair + i * (unsigned)job.pitch);
                const uint2 a = tv_pack(s.x[i][0], s.y[i][0], s.z[i][0]),
                            b = tv_pack(s.x[i][1], s.y[i][1], s.z[i][1]);
                __stcs((float2 *)(out.u + to), u);
                __stcs((uint4 *)(out.field + to), make_uint4(a.x, a.y, b.x, b.y));
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
