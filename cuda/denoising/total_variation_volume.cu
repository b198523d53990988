/*
** total_variation of a volume: the passes over its planes. See total_variation_planes.cuh for one.
*/
#include "denoising/total_variation_planes.cuh"

/* The data as the image, and no field. */
__global__ void tv_begin(tv_state state, tv_job job, int first, int shift)
{
    const int x = blockIdx.x * 256 + threadIdx.x, z = first + blockIdx.z;
    for (int y = blockIdx.y; y < job.rows && x < job.columns; y += gridDim.y) {
        const int64_t at = (z + shift) * job.plane + y * job.pitch + x;
        state.u[at] = job.f[z * job.f_plane + y * job.f_row + x];
        state.field[at] = make_uint2(0, 0);
    }
}

mb_status tv_begin_all(const mb_op_call *call, const tv_state &state, const tv_job &job, int shift)
{
    for (int z = 0; z < job.planes; z += 65535) {
        const int many = job.planes - z < 65535 ? job.planes - z : 65535;
        const dim3 blocks((job.columns + 255) / 256, job.rows < 4096 ? job.rows : 4096, many);
        tv_begin<<<blocks, 256, 0, mb_stream(call)>>>(state, job, z, shift);
        MB_LAUNCHED("tv_begin");
    }
    return MB_STATUS_OK;
}

template <int LEVELS, int WARPS, int ROWS, int SLOTS>
static mb_status tv_launch(const mb_op_call *call, const tv_state &state, const tv_job &job,
                           const tv_planes &w)
{
    typedef tv_shape<LEVELS, WARPS, ROWS, SLOTS> shape;
    const int bytes = shape::floats * (int)sizeof(float);
    const auto kernel = tv_pass<LEVELS, WARPS, ROWS, SLOTS>;
    const int across = MB_TV_COLUMNS - 2 * LEVELS, down = shape::height - 2 * LEVELS;
    const dim3 blocks((job.columns + across - 1) / across, (job.rows + down - 1) / down,
                      (w.end - w.first + w.chunk - 1) / w.chunk);
    MB_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<blocks, shape::threads, bytes, mb_stream(call)>>>(state, state, job, w);
    MB_LAUNCHED("tv_pass");
    return MB_STATUS_OK;
}

/* Tiles of 32 rows take 154 KiB of shared memory, those of 16 rows 62 KiB. */
static mb_status tv_levels(const mb_op_call *call, const mb_tv_cuda *c, const tv_state &state,
                           const tv_job &job, const tv_planes &w)
{
    const bool more = job.levels == MB_TV_LEVELS;
    if (c->height == 32)
        return more ? tv_launch<MB_TV_LEVELS, 16, 2, 3>(call, state, job, w)
                    : tv_launch<1, 16, 2, 3>(call, state, job, w);
    return more ? tv_launch<MB_TV_LEVELS, 8, 2, 2>(call, state, job, w)
                : tv_launch<1, 8, 2, 2>(call, state, job, w);
}

/* Planes in ascending order go to lower slots, in descending order to higher ones. */
mb_status tv_one_pass(const mb_op_call *call, const mb_tv_cuda *c, const tv_state &state,
                      const tv_job &job, tv_planes w)
{
    const int64_t launches = (job.planes + c->launch - 1) / c->launch;
    for (int64_t i = 0; i < launches; i++) {
        const int64_t from = (w.out ? launches - 1 - i : i) * c->launch;
        w.first = (int)from;
        w.end = (int)(from + c->launch < job.planes ? from + c->launch : job.planes);
        MB_TRY(tv_levels(call, c, state, job, w));
    }
    return MB_STATUS_OK;
}

mb_status tv_volume(const mb_op_call *call, const mb_tv_cuda *c, tv_job job, int64_t steps)
{
    const int64_t count = c->slots * c->slot;
    float *all = (float *)call->slots[MB_TOTAL_VARIATION_STATE];
    const tv_state state = {all + 2 * count, (uint2 *)all};
    const bool in_place =
        call->arrays[MB_TOTAL_VARIATION_A]->data == call->arrays[MB_TOTAL_VARIATION_RESULT]->data;
    const tv_job given = job;
    tv_planes w = {0, 0, (int)c->zc, (int)c->shift, 0};
    MB_TRY(tv_begin_all(call, state, job, w.in));
    for (int64_t first = 0; first < steps; first += job.levels, w.in = w.out) {
        job.levels = steps - first < c->levels ? 1 : c->levels;
        job.first = first == 0;
        job.last = first + job.levels == steps;
        w.out = w.in ? 0 : (int)c->shift;
        if (job.last && in_place) {
            job.result = state.u + w.out * c->slot;
            job.result_plane = c->slot;
            job.result_row = c->pitch;
        }
        MB_TRY(tv_one_pass(call, c, state, job, w));
    }
    if (!in_place)
        return MB_STATUS_OK;
    const int64_t to[2] = {given.result_plane, given.result_row};
    const int64_t own[2] = {job.result_plane, job.result_row};
    return tv_copy_planes(call, given.result, to, job.result, own, given.planes, &given);
}
