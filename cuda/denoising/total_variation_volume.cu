/*
** total_variation of a volume: the passes over its planes. See total_variation_planes.cuh for one.
*/
#include "denoising/total_variation_planes.cuh"

/* The data as the image, and no field. */
template <class STATE>
__global__ void tv_begin(STATE state, tv_job job, int first, int shift)
{
    const int x = blockIdx.x * 256 + threadIdx.x, z = first + blockIdx.z;
    if (x >= job.columns)
        return;
    for (int y = blockIdx.y; y < job.rows; y += gridDim.y) {
        const int64_t at = (z + shift) * job.plane + y * job.pitch + x;
        tv_set_element(state, at, job.f[z * job.f_plane + y * job.f_row + x]);
    }
}

template <class STATE>
static mb_status tv_begin_all(const mb_op_call *call, const STATE &state, const tv_job &job,
                              int shift)
{
    for (int z = 0; z < job.planes; z += 65535) {
        const int many = job.planes - z < 65535 ? job.planes - z : 65535;
        const dim3 blocks((job.columns + 255) / 256, job.rows < 4096 ? job.rows : 4096, many);
        tv_begin<<<blocks, 256, 0, mb_stream(call)>>>(state, job, z, shift);
        MB_LAUNCHED("tv_begin");
    }
    return MB_STATUS_OK;
}

template <int LEVELS, int WARPS, int ROWS, bool HALF, class STATE>
static mb_status tv_launch(const mb_op_call *call, const STATE &state, const tv_job &job,
                           const tv_planes &w)
{
    typedef tv_shape<LEVELS, WARPS, ROWS, 2, HALF> shape;
    const int bytes = shape::floats * (int)sizeof(float);
    const auto kernel = tv_pass<LEVELS, WARPS, ROWS, 2, HALF, STATE>;
    const int across = MB_TV_COLUMNS - 2 * LEVELS, down = shape::height - 2 * LEVELS;
    const dim3 blocks((job.columns + across - 1) / across, (job.rows + down - 1) / down,
                      (w.end - w.first + w.chunk - 1) / w.chunk);
    MB_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<blocks, shape::threads, bytes, mb_stream(call)>>>(state, state, job, w);
    MB_LAUNCHED("tv_pass");
    return MB_STATUS_OK;
}

template <bool HALF, class STATE>
static mb_status tv_levels(const mb_op_call *call, const mb_tv_cuda *c, const STATE &state,
                           const tv_job &job, const tv_planes &w)
{
    const bool more = job.levels == MB_TV_LEVELS;
    if (c->height == 32)
        return more ? tv_launch<MB_TV_LEVELS, 16, 2, HALF>(call, state, job, w)
                    : tv_launch<1, 16, 2, HALF>(call, state, job, w);
    if (c->height == 16)
        return more ? tv_launch<MB_TV_LEVELS, 8, 2, HALF>(call, state, job, w)
                    : tv_launch<1, 8, 2, HALF>(call, state, job, w);
    return tv_launch<1, 4, 2, HALF>(call, state, job, w);
}

/* Planes in ascending order go to lower slots, in descending order to higher ones. */
template <bool HALF, class STATE>
static mb_status tv_one_pass(const mb_op_call *call, const mb_tv_cuda *c, const STATE &state,
                             const tv_job &job, tv_planes w)
{
    const int64_t launches = (job.planes + c->launch - 1) / c->launch;
    for (int64_t i = 0; i < launches; i++) {
        const int64_t from = (w.out ? launches - 1 - i : i) * c->launch;
        w.first = (int)from;
        w.end = (int)(from + c->launch < job.planes ? from + c->launch : job.planes);
        MB_TRY((tv_levels<HALF>(call, c, state, job, w)));
    }
    return MB_STATUS_OK;
}

template <bool HALF, class STATE>
static mb_status tv_passes(const mb_op_call *call, const mb_tv_cuda *c, const STATE &state,
                           tv_job job, int64_t steps)
{
    const bool in_place =
        call->arrays[MB_TOTAL_VARIATION_A]->data == call->arrays[MB_TOTAL_VARIATION_RESULT]->data;
    const tv_job given = job;
    tv_planes w = {0, 0, (int)c->zc, (int)c->shift, 0};
    MB_TRY(tv_begin_all(call, state, job, w.in));
    for (int64_t first = 0; first < steps; first += job.levels, w.in = w.out) {
        job.levels = steps - first < c->levels ? 1 : c->levels;
        job.last = first + job.levels == steps;
        w.out = w.in ? 0 : (int)c->shift;
        if (job.last && in_place)
            tv_result_in(state, c, w.out, &job);
        MB_TRY((tv_one_pass<HALF>(call, c, state, job, w)));
    }
    const int64_t to[2] = {given.result_plane, given.result_row};
    const int64_t own[2] = {job.result_plane, job.result_row};
    return in_place ? tv_copy_planes(call, given.result, to, job.result, own, given.planes, &given)
                    : MB_STATUS_OK;
}

mb_status tv_volume(const mb_op_call *call, const mb_tv_cuda *c, tv_job job, int64_t steps)
{
    const mb_total_variation_params *p = (const mb_total_variation_params *)call->params;
    float *state = (float *)call->slots[MB_TOTAL_VARIATION_STATE];
    const int64_t count = c->slots * c->slot;
    if (p->precision == MB_TV_HALF) {
        tv_half half = {state + 2 * count, (uint2 *)state};
        return tv_passes<true>(call, c, half, job, steps);
    }
    tv_whole whole = {(float4 *)state};
    return tv_passes<false>(call, c, whole, job, steps);
}
