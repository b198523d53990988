/*
** backproject on CUDA: chooses among the kernels behind the operator and feeds them pieces of
** packed slices. What a packet of slices becomes is decided in op_backproject.h, from the rows of
** the packet alone; how many packets go in a piece, and in which blocks kernels take them, changes
** no bit.
**
** Kernels of windows (LINES, PAIRS, QUADS, HALVES, SPLIT) get them by the tensor copy engine (9.0
** and newer) or by asynchronous copies, and give the same numbers either way
** (backproject_stream.cuh).
**
** Milliseconds per slice by the number of slices, halves / else (2048^2 x 1500 angles, an H200);
** then what the kernels for older devices take there (MOONBEAM_CUDA_CAPABILITY):
**          1    2     4         8          16         32         33         48        64
**          1.9  1.8   1.17/1.7  1.14/1.7   .68/1.38   .43/1.03   .48/1.05   .37/.98   .33/.87
**   80     2.3   -    1.3/1.8   1.3/1.8    .83/1.6       -       .58/1.2       -      .44/1.05
**   75     5.5   -    2.5       1.6/2.3    1.5/2.2       -       1.6/2.3       -      1.43/2.19
** Queued work only: tables go through the staging ring, and the factors that fit values into halves
** are found and used on the device.
*/
#include "tomography/backproject_plain.cuh"
#include "tomography/backproject_quad.cuh"
#include "tomography/backproject_single.cuh"
#include <stdlib.h>

#define BP_MOST 32768 /* slices of a piece: they are an axis of a grid */

static mb_status upload_angles(const mb_op_call *call, const mb_parallel_geometry *g)
{
    const mb_backproject_params *params = (const mb_backproject_params *)call->params;
    uint64_t bytes = (uint64_t)g->angles * sizeof(mb_parallel_angle);
    mb_parallel_angle *table = (mb_parallel_angle *)malloc(bytes);
    if (!table)
        return mb_cuda_core->fail(MB_STATUS_MEMORY, NULL, "out of host memory for %lld angles",
                                  (long long)g->angles);
    for (int64_t k = 0; k < g->angles; k++)
        table[k] = mb_backproject_angle(params, g, k);
    mb_status status = mb_upload(call, call->slots[MB_BACKPROJECT_ANGLES], table, bytes);
    free(table);
    return status;
}

/* The factors for halves of each slice of the source. */
static mb_status choose_half_scale(const mb_op_call *call, const bp_source &src, bp_job *job)
{
    cudaStream_t stream = mb_stream(call);
    float2 *half_scale = (float2 *)call->slots[MB_BACKPROJECT_RANGE];
    unsigned *bits = (unsigned *)(half_scale + src.slices);
    const int most = call->device->facts.threads * 32 / src.slices + 1;
    const dim3 grid(src.n_angles < most ? src.n_angles : most, src.slices);
    MB_CUDA(cudaMemsetAsync(bits, 0, src.slices * sizeof *bits, stream));
    bp_largest<<<grid, MB_THREADS, 0, stream>>>(src, bits);
    MB_LAUNCHED("bp_largest");
    bp_choose_scale<<<(src.slices + 127) / 128, 128, 0, stream>>>(bits, half_scale, src.slices);
    MB_LAUNCHED("bp_choose_scale");
    job->half_scale = half_scale;
    return MB_STATUS_OK;
}

static mb_status pack(mb_backproject_kind kind, const bp_source &src, const bp_job &job,
                      uint4 *packets, cudaStream_t stream)
{
    const bool counted = kind == MB_BACKPROJECT_LINES || kind == MB_BACKPROJECT_PAIRS;
    /* A thread reads the factors of its slices once for several angles. */
    const int lines = counted ? 2 * src.n_angles : (src.n_angles + 7) / 8;
    const dim3 grid((job.row + 127) / 128, lines < 65535 ? lines : 65535, job.groups);
    switch (kind) {
    case MB_BACKPROJECT_LINES: bp_pack_lines<1><<<grid, 128, 0, stream>>>(src, packets, job); break;
    case MB_BACKPROJECT_PAIRS: bp_pack_lines<2><<<grid, 128, 0, stream>>>(src, packets, job); break;
    case MB_BACKPROJECT_QUADS: bp_pack_quads<<<grid, 128, 0, stream>>>(src, packets, job); break;
    case MB_BACKPROJECT_FLOATS:
        bp_pack<BP_FLOATS><<<grid, 128, 0, stream>>>(src, packets, job);
        break;
    case MB_BACKPROJECT_HALVES:
        bp_pack<BP_HALVES><<<grid, 128, 0, stream>>>(src, packets, job);
        break;
    default: bp_pack<BP_SPLIT><<<grid, 128, 0, stream>>>(src, packets, job);
    }
    return MB_LAUNCH_STATUS("bp_pack");
}

/* Through the pipeline, windows copied by `way`. Split packets alone gain by deep stages. */
template <class way>
static mb_status run_stream(mb_backproject_kind kind, bool deep, const bp_job &job,
                            cudaStream_t stream)
{
    switch (kind) {
    case MB_BACKPROJECT_LINES: return bp_single_run<way>(false, job, stream);
    case MB_BACKPROJECT_PAIRS: return bp_single_run<way>(true, job, stream);
    case MB_BACKPROJECT_QUADS: return bp_quad_run<way>(job, stream);
    case MB_BACKPROJECT_HALVES: return bp_mma_fast<way>(job, stream);
    default:
        return deep ? bp_mma_exact<bp_lanes_deep>(job, stream) : bp_mma_exact<way>(job, stream);
    }
}

/* One piece, some angles at a time. */
static mb_status run_piece(const mb_op_call *call, const mb_backproject_part &part, bp_source src,
                           bp_job job)
{
    const mb_backproject_kind kind = part.kind;
    cudaStream_t stream = mb_stream(call);
    if (kind == MB_BACKPROJECT_UNPACKED)
        return ((const mb_backproject_params *)call->params)->method == MB_PARALLEL_DISTANCE
                   ? bp_unpacked_run<true>(job, src.data, src.stride_a, stream)
                   : bp_unpacked_run<false>(job, src.data, src.stride_a, stream);
    if (kind == MB_BACKPROJECT_QUADS || kind == MB_BACKPROJECT_HALVES ||
        kind == MB_BACKPROJECT_SPLIT)
        MB_TRY(choose_half_scale(call, src, &job));
    uint4 *packets = (uint4 *)call->slots[MB_BACKPROJECT_PACKED];
    const bp_way way = bp_way_of(call, job);
    const int all = job.n_angles;
    for (int first = 0; first < all; first += (int)part.angles) {
        src.n_angles = job.n_angles = all - first < part.angles ? all - first : (int)part.angles;
        job.begun = first > 0;
        MB_TRY(pack(kind, src, job, packets, stream));
        if (way == BP_BY_LOADS)
            MB_TRY(kind == MB_BACKPROJECT_HALVES ? bp_plain_run<true>(job, stream)
                                                 : bp_plain_run<false>(job, stream));
        else
            MB_TRY(way == BP_BY_MAPS
                       ? run_stream<bp_maps>(kind, false, job, stream)
                       : run_stream<bp_lanes>(kind, way == BP_BY_LANES_DEEP, job, stream));
        job.angles += part.angles;
        src.data += part.angles * src.stride_a;
    }
    return MB_STATUS_OK;
}

/* Slices that are packed alike, from `first` on. Whole blocks of the tensor-core kernels are a
** piece of their own: those of fewer slices have smaller blocks. */
static mb_status run_part(const mb_op_call *call, const mb_backproject_part &part, bp_job job,
                          bp_source src)
{
    const bool blocks = part.kind == MB_BACKPROJECT_HALVES || part.kind == MB_BACKPROJECT_SPLIT;
    const int64_t held = part.most < BP_MOST ? part.most : BP_MOST;
    job.row = (int)part.pitch;
    job.packets = (const uint4 *)call->slots[MB_BACKPROJECT_PACKED];
    job.low_plane = part.kind == MB_BACKPROJECT_SPLIT ? part.angles * part.pitch : 0;
    job.plane = part.lines * part.angles * part.pitch;
    for (int64_t left = part.rows; left > 0; left -= job.slices) {
        const int64_t most = left < held ? left : held;
        if (mb_cuda_core->cancelled())
            return MB_STATUS_CANCELLED;
        job.slices = (int)(blocks && most > BP_BLOCK ? most / BP_BLOCK * BP_BLOCK : most);
        job.groups = (int)((job.slices + part.lanes - 1) / part.lanes);
        src.slices = job.slices;
        MB_TRY(run_piece(call, part, src, job));
        job.image += job.slices * job.stride_z;
        src.data += job.slices * src.stride_z;
    }
    return MB_STATUS_OK;
}

extern "C" mb_status mb_cuda_backproject(const mb_op_call *call)
{
    const mb_backproject_params *params = (const mb_backproject_params *)call->params;
    const mb_array *sino = call->arrays[MB_BACKPROJECT_SINO];
    const mb_array *result = call->arrays[MB_BACKPROJECT_RESULT];
    const mb_parallel_geometry g = mb_backproject_geometry(params, &sino->shape);
    const mb_backproject_packing packing =
        mb_backproject_cuda_packing(params, &g, &call->device->facts);
    const mb_backproject_part *parts = packing.parts;
    const int64_t nx = g.x1 - g.x0, ny = g.y1 - g.y0;
    if (g.rows == 0 || nx == 0 || ny == 0)
        return MB_STATUS_OK;
    if (g.cols > INT32_MAX / 8 || g.angles > INT32_MAX / 2 || g.rows > INT32_MAX / 2 ||
        nx > INT32_MAX / 2 || ny > 65535 * 16)
        return mb_cuda_core->fail(MB_STATUS_UNSUPPORTED, NULL,
                                  "backproject on CUDA: an extent is too large");
    const int axes = sino->shape.rank, out_axes = result->shape.rank;
    bp_job job = {};
    job.geometry = g;
    job.angles = (const mb_parallel_angle *)call->slots[MB_BACKPROJECT_ANGLES];
    job.n_angles = (int)g.angles;
    job.bins = (int)g.cols;
    job.image = (float *)result->data;
    job.stride_z = out_axes == 3 ? result->strides[0] : 0;
    job.stride_y = result->strides[out_axes - 2];
    job.nx = (int)nx;
    job.ny = (int)ny;
    job.scale = (float)g.scale;
    job.outside = (float)params->circle_value;
    bp_source src = {};
    src.data = (const float *)sino->data;
    src.stride_z = axes == 3 ? sino->strides[0] : 0;
    src.stride_a = sino->strides[axes - 2];
    src.slices = (int)g.rows;
    src.n_angles = (int)g.angles;
    src.bins = (int)g.cols;
    if (g.angles > 0)
        MB_TRY(upload_angles(call, &g));
    MB_TRY(run_part(call, parts[0], job, src));
    job.image += parts[0].rows * job.stride_z;
    src.data += parts[0].rows * src.stride_z;
    return run_part(call, parts[1], job, src);
}
