/*
** backproject on CUDA: chooses among the kernels behind the operator and feeds them batches of packed slices.
**
**   accuracy  one slice        compute capability >= 9.0      other devices
**   fast      half packets     staged, half packets           plain loads, half packets
**   exact     unpacked         staged, float packets          plain loads, float packets
**
** Queued work only: tables go through the staging ring, and the factor that fits values into halves is found and used on
** the device.
*/
#include "backproject_staged.cuh"
#include "backproject_plain.cuh"
#include <stdlib.h>

static mb_status upload_angles(const mb_op_call *call, const mb_parallel_geometry *g)
{
    const mb_backproject_params *params = (const mb_backproject_params *)call->params;
    uint64_t bytes = (uint64_t)g->angles * sizeof(mb_parallel_angle);
    mb_parallel_angle *table = (mb_parallel_angle *)malloc(bytes);
    if (!table)
        return mb_cuda_core->fail(MB_STATUS_MEMORY, NULL, "out of host memory for %lld angles", (long long)g->angles);
    for (int64_t k = 0; k < g->angles; k++)
        table[k] = mb_backproject_angle(params, g, k);
    mb_status status = mb_upload(call, call->slots[MB_BACKPROJECT_ANGLES], table, bytes);
    free(table);
    return status;
}

/* The factor for half packets, over all slices of the call, so that it does not depend on the batches. */
static mb_status choose_half_scale(const mb_op_call *call, bp_source src, int64_t slices, float2 *half_scale, unsigned *bits)
{
    cudaStream_t stream = mb_stream(call);
    MB_CUDA(cudaMemsetAsync(bits, 0, sizeof *bits, stream));
    src.slices = (int)slices;
    bp_largest<<<mb_blocks(call, slices * src.n_angles, 1), MB_THREADS, 0, stream>>>(src, bits);
    MB_LAUNCHED("bp_largest");
    bp_choose_scale<<<1, 1, 0, stream>>>(bits, half_scale);
    MB_LAUNCHED("bp_choose_scale");
    return MB_STATUS_OK;
}

template <bool HALF>
static mb_status run_batches(const mb_op_call *call, bp_job job, bp_source src, const mb_backproject_packing &packing)
{
    cudaStream_t stream = mb_stream(call);
    const bool staged = bp_staged_possible(call, job);
    /* Whole blocks of the staged kernels where the slot allows it: 64 slices of halves, 16 of floats. */
    const int64_t block = HALF ? 8 : 4;
    const int64_t batch = packing.batch < packing.groups && packing.batch > block ? packing.batch / block * block : packing.batch;
    const int64_t slices = job.geometry.rows;
    float *image = job.image;
    const float *data = src.data;
    for (int64_t group = 0; group < packing.groups; group += batch) {
        if (mb_cuda_core->cancelled())
            return MB_STATUS_CANCELLED;
        const int64_t first = group * packing.lanes, left = slices - first, most = batch * packing.lanes;
        job.slices = src.slices = (int)(left < most ? left : most);
        job.image = image + first * job.stride_z;
        src.data = data + first * src.stride_z;
        const int groups = (job.slices + packing.lanes - 1) / packing.lanes;
        const dim3 grid((job.row + 127) / 128, job.n_angles < 65535 ? job.n_angles : 65535, groups);
        bp_pack<HALF><<<grid, 128, 0, stream>>>(src, (uint4 *)call->slots[MB_BACKPROJECT_PACKED], job.half_scale);
        MB_LAUNCHED("bp_pack");
        if (!staged)
            MB_TRY(bp_plain_run<HALF>(job, stream));
        else
            MB_TRY(HALF ? bp_staged_fast(job, stream) : bp_staged_exact(job, stream));
    }
    return MB_STATUS_OK;
}

extern "C" mb_status mb_cuda_backproject(const mb_op_call *call)
{
    const mb_backproject_params *params = (const mb_backproject_params *)call->params;
    const mb_array *sino = call->arrays[MB_BACKPROJECT_SINO], *result = call->arrays[MB_BACKPROJECT_RESULT];
    const mb_parallel_geometry g = mb_backproject_geometry(params, &sino->shape);
    const mb_backproject_packing packing = mb_backproject_cuda_packing(params->accuracy, &g);
    const int64_t nx = g.x1 - g.x0, ny = g.y1 - g.y0;
    if (g.rows == 0 || nx == 0 || ny == 0)
        return MB_STATUS_OK;
    if (g.cols > INT32_MAX / 8 || g.angles > INT32_MAX / 2 || nx > INT32_MAX / 2 || ny > 65535 * 16 || g.rows > INT32_MAX / 2)
        return mb_cuda_core->fail(MB_STATUS_UNSUPPORTED, NULL, "backproject on CUDA: an extent is too large");
    const int axes = sino->shape.rank, out_axes = result->shape.rank;
    bp_job job = {};
    job.geometry = g;
    job.angles = (const mb_parallel_angle *)call->slots[MB_BACKPROJECT_ANGLES];
    job.packets = (const uint4 *)call->slots[MB_BACKPROJECT_PACKED];
    job.row = (int)packing.pitch;
    job.n_angles = (int)g.angles;
    job.bins = (int)g.cols;
    job.plane = g.angles * packing.pitch;
    job.image = (float *)result->data;
    job.stride_z = out_axes == 3 ? result->strides[0] : 0;
    job.stride_y = result->strides[out_axes - 2];
    job.nx = (int)nx;
    job.ny = (int)ny;
    job.scale = (float)g.scale;
    job.outside = (float)params->circle_value;
    job.slices = (int)g.rows;
    bp_source src = {(const float *)sino->data, axes == 3 ? sino->strides[0] : 0, sino->strides[axes - 2],
                     (int)g.rows, (int)g.angles, (int)g.cols};
    if (g.angles > 0)
        MB_TRY(upload_angles(call, &g));
    if (packing.lanes == 1)
        return bp_single_run(job, src.data, src.stride_a, mb_stream(call));
    if (packing.lanes == 4)
        return run_batches<false>(call, job, src, packing);
    float2 *half_scale = (float2 *)call->slots[MB_BACKPROJECT_RANGE];
    job.half_scale = half_scale;
    MB_TRY(choose_half_scale(call, src, g.rows, half_scale, (unsigned *)(half_scale + 1)));
    return run_batches<true>(call, job, src, packing);
}
