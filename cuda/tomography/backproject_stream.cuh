/*
** The pipeline under the back-projectors of packed slices: detector windows on their way
** into shared memory.
**
** A block owns a tile of TX x TY pixels and CH groups of slices. Per angle the tile sees a window
** of at most NB bins. That window of all groups (and of both planes of the split layout) is brought
** into shared memory, NST stages of AS angles ahead of their use. The warps take turns at
** producing: stage it + NST - 2 is filled while stage it is consumed. There are two ways to copy,
** and the kernels above do not know which:
**   bp_maps   one instruction of the tensor copy engine an angle (compute capability 9.0 and newer).
**             The map fills zeros for everything outside the packed sinogram: bins, padding angles,
**             slices beyond the last.
**   bp_lanes  asynchronous copies of one packet a lane (8.0 and newer). Bins outside come from the
**             zero guards; slices beyond the last group repeat it, and are not stored. Stages fit
**             the least shared memory that these devices have, or (bp_lanes_deep) the most.
** Both leave the same numbers where results depend on them, so results agree bit by bit.
**
** A stage lies as [angle][group][plane][bin] of 16-byte packets. A tensor copy must land on a
** multiple of 128 bytes; beyond that there is no padding and no swizzle, because any 8 consecutive
** bins are 128 contiguous bytes, free of bank conflicts.
*/
#ifndef MB_CUDA_BACKPROJECT_STREAM_CUH
#define MB_CUDA_BACKPROJECT_STREAM_CUH

#include "tomography/backproject_job.cuh"
#include <cuda.h>

/* Tiles are visited in squares of this many pixels: blocks in flight share windows in L2. */
#define BP_SUPER 256
/* Where interpolation is linear in the coordinate itself (backproject_single.cuh), packets of an
** angle form two lines: bins count from the nearest odd multiple of BP_ORIGIN in the first, from
** the nearest even one in the second, and a window takes the line in which it lies between two even
** multiples, or two odd ones. */
#define BP_ORIGIN 64
/* 1.5 * 2^23: adding it rounds to an integer held in the low bits. */
#define BP_MAGIC 12582912.0f
#define BP_MAGIC_BITS 0x4B400000u

/* The architecture compiled for; the host's pass only parses device code. */
#ifdef __CUDA_ARCH__
#define BP_ARCH __CUDA_ARCH__
#else
#define BP_ARCH 900
#endif

/* The ways to copy: the first architecture that has it, the shared memory of a multiprocessor, of
** which every block takes 1 KiB for itself, and whether a tensor map is used. */
struct bp_maps {
    enum { ARCH = 900, ROOM = 228 << 10, MAP = true };
};
struct bp_lanes { /* on any device: 8.6 and 8.9 have the least */
    enum { ARCH = 800, ROOM = 100 << 10, MAP = false };
};
struct bp_lanes_deep { /* where a block can have more */
    enum { ARCH = 800, ROOM = 164 << 10, MAP = false };
};

struct bp_stream_args {
    CUtensorMap map; /* bp_maps: packets as 32-bit words, [group][plane][angle][4 * row] */
    bp_job job;
};

constexpr int bp_ceil_hypot(int a, int b)
{
    int r = 0;
    while (r * r < a * a + b * b)
        r++;
    return r;
}

/* `bins` rounded up so that a window of so many rows of packets fills whole lines of 128 bytes;
** even in any case. */
constexpr int bp_round_bins(int bins, int rows)
{
    int step = 2;
    while (step * rows % 8)
        step++;
    return (bins + step - 1) / step * step;
}

/* The window of one angle: CH groups of PLANES planes of NB packets of BINS bins. LEAD: bins before
** the one under the tile's first pixel; SPAN: bins in all beyond the tile's diagonal. COUNTED: by
** BP_ORIGIN. */
template <int TX, int TY, int LEAD_, int SPAN, int CH, int PLANES_, int BINS_ = 1,
          bool COUNTED_ = false>
struct bp_window_sizes {
    enum {
        WIDTH = TX,
        HEIGHT = TY,
        LEAD = LEAD_,
        GROUPS = CH,
        PLANES = PLANES_,
        BINS = BINS_,
        COUNTED = COUNTED_,
        LINES = COUNTED ? 2 : 1, /* of an angle */
        ROWS = CH * PLANES,
        WIDE = bp_ceil_hypot(TX - 1, TY - 1) + SPAN, /* bins that are wanted */
        NB = bp_round_bins((WIDE + 2 * (BINS - 1)) / BINS, ROWS),
        SLOT = NB * 16,
        GROUP = SLOT * PLANES,
        ANGLE = GROUP * CH
    };
    static_assert(ANGLE % 128 == 0, "a copy must land on a multiple of 128 bytes");
    static_assert(NB * 4 <= 256, "a side of a tensor copy has at most 256 elements");
};

/* NST stages of AS windows, for blocks of which MINB share a multiprocessor. Where the way to copy
** has not the room for three stages, they are of 4 angles. */
template <class window, class way, int AS_, int NST_, int MINB>
struct bp_stage_sizes : window {
    enum {
        MOST = way::ROOM / MINB - 1024,
        SHORT = 3 * AS_ * (window::ANGLE + 16) + 3 * 16 > MOST,
        AS = SHORT ? 4 : AS_,
        STAGE = window::ANGLE * AS,
        FIT = MOST / (STAGE + AS * 16 + 16),
        WANT = SHORT && NST_ < 4 ? 4 : NST_,
        NST = FIT < WANT ? FIT : WANT,
        BYTES = NST * (STAGE + AS * 16 + 16)
    };
    static_assert(AS <= 32, "one lane per angle of a stage");
    static_assert(NST >= 3, "a stage in use, one on its way, one being filled");
};

/* First pixel of this block's tile and the number of its block of slices; false when the tile lies
** outside the region. */
template <int TX, int TY>
__device__ static inline bool bp_tile_of(const bp_job &job, int *x0, int *y0, int *block)
{
    const int per_row = BP_SUPER / TX, per = per_row * (BP_SUPER / TY);
    const int supers_x = (job.nx + BP_SUPER - 1) / BP_SUPER;
    const int supers_y = (job.ny + BP_SUPER - 1) / BP_SUPER;
    const int tiles = supers_x * supers_y * per, tile = blockIdx.x % tiles;
    const int super = tile / per, inner = tile % per;
    *block = blockIdx.x / tiles;
    *x0 = (super % supers_x) * BP_SUPER + (inner % per_row) * TX;
    *y0 = (super / supers_x) * BP_SUPER + (inner / per_row) * TY;
    return *x0 < job.nx && *y0 < job.ny;
}

#if BP_ARCH >= 800

__device__ static inline uint32_t bp_shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ static inline void bp_barrier_init(uint32_t bar, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ static inline void bp_barrier_arrive(uint32_t bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ static inline void bp_barrier_expect(uint32_t bar, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
                 : "memory");
}

__device__ static inline void bp_barrier_wait(uint32_t bar, int parity)
{
#if BP_ARCH >= 900
#define BP_TRY "try_wait" /* sleeps a while */
#else
#define BP_TRY "test_wait"
#endif
    asm volatile("{\n.reg .pred p;\nAGAIN_%=:\n"
                 "mbarrier." BP_TRY ".parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra AGAIN_%=;\n}" ::"r"(bar),
                 "r"(parity)
                 : "memory");
}

__device__ static inline void bp_tensor_copy(uint32_t to, const CUtensorMap *map, int word,
                                             int angle, int group, uint32_t bar)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2,%3,%4,%5}], [%6];" ::"r"(to),
                 "l"(map), "r"(word), "r"(angle), "r"(0), "r"(group), "r"(bar)
                 : "memory");
}

__device__ static inline void bp_lane_copy(uint32_t to, const uint4 *from)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from)
                 : "memory");
}

/* Arrives once this lane's copies are there. */
__device__ static inline void bp_barrier_arrive_copied(uint32_t bar)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

__device__ static inline uint4 bp_shared_load(uint32_t at)
{
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at));
    return v;
}

__device__ static inline float4 bp_shared_load_float(uint32_t at)
{
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(at));
    return v;
}

__device__ static inline void bp_shared_store(uint32_t at, float x, float y, float z, float w)
{
    asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(at), "f"(x), "f"(y), "f"(z), "f"(w)
                 : "memory");
}

template <class size, class way>
struct bp_stream {
    uint32_t data, table, full, empty;
    int x0, y0, group, angles;
    int ends; /* packets of a line without its guards */

    __device__ void init(int consumers)
    {
        extern __shared__ __align__(128) unsigned char memory[];
        data = bp_shared_address(memory);
        table = data + size::STAGE * size::NST;
        full = table + size::NST * size::AS * 16;
        empty = full + size::NST * 8;
        if (threadIdx.x == 0) {
            for (int i = 0; i < size::NST; i++) {
                bp_barrier_init(full + 8 * i, way::MAP ? 32 : 64);
                bp_barrier_init(empty + 8 * i, consumers);
            }
            if constexpr (way::MAP)
                asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncthreads();
    }

    /* The first packet of a window whose tile's first pixel lies at u. Writes the table's entry:
    ** cosine, minus sine, that pixel in bins of the window. COUNTED: which line of its angle it is;
    ** the pixel from the middle of the bin that the line counts from, and how many bytes that bin
    ** lies behind the window's first. */
    __device__ int place(const mb_parallel_angle &t, double u, uint32_t entry, int *second)
    {
        const double left = fmin(0.0, (size::WIDTH - 1) * t.cosine);
        const double above = fmin(0.0, -(size::HEIGHT - 1) * t.sine);
        const double first = floor(u + (left + above)) - size::LEAD;
        double packet = first;
        if constexpr (!size::COUNTED) {
            bp_shared_store(entry, (float)t.cosine, (float)-t.sine, (float)(u - first), 0.0f);
        } else {
            const double half = floor(first * (1.0 / BP_ORIGIN)), origin = (half + 1) * BP_ORIGIN;
            packet = floor(first * (1.0 / size::BINS));
            *second = half != 2 * floor(0.5 * half);
            bp_shared_store(
                entry, (float)t.cosine, (float)-t.sine, (float)(u - origin - 0.5),
                __int_as_float((int)(origin - size::BINS * packet) * (16 / size::BINS)));
        }
        /* A window wholly outside the detector is all zeros wherever it starts. */
        return (int)fmin(fmax(packet, -(double)(size::NB + 8)), (double)(ends + 8));
    }

    /* By one whole warp: waits until the stage is free, then queues AS windows and writes their
    ** table entries. */
    __device__ void fill(const bp_stream_args &p, int it)
    {
        const int a0 = it * size::AS, st = it % size::NST, lane = threadIdx.x & 31;
        if (a0 >= angles)
            return;
        bp_barrier_wait(empty + 8 * st, ((it / size::NST) & 1) ^ 1);
        int start = 0, second = 0;
        if (lane < size::AS) {
            mb_parallel_angle t = {0.0, 1.0, 0.0}; /* padding: a window of zeros, any direction */
            if (a0 + lane < angles)
                t = p.job.angles[a0 + lane];
            start = place(t, bp_coordinate(p.job, t, x0, y0), table + (st * size::AS + lane) * 16,
                          &second);
        }
        if constexpr (way::MAP) {
            if (lane == 0)
                bp_barrier_expect(full + 8 * st, size::STAGE);
            if (lane < size::AS)
                bp_tensor_copy(data + st * size::STAGE + lane * size::ANGLE, &p.map,
                               (BP_GUARD + start) * 4, size::LINES * (a0 + lane) + second, group,
                               full + 8 * st);
            if (lane)
                bp_barrier_arrive(full + 8 * st);
        } else {
            copy_by_lanes(p.job, a0, start, second, data + st * size::STAGE);
            bp_barrier_arrive_copied(full + 8 * st);
            bp_barrier_arrive(full + 8 * st); /* the table is written */
        }
        __syncwarp();
    }

    /* Windows that begin at packet `start` of this lane's line; zeros for padding angles. */
    __device__ void copy_by_lanes(const bp_job &job, int a0, int start, int second, uint32_t to)
    {
        const int lane = threadIdx.x & 31;
        const int angle = min(a0 + lane, angles - 1);
        const int line = (size::LINES * angle + second) * job.row + BP_GUARD; /* see bp_way_of */
        int first[size::AS], lines[size::AS];
#pragma unroll
        for (int j = 0; j < size::AS; j++) {
            first[j] = __shfl_sync(~0u, a0 + lane < angles ? start : ends, j);
            lines[j] = __shfl_sync(~0u, line, j);
        }
#pragma unroll 1
        for (int i = lane; i < size::ROWS * size::NB; i += 32) {
            const int row = i / size::NB, bin = i % size::NB;
            const int64_t g = min(group + row / size::PLANES, job.groups - 1);
            const uint4 *from =
                job.packets + g * job.plane + (row % size::PLANES ? job.low_plane : 0);
#pragma unroll
            for (int j = 0; j < size::AS; j++)
                bp_lane_copy(to + j * size::ANGLE + i * 16,
                             from + (lines[j] + max(-BP_GUARD, min(ends, first[j] + bin))));
        }
    }

    /* Waits for stage `it`; the warp whose turn it is first fills ahead. */
    __device__ void begin(const bp_stream_args &p, int it, int warp, int warps)
    {
        if (it == 0 && warp == 0)
            for (int i = 0; i < size::NST - 2; i++)
                fill(p, i);
        if (warp == it % warps)
            fill(p, it + size::NST - 2);
        bp_barrier_wait(full + 8 * (it % size::NST), (it / size::NST) & 1);
    }

    __device__ void end(int it)
    {
        __syncwarp();
        if ((threadIdx.x & 31) == 0)
            bp_barrier_arrive(empty + 8 * (it % size::NST));
    }
};
#endif

/* ---- host side ---- */

typedef CUresult (*bp_encode_function)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                                       const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                                       const cuuint32_t *, CUtensorMapInterleave,
                                       CUtensorMapSwizzle, CUtensorMapL2promotion,
                                       CUtensorMapFloatOOBfill);

enum bp_way { BP_BY_LOADS, BP_BY_LANES, BP_BY_LANES_DEEP, BP_BY_MAPS };

/* The best way of copying that this device, the driver and this size allow; BP_BY_LOADS: none, the
** kernels above the pipeline cannot be used. */
static bp_way bp_way_of(const mb_op_call *call, const bp_job &job)
{
    const mb_device_facts *facts = &call->device->facts;
    /* Coordinates of a map are 32-bit words, its strides have 40 bits. */
    if (facts->compute_capability >= 90 && (int64_t)job.row * 4 < 0x7fff0000 &&
        job.plane < (INT64_C(1) << 34) && mb_cuda_driver_function("cuTensorMapEncodeTiled") != NULL)
        return BP_BY_MAPS;
    /* The packets of a plane, which lanes count in 32 bits, are within op_backproject.h's
    ** limits. */
    if (facts->compute_capability < 80)
        return BP_BY_LOADS;
    return facts->block_shared_bytes < bp_lanes_deep::ROOM - 1024 ? BP_BY_LANES : BP_BY_LANES_DEEP;
}

/* The packets as a tensor. */
template <class size>
static mb_status bp_encode_map(const bp_job &job, CUtensorMap *map)
{
    bp_encode_function encode =
        (bp_encode_function)mb_cuda_driver_function("cuTensorMapEncodeTiled");
    /* Of one plane: any stride that is legal. */
    const cuuint64_t low = job.low_plane ? job.low_plane : job.plane;
    const cuuint64_t dims[4] = {(cuuint64_t)job.row * 4, (cuuint64_t)job.n_angles * size::LINES,
                                size::PLANES, (cuuint64_t)job.groups};
    const cuuint64_t strides[3] = {(cuuint64_t)job.row * 16, low * 16, (cuuint64_t)job.plane * 16};
    const cuuint32_t box[4] = {size::NB * 4, 1, size::PLANES, size::GROUPS}, step[4] = {1, 1, 1, 1};
    CUresult result =
        encode(map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 4, (void *)job.packets, dims, strides, box,
               step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        return mb_cuda_core->fail(MB_STATUS_INTERNAL, NULL,
                                  "the driver refused a tensor map (%d) for %d bins and %d angles",
                                  (int)result, job.bins, job.n_angles);
    return MB_STATUS_OK;
}

/* Launches `kernel`, whose blocks take S slices each, over all slices of the job. */
template <class size, class way, int S>
static mb_status bp_stream_launch(void (*kernel)(bp_stream_args), int threads, const bp_job &job,
                                  cudaStream_t stream)
{
    bp_stream_args args;
    args.job = job;
    if (way::MAP)
        MB_TRY(bp_encode_map<size>(job, &args.map));
    MB_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, size::BYTES));
    const int64_t supers_x = (job.nx + BP_SUPER - 1) / BP_SUPER;
    const int64_t supers_y = (job.ny + BP_SUPER - 1) / BP_SUPER;
    const int64_t tiles =
        supers_x * supers_y * (BP_SUPER / size::WIDTH) * (BP_SUPER / size::HEIGHT);
    const int64_t blocks = tiles * ((job.slices + S - 1) / S);
    if (blocks > INT32_MAX)
        return mb_cuda_core->fail(MB_STATUS_UNSUPPORTED, NULL,
                                  "backproject on CUDA: an extent is too large");
    kernel<<<(unsigned)blocks, threads, size::BYTES, stream>>>(args);
    return MB_LAUNCH_STATUS("a back-projection kernel");
}

#endif
