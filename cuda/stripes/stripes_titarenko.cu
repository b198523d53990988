/*
** stripes_titarenko on CUDA: column sums, a filter of one profile for each sinogram, subtraction.
*/
#include "ops/stripes/op_stripes_titarenko.h"
#include "stripes/angle_modes.cuh"
#include "stripes/profile_filter.cuh"

__global__ void titarenko_tables(modes_group g, float *p, float *q, float *taps, double beta,
                                 mb_profile_filter f)
{
    MB_GRID_LOOP(i, g.s.angles * g.pad + f.reach + 1)
    {
        const int64_t d = i - g.s.angles * g.pad;
        if (d >= 0) {
            taps[d] = (float)(mb_stripes_titarenko_tap(beta, d) * mb_profile_tap_weight(&f, d));
        } else {
            p[i] = i % g.pad == 0 ? (float)(1.0 / (double)g.s.angles) : 0.0f;
            if (i < g.s.angles)
                q[i] = 1.0f;
        }
    }
}

extern "C" mb_status mb_cuda_stripes_titarenko(const mb_op_call *call)
{
    const mb_stripes_titarenko_params *params = (const mb_stripes_titarenko_params *)call->params;
    const modes_group all = modes_group_of(call, 1);
    float *taps = (float *)call->slots[MB_STRIPES_TITARENKO_TAPS];
    profile_job job = {};
    job.f = mb_stripes_titarenko_filter(params->beta, all.s.columns);
    job.even = taps;
    job.modes = 1;
    job.recipe[0] = {1.0f, -1.0f, 0.0f, 0};
    if (mb_count(call->arrays[0]) == 0)
        return MB_STATUS_OK;
    titarenko_tables<<<mb_blocks(call, all.s.angles * all.pad + job.f.reach + 1, MB_THREADS),
                       MB_THREADS, 0, mb_stream(call)>>>(all, (float *)all.p, (float *)all.q, taps,
                                                         params->beta, job.f);
    MB_LAUNCHED("titarenko_tables");
    const int64_t group = mb_modes_group(call->device, all.s.count, all.s.angles, all.s.columns, 1);
    for (int64_t first = 0; first < all.s.count; first += group) {
        const int64_t left = all.s.count - first;
        const modes_group g = modes_group_at(all, first, left < group ? left : group);
        job.from = g.filtered;
        job.to = g.t; /* the parts are used up */
        MB_TRY(modes_run_project(call, g));
        MB_TRY(modes_run_add_parts(call, g, true));
        MB_TRY(profile_run_filter(call, job, g.s.count));
        MB_TRY(modes_run_subtract(call, g, g.t, false));
    }
    return MB_STATUS_OK;
}
