/*
** total_variation_sweep on CUDA: the passes of total_variation over a volume, whose state comes
** from an array and goes to one. The field is packed in between, and what was packed once is packed to
** the same bits again.
*/
#include "denoising/total_variation_planes.cuh"
#include "ops/denoising/op_total_variation_sweep.h"

/* A state of arrays: the distance of planes, of rows, and of the parts of a plane. */
typedef struct tv_array {
    float *data;
    int64_t plane, row, part;
} tv_array;

static tv_array tv_array_of(const mb_array *a, const mb_tv_extents *n)
{
    return {(float *)a->data, a->strides[0], a->strides[1], n->rows * a->strides[1]};
}

/* The state that is given. blockIdx.z: planes from `first`. */
__global__ void tv_resume(tv_state state, tv_array given, tv_job job, int first, int shift)
{
    const int64_t x = blockIdx.x * 256 + threadIdx.x, z = first + blockIdx.z;
    for (int64_t y = blockIdx.y; y < job.rows && x < job.columns; y += gridDim.y) {
        const int64_t at = (z + shift) * job.plane + y * job.pitch + x;
        const float *const from = given.data + z * given.plane + y * given.row + x;
        state.u[at] = from[0];
        state.field[at] = tv_pack(from[given.part], from[2 * given.part], from[3 * given.part]);
    }
}

__global__ void tv_leave(tv_array made, tv_state state, tv_job job, int first, int shift)
{
    const int64_t x = blockIdx.x * 256 + threadIdx.x, z = first + blockIdx.z;
    for (int64_t y = blockIdx.y; y < job.rows && x < job.columns; y += gridDim.y) {
        const int64_t at = (z + shift) * job.plane + y * job.pitch + x;
        float *const to = made.data + z * made.plane + y * made.row + x;
        to[0] = state.u[at];
        tv_unpack(state.field[at], to[made.part], to[2 * made.part], to[3 * made.part]);
    }
}

static dim3 tv_planes_of(const tv_job &job, int z)
{
    return dim3((job.columns + 255) / 256, job.rows < 4096 ? job.rows : 4096,
                job.planes - z < 65535 ? job.planes - z : 65535);
}

static tv_job tv_sweep_job(const mb_op_call *call, const mb_tv_extents *n, const mb_tv_cuda *c,
                           const mb_total_variation_params *p)
{
    const mb_tv_rates rates = mb_tv_rates_of(p);
    tv_job job = {};
    job.f = (const float *)call->arrays[MB_TV_SWEEP_A]->data;
    mb_tv_strides(call->arrays[MB_TV_SWEEP_A], &job.f_plane, &job.f_row);
    job.plane = c->slot;
    job.pitch = c->pitch;
    job.planes = (int)n->planes;
    job.rows = (int)n->rows;
    job.columns = (int)n->columns;
    job.step = rates.step;
    job.field = rates.field;
    job.data = rates.data;
    job.least = rates.least;
    return job;
}

extern "C" mb_status mb_cuda_total_variation_sweep(const mb_op_call *call)
{
    const mb_total_variation_sweep_params *own =
        (const mb_total_variation_sweep_params *)call->params;
    const mb_total_variation_params p = mb_tv_sweep_params(own);
    const mb_array *before = call->arrays[MB_TV_SWEEP_STATE];
    const mb_tv_extents n = mb_tv_sweep_extents(&call->arrays[MB_TV_SWEEP_A]->shape);
    if (n.planes * n.rows * n.columns == 0)
        return MB_STATUS_OK;
    const mb_tv_cuda c = mb_tv_cuda_of(&p, &n, &call->device->facts);
    const int64_t count = c.slots * c.slot;
    float *all = (float *)call->slots[MB_TV_SWEEP_WORK];
    const tv_state state = {all + 2 * count, (uint2 *)all};
    tv_job job = tv_sweep_job(call, &n, &c, &p);
    tv_planes w = {0, 0, (int)c.zc, (int)c.shift, 0};
    for (int z = 0; before && z < job.planes; z += 65535) {
        tv_resume<<<tv_planes_of(job, z), 256, 0, mb_stream(call)>>>(state, tv_array_of(before, &n),
                                                                     job, z, w.in);
        MB_LAUNCHED("tv_resume");
    }
    for (int64_t made = 0; made < own->steps; made += job.levels, w.in = w.out) {
        job.levels = (int)(own->steps - made < c.levels ? own->steps - made : c.levels);
        job.first = !before && made == 0;
        w.out = w.in ? 0 : (int)c.shift;
        MB_TRY(tv_one_pass(call, &c, state, job, w));
    }
    for (int z = 0; z < job.planes; z += 65535) {
        tv_leave<<<tv_planes_of(job, z), 256, 0, mb_stream(call)>>>(
            tv_array_of(call->arrays[MB_TV_SWEEP_RESULT], &n), state, job, z, w.in);
        MB_LAUNCHED("tv_leave");
    }
    return MB_STATUS_OK;
}
