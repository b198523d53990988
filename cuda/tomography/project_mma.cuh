/*
** project on the tensor cores (mma.sync m16n8k16: halves in, single-precision sums).
**
**     sums[16 slices][8 rays] += places[16 slices][2 lines x 8 places] * weights[places][8 rays]
**
** The weights, what a pixel gives to a bin, are made in the registers where the product wants them,
** from the distance of the place to the ray. Places and weights are split into high and low halves,
** three products (low * low is below single precision). The tensor cores truncate their sums, so a
** block adds up a strip of lines and then adds that to the result: strips are launches, in order. A
** strip begins while the last blocks of the one before it run, and waits before it adds.
**
** Slices are packed as [line][place][high of all, low of all], 16 bytes being 8 slices, so that a
** window of a line is one contiguous copy; in a place the units of 16 bytes are permuted by the
** place's number, so that ldmatrix meets no bank twice.
**
** A tile lies about a place of the strip's middle line; each angle of the block owns the bins there,
** from its first up to the first of the next tile. So what goes together needs no common bins.
*/
#ifndef MB_CUDA_PROJECT_MMA_CUH
#define MB_CUDA_PROJECT_MMA_CUH

#include "shared/early_launch.cuh"
#include "tomography/project_groups.cuh"
#include <cuda_fp16.h>

#define PROJECT_GUARD MB_PROJECT_SPLIT_GUARD
#define PROJECT_CHUNK 4 /* lines of a stage */
#define PROJECT_STAGES 4
#define PROJECT_WARPS 16
#define PROJECT_HALF (0.5 * (PROJECT_TILE - 1))
#define PROJECT_MAGIC 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
#define PROJECT_MAGIC_BITS 0x4B400000u

#ifdef __CUDA_ARCH__
#define PROJECT_ARCH __CUDA_ARCH__
#else
#define PROJECT_ARCH 900
#endif

struct project_strip {
    const project_ray *rays;
    const project_block *blocks; /* of this launch, as many as the grid is wide */
    const uint4 *packed;         /* from the strip's first line on */
    const float2 *half_scale;    /* of each slice: factor when packing, its inverse */
    int pitch, lines, across;    /* places of a packed line; of the image */
    int first, strip;            /* line of the strip, or of a part of one; its lines */
    int cols, slices;
    float *sino;
    int64_t sino_z, sino_a;
    float scale;
    float radius2; /* of the mask; negative: none */
    bool distance;
};

/* What a block knows of an angle. */
struct project_track {
    int64_t index;
    double place;          /* of the middle of its bins, on the strip's middle line */
    double inverse, slope; /* see project_ray */
    int first, low, high;  /* its first bin; those from low on, before high, are its own */
    float cross;
};

/* A group of angles: the middle of its windows. */
struct project_middle {
    double place, inverse, slope;
};

template <int MT>
struct project_sizes {
    enum {
        S = 16 * MT,
        UNITS = 4 * MT, /* 16 bytes each, of a place: 2 MT groups of slices, high and low */
        PLACE = 16 * UNITS,
        LINE = PROJECT_WINDOW * PLACE,
        STAGE = PROJECT_CHUNK * LINE,
        ROW = PROJECT_TILE + 4, /* floats of a row of results */
        SUMS = PROJECT_TOGETHER * S * ROW * 4,
        STAGED = PROJECT_STAGES * STAGE > SUMS ? PROJECT_STAGES *STAGE : SUMS,
        BARRIERS = STAGED,
        TRACKS = BARRIERS + 2 * PROJECT_STAGES * 8,
        MIDDLES = TRACKS + PROJECT_TOGETHER * (int)sizeof(project_track),
        BYTES = MIDDLES + PROJECT_TOGETHER * (int)sizeof(project_middle)
    };
};

/* By how much the units of a place are permuted. */
template <int MT>
__host__ __device__ static inline int project_key(int place)
{
    return MT == 1 ? (place >> 1) & 3 : place & 7;
}

#if PROJECT_ARCH >= 900

__device__ static inline void project_mma(float *sum, const uint32_t *a, const uint32_t *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ static inline void project_load(uint32_t *b, uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(at));
}

__device__ static inline void project_wait(uint32_t bar, int parity)
{
    asm volatile("{\n.reg .pred p;\nAGAIN_%=:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra AGAIN_%=;\n}" ::"r"(bar),
                 "r"(parity)
                 : "memory");
}

/* First place of the block's window on line i of the strip (from its middle), in the bits of a
** float: one definition for those who copy and those who read. */
__device__ static inline float project_window(float i, float slope, float start)
{
    return __fadd_rn(__fmaf_rn(i, slope, start), PROJECT_MAGIC);
}

/* Two weights as halves, and what they lack. */
__device__ static inline uint32_t project_split(float a, float b, uint32_t *low)
{
    const __half2 h = __floats2half2_rn(a, b);
    const float2 back = __half22float2(h);
    const __half2 l = __floats2half2_rn(a - back.x, b - back.y);
    *low = *(const uint32_t *)&l;
    return *(const uint32_t *)&h;
}

/* Where a tile lies on the strip's middle line. Tiles begin where no window of a strip reaches the
** image. */
__device__ static inline double project_center(const project_block &b, int tile)
{
    return __dadd_rn(-(double)(PROJECT_WINDOW + PROJECT_STRIP / 2), __dmul_rn(tile, b.step));
}

/* The first of a tile's bins at a ray's angle, the tile's middle being at a place of a line. Fused
** as written, so that neighboring tiles agree on where they meet. */
__device__ static inline double project_first(const project_ray &ray, double place, double line)
{
    return rint(fma(place, ray.cross, fma(line, ray.along, ray.offset - PROJECT_HALF)));
}

/* The place on a line of the middle of the bins that begin at `first`. */
__device__ static inline double project_place(const project_ray &ray, double first, double line)
{
    return fma(-line, ray.along, first + PROJECT_HALF - ray.offset) * ray.inverse;
}

/* The tracks and middles of a tile. By all threads; ends with a barrier. */
template <int SIZE>
__device__ static inline void project_prepare(const project_strip &p, const project_block &b,
                                              int tile, project_track *tracks,
                                              project_middle *middles)
{
    const double middle = p.first + p.strip / 2;
    if (threadIdx.x < PROJECT_TOGETHER) {
        project_track lane = {};
        const int k = min((int)threadIdx.x, b.angles - 1);
        const project_ray ray = p.rays[b.first + k];
        /* The first bin of this tile and of the one from which its own end: in the direction of
        ** the bins. */
        double at[2] = {project_center(b, tile),
                        project_center(b, ray.cross > 0 ? tile + 1 : tile - 1)};
        if (SIZE == 2 && k % 2) { /* follows the first of the pair */
            const project_ray other = p.rays[b.first + k - 1];
            for (int i = 0; i < 2; i++)
                at[i] = project_place(other, project_first(other, at[i], middle), middle);
        }
        const double first = project_first(ray, at[0], middle),
                     end = project_first(ray, at[1], middle);
        lane.index = ray.index;
        lane.place = project_place(ray, first, middle);
        lane.inverse = ray.inverse;
        lane.slope = ray.slope;
        lane.first = (int)fmin(fmax(first, -1e9), 1e9);
        lane.low = max(0, lane.first);
        lane.high = (int)fmin(fmax(end, -1e9), (double)p.cols);
        if ((int)threadIdx.x >= b.angles)
            lane.high = lane.low;
        lane.cross = (float)fabs(ray.cross);
        tracks[threadIdx.x] = lane;
    }
    __syncthreads();
    if (threadIdx.x < PROJECT_TOGETHER / SIZE) {
        const project_track *of = tracks + threadIdx.x * SIZE;
        double least = of->place, most = least;
        for (int k = 1; k < SIZE; k++) {
            least = fmin(least, of[k].place);
            most = fmax(most, of[k].place);
        }
        middles[threadIdx.x] = {0.5 * (least + most), 0.5 * (of->inverse + of[SIZE - 1].inverse),
                                0.5 * (of->slope + of[SIZE - 1].slope)};
    }
    __syncthreads();
}

/* Has a chunk of lines anything in the block's window? */
__device__ static inline bool project_sees(const project_strip &p, const project_block &b,
                                           float start, int base, int chunk)
{
    const int q = p.first + chunk * PROJECT_CHUNK, last = q + PROJECT_CHUNK - 1;
    if (q >= p.lines)
        return false;
    const float i = chunk * PROJECT_CHUNK - p.strip / 2, u = fmaf(i, b.slope, start) + base,
                v = fmaf(PROJECT_CHUNK - 1, b.slope, u), middle = 0.5f * (p.across - 1);
    float half = middle;
    if (p.radius2 >= 0) {
        const float center = 0.5f * (p.lines - 1), away = q > center      ? q - center
                                                          : last < center ? center - last
                                                                          : 0.0f;
        half = fminf(half, sqrtf(fmaxf(0.0f, p.radius2 - away * away)));
    }
    return fmaxf(u, v) + PROJECT_WINDOW + 1 >= middle - half - 1 &&
           fminf(u, v) - 1 <= middle + half + 1;
}

/* The block's copies, of chunks in order. */
template <int MT>
struct project_copies {
    uint32_t data, full, empty;
    int chunk0, chunk1; /* the first and the last */
    int base;
    float start; /* of the window, see project_window */

    __device__ void init() const
    {
        if (threadIdx.x > 0)
            return;
        for (int i = 0; i < PROJECT_STAGES; i++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full + 8 * i) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(empty + 8 * i),
                         "r"(PROJECT_WARPS)
                         : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }

    /* Queues the lines of a chunk into its stage, once that is free. By one thread. */
    __device__ void fill(const project_strip &p, const project_block &b, int chunk) const
    {
        typedef project_sizes<MT> sizes;
        const int n = chunk - chunk0, st = n % PROJECT_STAGES, bytes = b.window * sizes::PLACE;
        const uint32_t bar = full + 8 * st;
        if (chunk > chunk1)
            return;
        project_wait(empty + 8 * st, ((n / PROJECT_STAGES) & 1) ^ 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
                     "r"(bytes * PROJECT_CHUNK)
                     : "memory");
        for (int k = 0; k < PROJECT_CHUNK; k++) {
            const int q = chunk * PROJECT_CHUNK + k;
            const uint32_t bits =
                __float_as_uint(project_window((float)(q - p.strip / 2), b.slope, start));
            /* A window outside the line is one of zeros wherever it starts. */
            const int first = (int)(bits - PROJECT_MAGIC_BITS) + base + PROJECT_GUARD,
                      at = min(max(first, 0), p.pitch - PROJECT_WINDOW);
            const uint4 *from = p.packed + ((int64_t)q * p.pitch + at) * sizes::UNITS;
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                         "[%1], %2, [%3];" ::"r"(data + st * sizes::STAGE + k * sizes::LINE),
                         "l"(from), "r"(bytes), "r"(bar)
                         : "memory");
        }
    }
};

/* Adds the sums, rows of bins, to the results. The second-level cache adds, so that no block waits
** for what was there before. It takes numbers below 1.2e-38 for 0. A launch adds to a bin once, and
** launches add in order: a sum has one order. */
template <int MT>
__device__ static inline void project_add_up(const project_strip &p, const project_block &b,
                                             const project_track *tracks, const float *sums)
{
    typedef project_sizes<MT> sizes;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    for (int z = warp; z < p.slices; z += PROJECT_WARPS) {
        const float factor = p.scale * p.half_scale[z].y;
        for (int k = 0; k < b.angles; k++) {
            const project_track &t = tracks[k];
            const int bin = t.first + lane;
            if (bin >= t.low && bin < t.high)
                atomicAdd(p.sino + z * p.sino_z + t.index * p.sino_a + bin,
                          sums[(k * sizes::S + z) * sizes::ROW + lane] * factor);
        }
    }
}

/* MT blocks of 16 slices, NT products of two angles, groups of SIZE angles. */
template <int MT, int NT, int SIZE>
__device__ static inline void project_mma_block(const project_strip &p)
{
    typedef project_sizes<MT> sizes;
    constexpr int UNITS = NT == 2 ? 2 : 4, PLACE = sizes::PLACE;
    constexpr int PER = NT == 2 ? 4 : 2; /* warps of a group of angles */
    extern __shared__ __align__(128) unsigned char memory[];
    const uint32_t data = (uint32_t)__cvta_generic_to_shared(memory), full = data + sizes::BARRIERS,
                   empty = full + PROJECT_STAGES * 8;
    project_track *tracks = (project_track *)(memory + sizes::TRACKS);
    project_middle *middles = (project_middle *)(memory + sizes::MIDDLES);
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const project_block b = p.blocks[blockIdx.x];
    const double center = project_center(b, (int)blockIdx.y);
    const int base = (int)floor(center * 0.125) * 8; /* places count from here */
    const float start = (float)(center - base) - 0.5f * b.window;
    int chunk0 = p.strip / PROJECT_CHUNK, chunk1 = -1;
    for (int i = lane; i < p.strip / PROJECT_CHUNK; i += 32)
        if (project_sees(p, b, start, base, i)) {
            chunk0 = min(chunk0, i);
            chunk1 = max(chunk1, i);
        }
    chunk0 = __reduce_min_sync(~0u, chunk0);
    chunk1 = __reduce_max_sync(~0u, chunk1);
    if (chunk1 < chunk0)
        return; /* the same for all threads */
    project_prepare<SIZE>(p, b, (int)blockIdx.y, tracks, middles);
    bool own = lane < PROJECT_TOGETHER && tracks[lane & (PROJECT_TOGETHER - 1)].low <
                                              tracks[lane & (PROJECT_TOGETHER - 1)].high;
    if (!__any_sync(~0u, own))
        return;
    const project_copies<MT> copy = {data, full, empty, chunk0, chunk1, base, start};
    copy.init();
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 0; i < PROJECT_STAGES - 2; i++)
            copy.fill(p, b, chunk0 + i);

    /* This warp's units: a group and UNITS times 4 bins of its angles. */
    const int group = warp / PER, four0 = warp % PER * UNITS;
    const project_middle m = middles[group];
    const int ray = lane >> 2, bin = ray & 3;
    const float slope = (float)m.slope;
    float c[NT], lead[NT], turn[NT], from[UNITS][NT], at[UNITS];
#pragma unroll
    for (int n = 0; n < NT; n++) {
        /* Of a group of one angle the other rays of the product are 0. */
        const bool none = SIZE == 1 && ray >= 4;
        const project_track &l = tracks[group * SIZE + (SIZE == 1 ? 0 : 2 * n + (ray >> 2))];
        const mb_parallel_shadow shadow = mb_parallel_shadow_of(l.cross, l.cross);
        /* A weight is lead - rise |distance|, from 0 to 1. */
        const float rise = none ? 0 : p.distance ? shadow.inverse : 1.0f;
        lead[n] = none ? 0 : p.distance ? (1.0f - shadow.lead) * shadow.inverse : 1.0f;
        c[n] = l.cross * rise;
        turn[n] = (float)(-(l.slope - m.slope) * l.cross) * rise;
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            const int four = four0 + u;
            const double away =
                fma(PROJECT_HALF - (4 * four + 1.5), m.inverse,
                    fma(4 * four + bin - PROJECT_HALF, l.inverse, l.place - m.place));
            from[u][n] = (float)((2 * (lane & 3) - 3.5 - away) * l.cross) * rise;
        }
    }
#pragma unroll
    for (int u = 0; u < UNITS; u++)
        at[u] = (float)(fma(4 * (four0 + u) + 1.5 - PROJECT_HALF, m.inverse, m.place - base) - 3.5);

    float acc[UNITS][NT][MT][4] = {};
    const int matrix = lane >> 3, row = lane & 7;
    const bool second = matrix >> 1; /* this lane fetches from the second of two lines */
    for (int chunk = chunk0; chunk <= chunk1; chunk++) {
        const int n = chunk - chunk0, st = n % PROJECT_STAGES;
        if (warp == n % PROJECT_WARPS && lane == 0)
            copy.fill(p, b, chunk + PROJECT_STAGES - 2);
        __syncwarp();
        project_wait(full + 8 * st, (n / PROJECT_STAGES) & 1);
#pragma unroll
        for (int step = 0; step < PROJECT_CHUNK / 2; step++) {
            const float i0 = (float)(chunk * PROJECT_CHUNK + 2 * step - p.strip / 2),
                        i1 = i0 + 1.0f;
            const uint32_t window =
                __float_as_uint(project_window(second ? i1 : i0, b.slope, start));
            const uint32_t line = data + st * sizes::STAGE + (2 * step + second) * sizes::LINE +
                                  (row - window) * PLACE;
#pragma unroll
            for (int u = 0; u < UNITS; u++) {
                const float p0 = fmaf(i0, slope, at[u]), p1 = fmaf(i1, slope, at[u]),
                            r0 = p0 + PROJECT_MAGIC, r1 = p1 + PROJECT_MAGIC,
                            f0 = p0 - (r0 - PROJECT_MAGIC), f1 = p1 - (r1 - PROJECT_MAGIC);
                const uint32_t bits = __float_as_uint(second ? r1 : r0),
                               place = line + bits * PLACE,
                               unit = project_key<MT>(bits + row) ^ (matrix & 1);
                uint32_t high[NT][2], low[NT][2];
#pragma unroll
                for (int k = 0; k < NT; k++) {
                    const float x0 = fmaf(-c[k], f0, fmaf(i0, turn[k], from[u][k])),
                                x1 = fmaf(-c[k], f1, fmaf(i1, turn[k], from[u][k]));
                    high[k][0] = project_split(__saturatef(lead[k] - fabsf(x0)),
                                               __saturatef(lead[k] - fabsf(x0 + c[k])), &low[k][0]);
                    high[k][1] = project_split(__saturatef(lead[k] - fabsf(x1)),
                                               __saturatef(lead[k] - fabsf(x1 + c[k])), &low[k][1]);
                }
#pragma unroll
                for (int t = 0; t < MT; t++) {
                    uint32_t v[4], w[4];
                    project_load(v, place + ((unit ^ (2 * t)) << 4));
                    project_load(w, place + ((unit ^ (2 * t) ^ (2 * MT)) << 4));
#pragma unroll
                    for (int k = 0; k < NT; k++)
                        project_mma(acc[u][k][t], v, high[k]);
#pragma unroll
                    for (int k = 0; k < NT; k++)
                        project_mma(acc[u][k][t], v, low[k]);
#pragma unroll
                    for (int k = 0; k < NT; k++)
                        project_mma(acc[u][k][t], w, high[k]);
                }
            }
        }
        __syncwarp();
        if (lane == 0)
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(empty + 8 * st)
                         : "memory");
    }
    __syncthreads();
    /* Through shared memory: rows of bins. */
    float *sums = (float *)memory;
#pragma unroll
    for (int u = 0; u < UNITS; u++)
#pragma unroll
        for (int k = 0; k < NT; k++)
#pragma unroll
            for (int t = 0; t < MT; t++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int of = 2 * (lane & 3) + (e & 1),
                              angle = group * SIZE + 2 * k + (of >> 2),
                              z = t * 16 + (lane >> 2) + (e >> 1) * 8;
                    if (SIZE > 1 || of < 4)
                        sums[(angle * sizes::S + z) * sizes::ROW + 4 * (four0 + u) + (of & 3)] =
                            acc[u][k][t][e];
                }
    __syncthreads();
    mb_wait_before();
    project_add_up<MT>(p, b, tracks, sums);
}
#endif

template <int MT, int NT, int SIZE>
__global__ void __launch_bounds__(32 * PROJECT_WARPS, 1)
    project_mma_kernel(const __grid_constant__ project_strip p)
{
#if PROJECT_ARCH >= 900
    mb_let_next();
    project_mma_block<MT, NT, SIZE>(p);
    /* So that this launch does not end before the one before it. */
    if (blockIdx.x == gridDim.x - 1 && blockIdx.y == gridDim.y - 1)
        mb_wait_before();
#endif
}

/* Blocks along a strip: tiles until none reaches the image. */
static inline int project_tiles(int across)
{
    const double width = across + 2.0 * (PROJECT_WINDOW + PROJECT_STRIP / 2);
    return (int)ceil(width / (PROJECT_TILE - 2.01)) + 1;
}

#endif
