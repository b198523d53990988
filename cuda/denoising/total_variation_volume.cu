/*
** total_variation of a volume: the passes over its planes. See total_variation_planes.cuh for one.
*/
#include "denoising/total_variation_planes.cuh"

#define TV_FEWEST 8 /* planes of a part of a chunk */

/* Tiles of the last blocks that would not fill the device are cut into parts of their planes. */
template <int LEVELS, int WARPS, int ROWS, int SLOTS>
static mb_status tv_launch(const mb_op_call *call, const tv_state &state, const tv_job &job,
                           tv_planes w)
{
    typedef tv_shape<LEVELS, WARPS, ROWS, SLOTS> shape;
    const int bytes = shape::floats * (int)sizeof(float);
    const auto kernel = tv_pass<LEVELS, WARPS, ROWS, SLOTS>;
    const int across = MB_TV_COLUMNS - 2 * MB_TV_MARGIN, down = shape::height - 2 * LEVELS;
    int together = 0;
    MB_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    MB_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&together, kernel, shape::threads,
                                                          (size_t)bytes));
    together = (together > 0 ? together : 1) * (int)call->device->facts.threads;
    w.across = (job.columns + across - 1) / across;
    w.tiles = w.across * ((job.rows + down - 1) / down);
    const int items = w.tiles * ((w.end - w.first + w.chunk - 1) / w.chunk),
              rest = items % together, parts = rest > 0 ? together / rest : 1,
              most = w.chunk > TV_FEWEST ? w.chunk / TV_FEWEST : 1;
    w.whole = items - rest;
    w.parts = parts < most ? parts : most;
    kernel<<<w.whole + rest * w.parts, shape::threads, bytes, mb_stream(call)>>>(state, state, job,
                                                                                 w);
    MB_LAUNCHED("tv_pass");
    return MB_STATUS_OK;
}

template <int LEVELS>
static mb_status tv_height(const mb_op_call *call, const mb_tv_cuda *c, const tv_state &state,
                           const tv_job &job, const tv_planes &w)
{
    return c->height == 32 ? tv_launch<LEVELS, 16, 2, 3>(call, state, job, w)
                           : tv_launch<LEVELS, 8, 2, 2>(call, state, job, w);
}

/* Tiles of 32 rows take 130 KiB of shared memory, those of 16 rows 50 KiB. */
static mb_status tv_levels(const mb_op_call *call, const mb_tv_cuda *c, const tv_state &state,
                           const tv_job &job, const tv_planes &w)
{
    return job.levels == MB_TV_LEVELS ? tv_height<MB_TV_LEVELS>(call, c, state, job, w)
           : job.levels == 2          ? tv_height<2>(call, c, state, job, w)
                                      : tv_height<1>(call, c, state, job, w);
}

/* Planes in ascending order go to lower slots, in descending order to higher ones. */
mb_status tv_one_pass(const mb_op_call *call, const mb_tv_cuda *c, const tv_state &state,
                      const tv_job &job, tv_planes w)
{
    tv_job own = job;
    const int64_t launches = (job.planes + c->launch - 1) / c->launch;
    own.fours = (uintptr_t)job.f % 16 == 0 && job.f_row % 4 == 0 && job.f_plane % 4 == 0;
    own.pairs = (uintptr_t)job.result % 8 == 0 && job.result_row % 2 == 0 &&
                job.result_plane % 2 == 0 && job.columns % 2 == 0;
    for (int64_t i = 0; i < launches; i++) {
        const int64_t from = (w.out ? launches - 1 - i : i) * c->launch;
        w.first = (int)from;
        w.end = (int)(from + c->launch < job.planes ? from + c->launch : job.planes);
        MB_TRY(tv_levels(call, c, state, own, w));
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
    for (int64_t first = 0; first < steps; first += job.levels, w.in = w.out) {
        job.levels = (int)(steps - first < c->levels ? steps - first : c->levels);
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
