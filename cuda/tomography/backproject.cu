/*
** backproject on CUDA: chooses among the kernels behind the operator and feeds them pieces of
** packed slices.
**
**   slices of a piece  halves (see op_backproject.h)  else
**   compute capability 8.0 and newer
**   9 and more         tensor cores, half packets     tensor cores, split packets
**   5 to 8             tensor cores, half packets     staged, float packets
**   2 to 4             staged, float packets          staged, float packets
**   older devices
**   5 and more         plain loads, half packets      plain loads, float packets
**   2 to 4             plain loads, float packets     plain loads, float packets
**   any device
**   1                  the sinogram itself, unpacked
**
** Tensor-core and staged kernels get their windows by the tensor copy engine (9.0 and newer) or by
** asynchronous copies, and give the same numbers either way (backproject_stream.cuh).
**
** Milliseconds per slice by the number of slices, halves / else (2048^2 x 1500 angles, an H200);
** then what the kernels for older devices take there (MOONBEAM_CUDA_CAPABILITY):
**          1    4    8       16         32         33         48         64
**          5.4  2.0  -/1.77  .65/1.33   .43/.97    .57/1.10   .40/.92    .33/.87
**   80     -    2.1  -/1.81  .68/1.42   .48/1.07      -       .42/1.24   .44/1.03
**   86     -    2.1  -/1.82  .68/1.48   .49/1.14      -       .42/1.49   .44/1.22
**   75     -    2.4  -/2.23  1.45/2.21  1.44/2.20     -       1.43/2.19  1.43/2.19
** Beyond 8 no count costs a slice more than 1.35 times what the multiple of 8 below it does.
**
** A call is cut into pieces of whole blocks of 64 slices, as many as the slot holds, and smaller
** pieces for the rest. Without a slot (mb_backproject_cuda_packing) every slice is a piece.
** Queued work only: tables go through the staging ring, and the factor that fits values into halves
** is found and used on the device.
*/
#include "tomography/backproject_mma.cuh"
#include "tomography/backproject_plain.cuh"
#include "tomography/backproject_staged.cuh"
#include <stdlib.h>

#define BP_BLOCK 64   /* slices of a full block of the tensor-core kernels */
#define BP_STEP 16    /* their smaller blocks grow by so many */
#define BP_MOST 65536 /* slices of a piece: groups of 4 must fit the third axis of a grid */

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

/* The factor for halves, over all slices of the call, so that it does not depend on the pieces. */
static mb_status choose_half_scale(const mb_op_call *call, const bp_source &src, bp_job *job)
{
    cudaStream_t stream = mb_stream(call);
    float2 *half_scale = (float2 *)call->slots[MB_BACKPROJECT_RANGE];
    unsigned *bits = (unsigned *)(half_scale + 1);
    MB_CUDA(cudaMemsetAsync(bits, 0, sizeof *bits, stream));
    const int64_t rows = (int64_t)src.slices * src.n_angles;
    bp_largest<<<mb_blocks(call, rows, 1), MB_THREADS, 0, stream>>>(src, bits);
    MB_LAUNCHED("bp_largest");
    bp_choose_scale<<<1, 1, 0, stream>>>(bits, half_scale);
    MB_LAUNCHED("bp_choose_scale");
    job->half_scale = half_scale;
    return MB_STATUS_OK;
}

/* The next piece of at most `most` slices: how many, and how they are packed. Up to 4 slices beyond
** a multiple of 16 cost less as a piece of their own than in a larger block of split packets (33 of
** them take 36 ms instead of 44); half packets do not gain by that. */
static int choose_piece(bool halves, bool tensor, int64_t most, bp_format *format)
{
    *format = most == 1            ? BP_UNPACKED
              : most <= 4          ? BP_FLOATS
              : halves             ? BP_HALVES
              : tensor && most > 8 ? BP_SPLIT
                                   : BP_FLOATS;
    if (tensor && most >= BP_BLOCK)
        return (int)(most / BP_BLOCK * BP_BLOCK);
    if (*format == BP_SPLIT && most > BP_STEP && most % BP_STEP <= 4)
        return (int)(most / BP_STEP * BP_STEP);
    return (int)most;
}

template <bp_format FORMAT>
static mb_status pack(const bp_source &src, const bp_job &job, uint4 *packets, cudaStream_t stream)
{
    const dim3 grid((job.row + 127) / 128, job.n_angles < 65535 ? job.n_angles : 65535, job.groups);
    bp_pack<FORMAT>
        <<<grid, 128, 0, stream>>>(src, packets, job.plane, job.low_plane, job.half_scale);
    MB_LAUNCHED("bp_pack");
    return MB_STATUS_OK;
}

/* Through the pipeline, windows copied by `way`. Split packets alone gain by deep stages. */
template <class way>
static mb_status run_stream(bp_format format, bool deep, const bp_job &job, cudaStream_t stream)
{
    return format == BP_SPLIT && deep ? bp_mma_exact<bp_lanes_deep>(job, stream)
           : format == BP_SPLIT       ? bp_mma_exact<way>(job, stream)
           : format == BP_HALVES      ? bp_mma_fast<way>(job, stream)
                                      : bp_staged_run<way>(job, stream);
}

static mb_status run_piece(bp_format format, bp_way way, const bp_source &src, bp_job &job,
                           uint4 *packets, cudaStream_t stream)
{
    const int64_t plane = (int64_t)job.n_angles * job.row;
    const int lanes = format == BP_FLOATS ? 4 : 8;
    job.low_plane = format == BP_SPLIT ? plane : 0;
    job.plane = format == BP_SPLIT ? 2 * plane : plane;
    job.groups = (job.slices + lanes - 1) / lanes;
    job.packets = packets;
    switch (format) {
    case BP_SPLIT: MB_TRY(pack<BP_SPLIT>(src, job, packets, stream)); break;
    case BP_HALVES: MB_TRY(pack<BP_HALVES>(src, job, packets, stream)); break;
    case BP_FLOATS: MB_TRY(pack<BP_FLOATS>(src, job, packets, stream)); break;
    default: return bp_single_run(job, src.data, src.stride_a, stream);
    }
    if (way == BP_BY_LOADS)
        return format == BP_HALVES ? bp_plain_run<true>(job, stream)
                                   : bp_plain_run<false>(job, stream);
    return way == BP_BY_MAPS ? run_stream<bp_maps>(format, false, job, stream)
                             : run_stream<bp_lanes>(format, way == BP_BY_LANES_DEEP, job, stream);
}

static mb_status run_pieces(const mb_op_call *call, bp_job job, bp_source src,
                            const mb_backproject_packing &packing, bool halves)
{
    uint4 *packets = (uint4 *)call->slots[MB_BACKPROJECT_PACKED];
    const bp_way way = bp_way_of(call, job);
    const int64_t held = packing.batch * packing.lanes, most = held < BP_MOST ? held : BP_MOST;
    for (int64_t left = job.geometry.rows; left > 0; left -= job.slices) {
        if (mb_cuda_core->cancelled())
            return MB_STATUS_CANCELLED;
        bp_format format;
        job.slices = choose_piece(halves, way != BP_BY_LOADS, left < most ? left : most, &format);
        /* The first piece is the largest: if any needs the scale, it does. */
        if ((format == BP_HALVES || format == BP_SPLIT) && !job.half_scale)
            MB_TRY(choose_half_scale(call, src, &job));
        src.slices = job.slices;
        MB_TRY(run_piece(format, way, src, job, packets, mb_stream(call)));
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
    const mb_backproject_packing packing = mb_backproject_cuda_packing(params->accuracy, &g);
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
    job.row = (int)packing.pitch;
    job.n_angles = (int)g.angles;
    job.bins = (int)g.cols;
    job.plane = g.angles * packing.pitch * 2; /* at most; every piece sets its own */
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
    return run_pieces(call, job, src, packing, mb_backproject_cuda_halves(params->accuracy, &g));
}
