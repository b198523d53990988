/*
** Back-projection through shared memory, for devices with the tensor copy engine (compute capability 9.0 and newer).
**
** A block owns a tile of TX x TY pixels and S slices. Per angle the tile sees a window of at most NB bins; one tensor copy
** brings that window of all S slices into shared memory, NST stages of AS angles ahead of their use. The warps take turns
** at producing: stage it + NST - 2 is filled while stage it is consumed. The map fills zeros for everything outside the
** packed sinogram: bins, padding angles, slices beyond the last.
*/
#ifndef MB_CUDA_BACKPROJECT_STAGED_CUH
#define MB_CUDA_BACKPROJECT_STAGED_CUH

#include "backproject_job.cuh"
#include <cuda.h>

#define BP_SUPER 256 /* tiles are visited in squares of this many pixels, so that blocks in flight share windows in L2 */
#define BP_MAGIC 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer held in the low bits */
#define BP_MAGIC_BITS 0x4B400000u

struct bp_staged_args {
    CUtensorMap map; /* packets as 32-bit words: [group][angle][4 * row] */
    bp_job job;
};

constexpr int bp_ceil_hypot(int a, int b)
{
    int r = 0;
    while (r * r < a * a + b * b)
        r++;
    return r;
}

/* Sizes of the pipeline's parts, shared by kernel and launcher. */
template <int TX, int TY, int CH, int AS, int NST> struct bp_stage_sizes {
    enum {
        LEAD = 1, /* bins before the first: rounding may take the bin below an integer coordinate */
        NB = (bp_ceil_hypot(TX - 1, TY - 1) + 4 + 1) & ~1,
        SLOT = NB * 16,
        ANGLE = SLOT * CH,
        STAGE = ANGLE * AS,
        BYTES = STAGE * NST + NST * AS * 16 + NST * 16 + 128
    };
};

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
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ static inline void bp_barrier_wait(uint32_t bar, int parity)
{
    asm volatile("{\n.reg .pred p;\nAGAIN_%=:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra AGAIN_%=;\n}" ::"r"(bar), "r"(parity) : "memory");
}

__device__ static inline void bp_tensor_copy(uint32_t to, const CUtensorMap *map, int word, int angle, int group, uint32_t bar)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2,%3,%4}], [%5];" ::"r"(to), "l"(map), "r"(word), "r"(angle), "r"(group), "r"(bar)
                 : "memory");
}

__device__ static inline uint4 bp_shared_load(uint32_t at)
{
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at));
    return v;
}

template <int TX, int TY, int CH, int AS, int NST> struct bp_stream {
    typedef bp_stage_sizes<TX, TY, CH, AS, NST> size;
    uint32_t data, table, full, empty;
    int x0, y0, group, angles, bins;

    __device__ void init(int consumers)
    {
        extern __shared__ __align__(128) unsigned char memory[];
        data = bp_shared_address(memory);
        table = data + size::STAGE * NST;
        full = table + NST * AS * 16;
        empty = full + NST * 8;
        if (threadIdx.x == 0) {
            for (int i = 0; i < NST; i++) {
                bp_barrier_init(full + 8 * i, 32);
                bp_barrier_init(empty + 8 * i, consumers);
            }
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncthreads();
    }

    /* By one whole warp: waits until the stage is free, then queues AS windows and writes their table entries. */
    __device__ void fill(const bp_staged_args &p, int it)
    {
        const int a0 = it * AS, st = it % NST, lane = threadIdx.x & 31;
        if (a0 >= angles)
            return;
        bp_barrier_wait(empty + 8 * st, ((it / NST) & 1) ^ 1);
        int start = 0;
        if (lane < AS) {
            mb_parallel_angle t = {0.0, 1.0, 0.0}; /* padding: the window is all zeros, the direction must be finite */
            if (a0 + lane < angles)
                t = p.job.angles[a0 + lane];
            double u = bp_coordinate(p.job, t, x0, y0);
            double first = floor(u + fmin(0.0, (TX - 1) * t.cosine) + fmin(0.0, -(TY - 1) * t.sine)) - size::LEAD;
            /* A window wholly outside the detector is all zeros wherever it starts. */
            start = (int)fmin(fmax(first, -(double)(size::NB + 8)), (double)(bins + 8));
            asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(table + (st * AS + lane) * 16), "f"((float)t.cosine),
                         "f"((float)-t.sine), "f"((float)(u - first)), "f"(0.0f)
                         : "memory");
        }
        if (lane == 0)
            bp_barrier_expect(full + 8 * st, size::STAGE);
        if (lane < AS)
            bp_tensor_copy(data + st * size::STAGE + lane * size::ANGLE, &p.map, (BP_GUARD + start) * 4, a0 + lane, group,
                           full + 8 * st);
        if (lane)
            bp_barrier_arrive(full + 8 * st);
        __syncwarp();
    }

    __device__ void begin(const bp_staged_args &p, int it, int warp, int warps)
    {
        if (it == 0 && warp == 0)
            for (int i = 0; i < NST - 2; i++)
                fill(p, i);
        if (warp == it % warps)
            fill(p, it + NST - 2);
        bp_barrier_wait(full + 8 * (it % NST), (it / NST) & 1);
    }

    __device__ void end(int it)
    {
        __syncwarp();
        if ((threadIdx.x & 31) == 0)
            bp_barrier_arrive(empty + 8 * (it % NST));
    }
};
#endif

template <bool HALF, int S, int TX, int TY, int AS, int NST, int MINB>
__global__ void __launch_bounds__(TX *TY, MINB) bp_staged(const __grid_constant__ bp_staged_args p)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    constexpr int C = HALF ? 8 : 4, CH = S / C;
    typedef bp_stage_sizes<TX, TY, CH, AS, NST> size;
    const int per_row = BP_SUPER / TX, per = per_row * (BP_SUPER / TY);
    const int supers_x = (p.job.nx + BP_SUPER - 1) / BP_SUPER, supers_y = (p.job.ny + BP_SUPER - 1) / BP_SUPER;
    const int tiles = supers_x * supers_y * per, tile = blockIdx.x % tiles, super = tile / per, inner = tile % per;
    const int z0 = (blockIdx.x / tiles) * S;
    bp_stream<TX, TY, CH, AS, NST> s;
    s.x0 = (super % supers_x) * BP_SUPER + (inner % per_row) * TX;
    s.y0 = (super / supers_x) * BP_SUPER + (inner / per_row) * TY;
    s.group = z0 / C;
    s.angles = p.job.n_angles;
    s.bins = p.job.bins;
    if (s.x0 >= p.job.nx || s.y0 >= p.job.ny)
        return;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int px = (warp % (TX / 8)) * 8 + (lane & 7), py = (warp / (TX / 8)) * 4 + (lane >> 3);
    float sum[S] = {};
    if (!bp_tile_masked(p.job, s.x0, s.y0, TX, TY)) {
        s.init(TX * TY / 32);
        for (int it = 0; it * AS < s.angles; it++) {
            s.begin(p, it, warp, TX * TY / 32);
            const int st = it % NST;
#pragma unroll 2
            for (int j = 0; j < AS; j++) {
                uint4 t = bp_shared_load(s.table + (st * AS + j) * 16);
                float u = fmaf((float)px, __uint_as_float(t.x), fmaf((float)py, __uint_as_float(t.y), __uint_as_float(t.z)));
                float r = (u - 0.5f) + BP_MAGIC, f = u - (r - BP_MAGIC);
                uint32_t at = s.data + st * size::STAGE + j * size::ANGLE - BP_MAGIC_BITS * 16u + __float_as_uint(r) * 16u;
#pragma unroll
                for (int c = 0; c < CH; c++)
                    bp_add<HALF>(sum + C * c, bp_shared_load(at + c * size::SLOT), bp_shared_load(at + c * size::SLOT + 16), f);
            }
            s.end(it);
        }
    }
    const int x = s.x0 + px, y = s.y0 + py;
    if (x >= p.job.nx || y >= p.job.ny)
        return;
    const float scale = HALF ? p.job.scale * p.job.half_scale->y : p.job.scale;
    const bool masked = bp_masked(p.job, x, y);
#pragma unroll
    for (int k = 0; k < S; k++)
        bp_store(p.job, z0 + k, y, x, masked ? p.job.outside : sum[k] * scale);
#endif
}

/* ---- host side -------------------------------------------------------------------------------------------------- */

typedef CUresult (*bp_encode_function)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                                       const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                                       CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

extern "C" void *mb_cuda_driver_function(const char *name);

/* Can this device and driver, and this size, take the staged path? */
static bool bp_staged_possible(const mb_op_call *call, const bp_job &job)
{
    /* Coordinates of a map are 32-bit words. */
    return call->device->facts.compute_capability >= 90 && (int64_t)job.row * 4 < 0x7fff0000 &&
           mb_cuda_driver_function("cuTensorMapEncodeTiled") != NULL;
}

template <bool HALF, int S, int TX, int TY, int AS, int NST, int MINB>
static mb_status bp_staged_run(const bp_job &job, int first, int slices, cudaStream_t stream)
{
    constexpr int C = HALF ? 8 : 4;
    typedef bp_stage_sizes<TX, TY, S / C, AS, NST> size;
    bp_encode_function encode = (bp_encode_function)mb_cuda_driver_function("cuTensorMapEncodeTiled");
    bp_staged_args args;
    args.job = job;
    args.job.packets = job.packets + first / C * job.plane;
    args.job.image = job.image + first * job.stride_z;
    args.job.slices = slices;
    const cuuint64_t dims[3] = {(cuuint64_t)job.row * 4, (cuuint64_t)job.n_angles, (cuuint64_t)((slices + C - 1) / C)};
    const cuuint64_t strides[2] = {(cuuint64_t)job.row * 16, (cuuint64_t)job.plane * 16};
    const cuuint32_t box[3] = {(cuuint32_t)size::NB * 4, 1, (cuuint32_t)(S / C)}, step[3] = {1, 1, 1};
    CUresult result = encode(&args.map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 3, (void *)args.job.packets, dims, strides, box, step,
                             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        return mb_cuda_core->fail(MB_STATUS_DEVICE, NULL, "the driver refused a tensor map (%d) for %d bins and %d angles",
                                  (int)result, job.bins, job.n_angles);
    auto kernel = bp_staged<HALF, S, TX, TY, AS, NST, MINB>;
    MB_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, size::BYTES));
    const int64_t supers = (int64_t)((job.nx + BP_SUPER - 1) / BP_SUPER) * ((job.ny + BP_SUPER - 1) / BP_SUPER);
    const int64_t blocks = supers * (BP_SUPER / TX) * (BP_SUPER / TY) * ((slices + S - 1) / S);
    kernel<<<(unsigned)blocks, TX * TY, size::BYTES, stream>>>(args);
    MB_LAUNCHED("bp_staged");
    return MB_STATUS_OK;
}

/* Float packets: blocks of 16 slices, and smaller ones for the rest. */
static mb_status bp_staged_exact(const bp_job &job, cudaStream_t stream)
{
    const int main_part = job.slices / 16 * 16, rest = job.slices - main_part;
    if (main_part)
        MB_TRY((bp_staged_run<false, 16, 32, 16, 4, 4, 2>(job, 0, main_part, stream)));
    if (rest > 8)
        return bp_staged_run<false, 16, 32, 16, 4, 4, 2>(job, main_part, rest, stream);
    if (rest > 4)
        return bp_staged_run<false, 8, 32, 16, 4, 4, 2>(job, main_part, rest, stream);
    if (rest)
        return bp_staged_run<false, 4, 32, 16, 8, 4, 2>(job, main_part, rest, stream);
    return MB_STATUS_OK;
}

/* Half packets: blocks of 64 slices, and smaller ones for the rest. */
static mb_status bp_staged_fast(const bp_job &job, cudaStream_t stream)
{
    const int main_part = job.slices / 64 * 64, rest = job.slices - main_part;
    if (main_part)
        MB_TRY((bp_staged_run<true, 64, 32, 16, 4, 4, 1>(job, 0, main_part, stream)));
    if (rest > 32)
        return bp_staged_run<true, 64, 32, 16, 4, 4, 1>(job, main_part, rest, stream);
    if (rest > 16)
        return bp_staged_run<true, 32, 32, 16, 4, 4, 2>(job, main_part, rest, stream);
    if (rest > 8)
        return bp_staged_run<true, 16, 32, 16, 4, 4, 2>(job, main_part, rest, stream);
    if (rest)
        return bp_staged_run<true, 8, 32, 16, 8, 4, 2>(job, main_part, rest, stream);
    return MB_STATUS_OK;
}

#endif
