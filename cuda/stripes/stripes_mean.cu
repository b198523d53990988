/*
** stripes_mean on CUDA: column sums, a filter of one profile for each sinogram, subtraction or
** division.
*/
#include "ops/stripes/op_stripes_mean.h"
#include "stripes/angle_modes.cuh"
#include "stripes/profile_filter.cuh"

__global__ void mean_tables(modes_group g, float *p, float *q, float *taps,
                            mb_stripes_mean_params params, mb_profile_filter f)
{
    MB_GRID_LOOP(i, g.s.angles * g.pad + f.reach + 1)
    {
        const int64_t d = i - g.s.angles * g.pad;
        if (d >= 0) {
            taps[d] = (float)mb_stripes_mean_tap(&params, &f, d);
        } else {
            p[i] = i % g.pad == 0 ? (float)(1.0 / (double)g.s.angles) : 0.0f;
            if (i < g.s.angles)
                q[i] = 1.0f;
        }
    }
}

extern "C" mb_status mb_cuda_stripes_mean(const mb_op_call *call)
{
    const mb_stripes_mean_params *params = (const mb_stripes_mean_params *)call->params;
    if (mb_count(call->arrays[0]) == 0)
        return MB_STATUS_OK;
    const modes_group all = modes_group_of(call, 1);
    const bool divide = params->mode == MB_STRIPES_MEAN_DIVIDE;
    float *taps = (float *)call->slots[MB_STRIPES_MEAN_TAPS];
    profile_job job = {};
    job.f = mb_stripes_mean_filter(params, all.s.columns);
    job.even = taps;
    job.modes = 1;
    job.recipe[0] = mb_stripes_mean_recipe(params);
    mean_tables<<<mb_blocks(call, all.s.angles * all.pad + job.f.reach + 1, 64), 64, 0,
                  mb_stream(call)>>>(all, (float *)all.p, (float *)all.q, taps, *params, job.f);
    MB_LAUNCHED("mean_tables");
    const int64_t group = mb_modes_group(call->device, all.s.count, all.s.angles, all.s.columns, 1);
    for (int64_t first = 0; first < all.s.count; first += group) {
        const int64_t left = all.s.count - first;
        const modes_group g = modes_group_at(all, first, left < group ? left : group);
        job.from = g.filtered;
        job.to = g.t; /* the parts are used up */
        MB_TRY(modes_run_project(call, g));
        MB_TRY(modes_run_add_parts(call, g, false));
        MB_TRY(profile_run_filter(call, job, g.s.count));
        MB_TRY(modes_run_subtract(call, g, g.t, divide));
    }
    return MB_STATUS_OK;
}
