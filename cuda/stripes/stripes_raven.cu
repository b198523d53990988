/*
** stripes_raven on CUDA: sums with the lowest sines and cosines, a filter of their profiles,
** subtraction.
*/
#include "ops/stripes/op_stripes_raven.h"
#include "stripes/mode_products.cuh"
#include "stripes/profile_filter.cuh"

static_assert(MB_RAVEN_MODES <= PROFILE_MOST, "recipes of a launch");

__global__ void raven_tables(mb_raven_plan r, int pad, float *p, float *q, float *taps)
{
    const int64_t elements = r.angles * pad, reach = r.filter.reach;
    MB_GRID_LOOP(i, elements + reach + 1)
    {
        if (i >= elements) {
            double even, odd;
            mb_raven_tap(&r, i - elements, &even, &odd);
            taps[i - elements] = (float)even;
            taps[i - elements + reach + 1] = (float)odd;
            continue;
        }
        const int64_t a = i / pad, mode = i % pad;
        p[i] = mode < r.modes ? (float)mb_raven_p(&r, mode, a) : 0.0f;
        if (mode < r.modes)
            q[mode * r.angles + a] = (float)mb_raven_q(&r, mode, a);
    }
}

extern "C" mb_status mb_cuda_stripes_raven(const mb_op_call *call)
{
    const mb_array *sino = call->arrays[MB_STRIPES_RAVEN_SINO];
    const int rank = sino->shape.rank;
    if (mb_count(sino) == 0)
        return MB_STATUS_OK;
    const mb_raven_plan r =
        mb_raven_plan_make((const mb_stripes_raven_params *)call->params,
                           sino->shape.dims[rank - 2], sino->shape.dims[rank - 1]);
    const modes_group all = modes_group_of(call, r.modes);
    float *taps = (float *)call->slots[MB_STRIPES_RAVEN_TAPS];
    const int64_t entries = r.angles * all.pad + r.filter.reach + 1;
    raven_tables<<<mb_blocks(call, entries, 64), 64, 0, mb_stream(call)>>>(
        r, all.pad, (float *)all.p, (float *)all.q, taps);
    MB_LAUNCHED("raven_tables");
    profile_job job = {};
    job.f = r.filter;
    job.even = taps;
    job.odd = taps + r.filter.reach + 1;
    job.modes = (int)r.modes;
    for (int mode = 0; mode < job.modes; mode++)
        job.recipe[mode] = mb_raven_recipe(&r, mode);
    const int64_t group =
        mb_modes_group(call->device, all.s.count, all.s.angles, all.s.columns, all.modes);
    for (int64_t first = 0; first < all.s.count; first += group) {
        const int64_t left = all.s.count - first;
        const modes_group g = modes_group_at(all, first, left < group ? left : group);
        job.from = g.filtered;
        job.to = g.t; /* the parts are used up */
        MB_TRY(modes_project_any(call, g));
        MB_TRY(modes_run_add_parts(call, g, false));
        MB_TRY(profile_run_filter(call, job, g.s.count));
        MB_TRY(modes_subtract_any(call, g, g.t));
    }
    return MB_STATUS_OK;
}
