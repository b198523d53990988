/*
** The pipeline under the staged and the tensor-core back-projectors: detector windows on their way
** into shared memory, for devices with the tensor copy engine (compute capability 9.0 and newer).
**
** A block owns a tile of TX x TY pixels and CH groups of slices. Per angle the tile sees a window
** of at most NB bins; one tensor copy brings that window of all groups (and of both planes of the
** split layout) into shared memory, NST stages of AS angles ahead of their use. The warps take
** turns at producing: stage it + NST - 2 is filled while stage it is consumed. The map fills zeros
** for everything outside the packed sinogram: bins, padding angles, slices beyond the last.
**
** A stage lies as [angle][group][plane][bin] of 16-byte packets. A copy must land on a multiple of
** 128 bytes; beyond that there is no padding and no swizzle, because any 8 consecutive bins are 128
** contiguous bytes, free of bank conflicts.
*/
#ifndef MB_CUDA_BACKPROJECT_STREAM_CUH
#define MB_CUDA_BACKPROJECT_STREAM_CUH

#include "backproject_job.cuh"
#include <cuda.h>

/* Tiles are visited in squares of this many pixels: blocks in flight share windows in L2. */
#define BP_SUPER 256
/* 1.5 * 2^23: adding it rounds to an integer held in the low bits. */
#define BP_MAGIC 12582912.0f
#define BP_MAGIC_BITS 0x4B400000u

struct bp_stream_args {
    CUtensorMap map; /* packets as 32-bit words: [group][plane][angle][4 * row] */
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

/* Sizes of the pipeline's parts, shared by kernel and launcher. LEAD: bins before the one under the
** first pixel; SPAN: bins in all beyond the tile's diagonal. */
template <int TX, int TY, int LEAD_, int SPAN, int CH, int PLANES_, int AS_, int NST_>
struct bp_stage_sizes {
    enum {
        WIDTH = TX,
        HEIGHT = TY,
        LEAD = LEAD_,
        GROUPS = CH,
        PLANES = PLANES_,
        AS = AS_,
        NST = NST_,
        ROWS = CH * PLANES,
        NB = bp_round_bins(bp_ceil_hypot(TX - 1, TY - 1) + SPAN, ROWS),
        SLOT = NB * 16,
        GROUP = SLOT * PLANES,
        ANGLE = GROUP * CH,
        STAGE = ANGLE * AS,
        BYTES = STAGE * NST + NST * AS * 16 + NST * 16
    };
    static_assert(ANGLE % 128 == 0, "a copy must land on a multiple of 128 bytes");
    static_assert(NB * 4 <= 256, "a side of a tensor copy has at most 256 elements");
    static_assert(AS <= 32, "one lane per angle of a stage");
    static_assert(BYTES <= 227 * 1024, "more shared memory than a block can have");
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

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

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
    asm volatile("{\n.reg .pred p;\nAGAIN_%=:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
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

__device__ static inline void bp_shared_store(uint32_t at, float x, float y, float z)
{
    asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(at), "f"(x), "f"(y), "f"(z),
                 "f"(0.0f)
                 : "memory");
}

template <class size>
struct bp_stream {
    uint32_t data, table, full, empty;
    int x0, y0, group, angles, bins;

    __device__ void init(int consumers)
    {
        extern __shared__ __align__(128) unsigned char memory[];
        data = bp_shared_address(memory);
        table = data + size::STAGE * size::NST;
        full = table + size::NST * size::AS * 16;
        empty = full + size::NST * 8;
        if (threadIdx.x == 0) {
            for (int i = 0; i < size::NST; i++) {
                bp_barrier_init(full + 8 * i, 32);
                bp_barrier_init(empty + 8 * i, consumers);
            }
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncthreads();
    }

    /* By one whole warp: waits until the stage is free, then queues AS windows and writes their
    ** table entries: cosine, minus sine, the tile's first pixel in bins of its window. */
    __device__ void fill(const bp_stream_args &p, int it)
    {
        const int a0 = it * size::AS, st = it % size::NST, lane = threadIdx.x & 31;
        if (a0 >= angles)
            return;
        bp_barrier_wait(empty + 8 * st, ((it / size::NST) & 1) ^ 1);
        int start = 0;
        if (lane < size::AS) {
            mb_parallel_angle t = {0.0, 1.0, 0.0}; /* padding: a window of zeros, any direction */
            if (a0 + lane < angles)
                t = p.job.angles[a0 + lane];
            double u = bp_coordinate(p.job, t, x0, y0);
            double left = fmin(0.0, (size::WIDTH - 1) * t.cosine);
            double above = fmin(0.0, -(size::HEIGHT - 1) * t.sine);
            double first = floor(u + (left + above)) - size::LEAD;
            /* A window wholly outside the detector is all zeros wherever it starts. */
            start = (int)fmin(fmax(first, -(double)(size::NB + 8)), (double)(bins + 8));
            bp_shared_store(table + (st * size::AS + lane) * 16, (float)t.cosine, (float)-t.sine,
                            (float)(u - first));
        }
        if (lane == 0)
            bp_barrier_expect(full + 8 * st, size::STAGE);
        if (lane < size::AS)
            bp_tensor_copy(data + st * size::STAGE + lane * size::ANGLE, &p.map,
                           (BP_GUARD + start) * 4, a0 + lane, group, full + 8 * st);
        if (lane)
            bp_barrier_arrive(full + 8 * st);
        __syncwarp();
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

/* ---- host side --------------------------------------------------------------------------- */

typedef CUresult (*bp_encode_function)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                                       const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                                       const cuuint32_t *, CUtensorMapInterleave,
                                       CUtensorMapSwizzle, CUtensorMapL2promotion,
                                       CUtensorMapFloatOOBfill);

extern "C" void *mb_cuda_driver_function(const char *name);

/* Can this device and driver, and this size, take the kernels above this pipeline? */
static bool bp_stream_possible(const mb_op_call *call, const bp_job &job)
{
    /* Coordinates of a map are 32-bit words, its strides have 40 bits. */
    return call->device->facts.compute_capability >= 90 && (int64_t)job.row * 4 < 0x7fff0000 &&
           job.plane < (INT64_C(1) << 34) &&
           mb_cuda_driver_function("cuTensorMapEncodeTiled") != NULL;
}

/* Launches `kernel`, whose blocks take S slices each, over all slices of the job. */
template <class size, int S>
static mb_status bp_stream_launch(void (*kernel)(bp_stream_args), int threads, const bp_job &job,
                                  cudaStream_t stream)
{
    constexpr int C = S / size::GROUPS;
    bp_encode_function encode =
        (bp_encode_function)mb_cuda_driver_function("cuTensorMapEncodeTiled");
    bp_stream_args args;
    args.job = job;
    /* Of one plane: any stride that is legal. */
    const cuuint64_t low = job.low_plane ? job.low_plane : job.plane;
    const cuuint64_t dims[4] = {(cuuint64_t)job.row * 4, (cuuint64_t)job.n_angles, size::PLANES,
                                (cuuint64_t)((job.slices + C - 1) / C)};
    const cuuint64_t strides[3] = {(cuuint64_t)job.row * 16, low * 16, (cuuint64_t)job.plane * 16};
    const cuuint32_t box[4] = {size::NB * 4, 1, size::PLANES, size::GROUPS}, step[4] = {1, 1, 1, 1};
    CUresult result =
        encode(&args.map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 4, (void *)job.packets, dims, strides,
               box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        return mb_cuda_core->fail(MB_STATUS_DEVICE, NULL,
                                  "the driver refused a tensor map (%d) for %d bins and %d angles",
                                  (int)result, job.bins, job.n_angles);
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
    MB_LAUNCHED("a back-projection kernel");
    return MB_STATUS_OK;
}

#endif
