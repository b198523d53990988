/*
** project through the tensor cores: packs strips of lines of up to 64 slices as halves, high and
** low, and runs the kernels of project_mma.cuh over them, strip after strip.
*/
#ifndef MB_CUDA_PROJECT_SPLIT_CUH
#define MB_CUDA_PROJECT_SPLIT_CUH

#include "shared/cuda_launch.cuh"
#include "tomography/project_mma.cuh"

#define PROJECT_PACK_X 32 /* pixels of a tile of the packing kernel */
#define PROJECT_PACK_Y 8

struct project_source {
    const float *data; /* of the first slice */
    int64_t stride_z, stride_y;
    mb_parallel_geometry geometry;
    int slices;
};

/* Largest finite magnitude inside the mask of each slice, as the bits of a float: for values >= 0
** those order as the values do, so that the result does not depend on the order of the atomics.
** Grid: rows, slices. */
__global__ void __launch_bounds__(MB_THREADS)
    project_largest(const __grid_constant__ project_source src, unsigned *bits)
{
    const mb_parallel_geometry &g = src.geometry;
    float most = 0;
    for (int64_t y = blockIdx.x; y < g.ny; y += gridDim.x) {
        const float *line = src.data + blockIdx.y * src.stride_z + y * src.stride_y;
        for (int64_t x = threadIdx.x; x < g.nx; x += MB_THREADS) {
            const float v = mb_parallel_inside(&g, y, x) ? fabsf(line[x]) : 0.0f;
            most = v <= 3.402823466e38f ? fmaxf(most, v) : most;
        }
    }
    most = mb_block_fold(most, mb_fold_max());
    if (threadIdx.x == 0 && most > 0)
        atomicMax(bits + blockIdx.y, __float_as_uint(most));
}

/* The power of two that brings a slice's largest magnitude into [2^13, 2^14), and its inverse. */
__global__ void project_choose_scale(const unsigned *bits, float2 *half_scale, int slices)
{
    const int z = blockIdx.x * blockDim.x + threadIdx.x;
    if (z >= slices)
        return;
    const float most = __uint_as_float(bits[z]);
    int exponent = 0;
    if (most > 0)
        frexpf(most, &exponent); /* most = m 2^exponent, 0.5 <= m < 1 */
    const int shift = most > 0 ? max(-120, min(120, 14 - exponent)) : 0;
    half_scale[z] = make_float2(ldexpf(1.0f, shift), ldexpf(1.0f, -shift));
}

/* Eight values of `tile` as halves, and what these lack. */
__device__ static inline void project_pack_unit(const float *tile, int step, uint4 *high,
                                                uint4 *low)
{
    uint32_t h[4], l[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float a = tile[2 * k * step], b = tile[(2 * k + 1) * step];
        const __half2 both = __floats2half2_rn(a, b);
        const float2 back = __half22float2(both);
        const __half2 rest = __floats2half2_rn(a - back.x, b - back.y);
        h[k] = *(const uint32_t *)&both;
        l[k] = *(const uint32_t *)&rest;
    }
    *high = make_uint4(h[0], h[1], h[2], h[3]);
    *low = make_uint4(l[0], l[1], l[2], l[3]);
}

/* The lines from `first` into `packed`. Grid: tiles of pixels; of the axis of the lines from
** `first` on. */
template <int MT>
__global__ void __launch_bounds__(MB_THREADS)
    project_pack_split(const __grid_constant__ project_source src, bool by_rows, int first,
                       int lines, int pitch, const float2 *half_scale, uint4 *packed)
{
    constexpr int S = 16 * MT, X = PROJECT_PACK_X, Y = PROJECT_PACK_Y, ROW = X + 1;
    constexpr int BATCH = 16;                             /* loads before the first store */
    constexpr int PLANE = Y * ROW, EIGHT = 8 * PLANE + 4; /* no two of 8 units meet in a bank */
    extern __shared__ float tile[];                       /* [S][Y][ROW], 4 between 8 slices */
    const mb_parallel_geometry &g = src.geometry;
    const int x0 = blockIdx.x * X + (by_rows ? 0 : first),
              y0 = blockIdx.y * Y + (by_rows ? first : 0), tx = threadIdx.x % X,
              ty = threadIdx.x / X;
    const bool inside =
        x0 + tx < g.nx && y0 + ty < g.ny && mb_parallel_inside(&g, y0 + ty, x0 + tx);
    const float *from = src.data + (y0 + ty) * src.stride_y + x0 + tx;
    for (int first_z = 0; first_z < S; first_z += BATCH) {
        float v[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            v[i] = inside && first_z + i < src.slices ? from[(first_z + i) * src.stride_z] : 0.0f;
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            const int z = first_z + i;
            tile[z / 8 * EIGHT + z % 8 * PLANE + ty * ROW + tx] = v[i] * half_scale[z].x;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < X * Y * 2 * MT; i += MB_THREADS) {
        const int group = i % (2 * MT), pixel = i / (2 * MT);
        const int ax = by_rows ? pixel % X : pixel / Y, ay = by_rows ? pixel / X : pixel % Y;
        const int place = by_rows ? x0 + ax : y0 + ay, line = (by_rows ? y0 + ay : x0 + ax) - first;
        if (x0 + ax >= g.nx || y0 + ay >= g.ny || line >= lines)
            continue;
        uint4 *to = packed + ((int64_t)line * pitch + place + PROJECT_GUARD) * (4 * MT);
        const int key = project_key<MT>(place);
        project_pack_unit(tile + group * EIGHT + ay * ROW + ax, PLANE, to + (group ^ key),
                          to + ((group + 2 * MT) ^ key));
    }
}

/* Grid: bins; angles; slices. */
__global__ void __launch_bounds__(MB_THREADS)
    project_clear(float *sino, int64_t stride_z, int64_t stride_a, int cols, int64_t angles)
{
    const int bin = blockIdx.x * MB_THREADS + threadIdx.x;
    if (bin < cols)
        for (int64_t a = blockIdx.y; a < angles; a += gridDim.y)
            sino[blockIdx.z * stride_z + a * stride_a + bin] = 0.0f;
}

/* `early`: begins while the launch before it, another one of these, still runs. */
template <int MT, int NT, int SIZE>
static mb_status project_strip_run(project_strip p, const project_block *blocks,
                                   const project_list &list, bool *early, cudaStream_t stream)
{
    constexpr int bytes = project_sizes<MT>::BYTES;
    const dim3 grid((unsigned)list.count, (unsigned)project_tiles(p.across));
    static_assert(bytes <= MB_PROJECT_SHARED, "more than the plan asks a device for");
    if (list.count == 0)
        return MB_STATUS_OK;
    p.blocks = blocks + list.first;
    MB_CUDA(cudaFuncSetAttribute(project_mma_kernel<MT, NT, SIZE>,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    MB_TRY(mb_launch_early(*early, project_mma_kernel<MT, NT, SIZE>, p, grid, 32 * PROJECT_WARPS,
                           bytes, stream));
    *early = true;
    return MB_STATUS_OK;
}

template <int MT>
static mb_status project_sort_run(const project_strip &p, const project_block *blocks,
                                  const project_list &list, int size, bool *early,
                                  cudaStream_t stream)
{
    return size == 4   ? project_strip_run<MT, 2, 4>(p, blocks, list, early, stream)
           : size == 2 ? project_strip_run<MT, 1, 2>(p, blocks, list, early, stream)
                       : project_strip_run<MT, 1, 1>(p, blocks, list, early, stream);
}

/* Zeros on either side of packed lines, and behind the last one. */
template <int MT>
static mb_status project_clear_guards(uint4 *packed, int pitch, int lines, int whole,
                                      cudaStream_t stream)
{
    const size_t place = 64 * MT, row = (size_t)pitch * place, guard = PROJECT_GUARD * place;
    unsigned char *to = (unsigned char *)packed;
    MB_CUDA(cudaMemset2DAsync(to, row, 0, guard, (size_t)lines, stream));
    MB_CUDA(cudaMemset2DAsync(to + row - guard, row, 0, guard, (size_t)lines, stream));
    MB_CUDA(cudaMemsetAsync(to + (size_t)lines * row, 0, (size_t)(whole - lines) * row, stream));
    return MB_STATUS_OK;
}

/* Rays of one kind, through the slices of one batch. */
template <int MT>
static mb_status project_kind(const mb_op_call *call, const project_source &src, project_strip p,
                              bool by_rows, const project_block *blocks, const project_list *lists,
                              int64_t strips)
{
    constexpr int shared = 2 * MT * (8 * PROJECT_PACK_Y * (PROJECT_PACK_X + 1) + 4) * 4;
    cudaStream_t stream = mb_stream(call);
    uint4 *packed = (uint4 *)call->slots[MB_PROJECT_PACKED];
    const int held = (int)strips * PROJECT_STRIP;
    MB_CUDA(cudaFuncSetAttribute(project_pack_split<MT>,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    for (int first = 0; first < p.lines; first += held) {
        const int lines = p.lines - first < held ? p.lines - first : held,
                  whole = (lines + PROJECT_CHUNK - 1) / PROJECT_CHUNK * PROJECT_CHUNK;
        const int x = by_rows ? p.across : lines, y = by_rows ? lines : p.across;
        const dim3 tiles((unsigned)((x + PROJECT_PACK_X - 1) / PROJECT_PACK_X),
                         (unsigned)((y + PROJECT_PACK_Y - 1) / PROJECT_PACK_Y));
        if (mb_cuda_core->cancelled())
            return MB_STATUS_CANCELLED;
        MB_TRY(project_clear_guards<MT>(packed, p.pitch, lines, whole, stream));
        project_pack_split<MT><<<tiles, MB_THREADS, shared, stream>>>(
            src, by_rows, first, lines, p.pitch, p.half_scale, packed);
        MB_LAUNCHED("project_pack_split");
        bool early = false; /* not before the lines are packed */
        for (int line = 0; line < lines; line += PROJECT_STRIP)
            for (int sort = 0; sort < PROJECT_SORTS; sort++) {
                p.strip = project_sorts[sort].lines;
                for (int part = line; part < line + PROJECT_STRIP && part < lines;
                     part += p.strip) {
                    p.first = first + part;
                    p.packed = packed + (int64_t)part * p.pitch * (4 * MT);
                    MB_TRY(project_sort_run<MT>(p, blocks, lists[sort], project_sorts[sort].size,
                                                &early, stream));
                }
            }
    }
    return MB_STATUS_OK;
}

/* The factors for halves of each slice. */
static mb_status project_scale(const mb_op_call *call, const project_source &src, int wide)
{
    cudaStream_t stream = mb_stream(call);
    float2 *half_scale = (float2 *)call->slots[MB_PROJECT_RANGE];
    unsigned *bits = (unsigned *)(half_scale + wide);
    const int64_t most = call->device->facts.threads * (int64_t)32 / src.slices + 1,
                  rows = src.geometry.ny < most ? src.geometry.ny : most;
    MB_CUDA(cudaMemsetAsync(bits, 0, (size_t)wide * sizeof *bits, stream));
    project_largest<<<dim3((unsigned)rows, (unsigned)src.slices), MB_THREADS, 0, stream>>>(src,
                                                                                           bits);
    MB_LAUNCHED("project_largest");
    project_choose_scale<<<1, 64, 0, stream>>>(bits, half_scale, wide);
    MB_LAUNCHED("project_choose_scale");
    return MB_STATUS_OK;
}

/* Up to 64 slices. */
template <int MT>
static mb_status project_batch_split(const mb_op_call *call, const project_source &src,
                                     project_strip p, const project_table &table, int64_t strips)
{
    const mb_parallel_geometry &g = src.geometry;
    const project_block *blocks = p.blocks;
    const dim3 clear((unsigned)((g.cols + MB_THREADS - 1) / MB_THREADS),
                     (unsigned)(g.angles < 65535 ? g.angles : 65535), (unsigned)src.slices);
    MB_TRY(project_scale(call, src, 16 * MT));
    project_clear<<<clear, MB_THREADS, 0, mb_stream(call)>>>(p.sino, p.sino_z, p.sino_a,
                                                             (int)g.cols, g.angles);
    MB_LAUNCHED("project_clear");
    for (int kind = 0; kind < 2; kind++) {
        const project_list *lists = table.lists[kind];
        p.lines = (int)(kind == 0 ? g.ny : g.nx);
        p.across = (int)(kind == 0 ? g.nx : g.ny);
        p.pitch = p.across + 2 * PROJECT_GUARD;
        int count = 0;
        for (int sort = 0; sort < PROJECT_SORTS; sort++)
            count += lists[sort].count;
        if (count > 0)
            MB_TRY(project_kind<MT>(call, src, p, kind == 0, blocks, lists, strips));
    }
    return MB_STATUS_OK;
}

/* Uploads the rays and the blocks behind them. */
static mb_status project_upload_table(const mb_op_call *call, const mb_parallel_geometry *g,
                                      project_table *table)
{
    const size_t count = (size_t)g->angles,
                 bytes = count * (sizeof(project_ray) + sizeof(project_block));
    project_ray *rays = (project_ray *)malloc(bytes),
                *sorted = (project_ray *)malloc(count * sizeof *sorted);
    project_block *blocks = (project_block *)(rays + count);
    mb_status status;
    if (rays && sorted) {
        memset(rays, 0, bytes); /* not all blocks are used */
        *table = project_table_of((const mb_project_params *)call->params, g, sorted, rays, blocks);
        status = mb_upload(call, call->slots[MB_PROJECT_ANGLES], rays, bytes);
    } else {
        status = mb_cuda_core->fail(MB_STATUS_MEMORY, NULL, "out of host memory for %lld angles",
                                    (long long)g->angles);
    }
    free(rays);
    free(sorted);
    return status;
}

/* The first `slices` of the call. */
static mb_status project_split_run(const mb_op_call *call, const mb_parallel_geometry *g,
                                   project_source src, float *sino, int64_t sino_z, int64_t sino_a,
                                   const mb_project_packing &packing)
{
    const mb_project_params *params = (const mb_project_params *)call->params;
    project_table table = {};
    project_strip p = {};
    MB_TRY(project_upload_table(call, g, &table));
    p.rays = (const project_ray *)call->slots[MB_PROJECT_ANGLES];
    p.blocks = (const project_block *)(p.rays + g->angles);
    p.half_scale = (const float2 *)call->slots[MB_PROJECT_RANGE];
    p.cols = (int)g->cols;
    p.sino = sino;
    p.sino_z = sino_z;
    p.sino_a = sino_a;
    p.scale = (float)g->scale;
    p.radius2 = (float)g->radius2;
    p.distance = params->method == MB_PARALLEL_DISTANCE;
    for (int64_t left = packing.split; left > 0; left -= src.slices) {
        const int64_t wide = mb_project_wide(left);
        src.slices = p.slices = (int)(left < wide ? left : wide);
        MB_TRY(wide == 64   ? project_batch_split<4>(call, src, p, table, packing.strips)
               : wide == 32 ? project_batch_split<2>(call, src, p, table, packing.strips)
                            : project_batch_split<1>(call, src, p, table, packing.strips));
        src.data += src.slices * src.stride_z;
        p.sino += src.slices * sino_z;
    }
    return MB_STATUS_OK;
}

#endif
