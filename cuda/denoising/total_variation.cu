/*
** total_variation on CUDA: the passes over slices, or over a volume, and the explicit scheme.
** A pass makes several steps, image and field in turn. Its tiles overlap, so it reads one set of
** arrays and writes another: see mb_tv_cuda. The first pass reads the data alone, and the last one
** writes the result alone. Each value is computed by the same instructions in whatever tile, pass or
** launch: results depend on neither.
*/
#include "denoising/total_variation.cuh"

/* ---- slices ---- */

#define TILE MB_TV_FLAT_TILE
#define PATCH 8 /* rows of a thread */

__global__ void __launch_bounds__(TILE *TILE / PATCH, 2)
    tv_flat(tv_single in, tv_single out, tv_job job)
{
    __shared__ float ahead[TILE + 1][TILE + 1], side[TILE + 1][TILE], top[TILE / PATCH + 1][TILE];
    const int tx = threadIdx.x % TILE, group = threadIdx.x / TILE, ty = group * PATCH;
    const int halo = job.levels, inner = TILE - 2 * halo;
    const int x = (int)blockIdx.x * inner - halo + tx, y0 = (int)blockIdx.y * inner - halo + ty;
    const bool inside = (unsigned)x < (unsigned)job.columns;
    const float stepx = (unsigned)x < (unsigned)(job.columns - 1) ? job.step : 0;
    const float *f = job.f + blockIdx.z * job.f_plane;
    const int64_t slice = blockIdx.z * job.plane;
    float u[PATCH], px[PATCH], py[PATCH], data[PATCH], b[PATCH];
    for (int i = threadIdx.x; i < (TILE + 1) * (TILE + 1); i += TILE * TILE / PATCH) {
        (&ahead[0][0])[i] = 0;
        if (i < (TILE + 1) * TILE)
            (&side[0][0])[i] = 0;
        if (i < (TILE / PATCH + 1) * TILE)
            (&top[0][0])[i] = 0;
    }
#pragma unroll
    for (int i = 0; i < PATCH; i++) {
        const bool in_row = inside && (unsigned)(y0 + i) < (unsigned)job.rows;
        const bool read = in_row && !job.first;
        const int64_t at = slice + (int64_t)(y0 + i) * job.pitch + x;
        data[i] = in_row ? f[(y0 + i) * job.f_row + x] : 0;
        u[i] = read ? in.u[at] : data[i];
        px[i] = read ? in.p[0][at] : 0;
        py[i] = read ? in.p[1][at] : 0;
    }
    __syncthreads();
#pragma unroll 1
    for (int l = 0; l < job.levels; l++) {
        const float least = tv_least(job, l);
#pragma unroll
        for (int i = 0; i < PATCH; i++)
            side[ty + i + 1][tx] = px[i];
        top[group + 1][tx] = py[PATCH - 1];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < PATCH; i++) {
            const float left = (&side[0][0])[(ty + i + 1) * TILE + tx - 1];
            const float above = i > 0 ? py[i > 0 ? i - 1 : 0] : top[group][tx];
            b[i] = tv_image(u[i], data[i], (px[i] - left) + (py[i] - above), least, job);
            ahead[ty + i][tx] = b[i];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < PATCH; i++) {
            const float stepy = (unsigned)(y0 + i) < (unsigned)(job.rows - 1) ? job.step : 0;
            const float right = ahead[ty + i][tx + 1];
            const float below =
                i < PATCH - 1 ? b[i + 1 < PATCH ? i + 1 : i] : ahead[ty + i + 1][tx];
            float none = 0;
            tv_dual(px[i], py[i], none, right - b[i], below - b[i], 0, stepx, stepy, 0);
        }
    }
    if (!inside || tx < halo || tx >= TILE - halo)
        return;
#pragma unroll
    for (int i = 0; i < PATCH; i++) {
        const int y = y0 + i;
        if (ty + i < halo || ty + i >= TILE - halo || y >= job.rows)
            continue;
        if (job.last) {
            job.result[blockIdx.z * job.result_plane + y * job.result_row + x] = u[i];
        } else {
            const int64_t at = slice + (int64_t)y * job.pitch + x;
            out.u[at] = u[i];
            out.p[0][at] = px[i];
            out.p[1][at] = py[i];
        }
    }
}

/* All steps of some slices. `job` has their data and result. */
static mb_status tv_slices(const mb_op_call *call, const mb_tv_cuda *c, tv_job job, int64_t slices,
                           int64_t steps)
{
    float *state = (float *)call->slots[MB_TOTAL_VARIATION_STATE], *result = job.result;
    const int64_t count = c->slot * c->group, own[2] = {c->slot, c->pitch};
    const int64_t to[2] = {job.result_plane, job.result_row};
    const bool in_place =
        call->arrays[MB_TOTAL_VARIATION_RESULT]->data == call->arrays[MB_TOTAL_VARIATION_A]->data;
    tv_single set[2];
    for (int i = 0; i < 2; i++)
        set[i] = {state + 3 * i * count,
                  {state + (3 * i + 1) * count, state + (3 * i + 2) * count}};
    int now = 0;
    for (int64_t first = 0; first < steps; first += c->levels, now ^= 1) {
        job.levels = (int)(steps - first < c->levels ? steps - first : c->levels);
        job.first = first == 0;
        job.last = first + job.levels == steps;
        if (job.last && in_place) {
            job.result = set[now ^ 1].u;
            job.result_plane = own[0];
            job.result_row = own[1];
        }
        const int inner = TILE - 2 * job.levels;
        const dim3 blocks((job.columns + inner - 1) / inner, (job.rows + inner - 1) / inner,
                          (unsigned)slices);
        tv_flat<<<blocks, TILE * TILE / PATCH, 0, mb_stream(call)>>>(set[now], set[now ^ 1], job);
        MB_LAUNCHED("tv_flat");
    }
    return in_place ? tv_copy_planes(call, result, to, set[now].u, own, slices, &job)
                    : MB_STATUS_OK;
}

/* ---- the explicit scheme ---- */

/* The smaller of two differences, 0 where their signs differ. */
__device__ static __forceinline__ float tv_smaller(float a, float b)
{
    const float least = fminf(fabsf(a), fabsf(b));
    return (copysignf(0.5f, a) + copysignf(0.5f, b)) * least;
}

/* An image or volume, read with its edges repeated. */
struct tv_grid {
    const float *u;
    int64_t plane, row;
    int planes, rows, columns;
    float epsilon;
    __device__ float at(int z, int y, int x) const
    {
        z = min(max(z, 0), planes - 1);
        y = min(max(y, 0), rows - 1);
        x = min(max(x, 0), columns - 1);
        return u[z * plane + y * row + x];
    }
    /* The differences along an axis (0: z) after an element, and the smaller one of both sides. */
    __device__ float after(int axis, int z, int y, int x) const
    {
        return at(z + (axis == 0), y + (axis == 1), x + (axis == 2)) - at(z, y, x);
    }
    __device__ float across(int axis, int z, int y, int x) const
    {
        return tv_smaller(after(axis, z, y, x),
                          at(z, y, x) - at(z - (axis == 0), y - (axis == 1), x - (axis == 2)));
    }
    /* A component of the field; 0 before the first element. */
    __device__ float field(int axis, int z, int y, int x) const
    {
        if (z < 0 || y < 0 || x < 0)
            return 0;
        const float g = after(axis, z, y, x), m = across(axis == 2 ? 1 : 2, z, y, x);
        const float n = across(axis == 0 ? 1 : 0, z, y, x);
        return g * rsqrtf(fmaf(g, g, fmaf(m, m, fmaf(n, n, epsilon))));
    }
};

/* A step: `grid` is the image before it. blockIdx.z: a plane of a volume, or a slice. */
__global__ void tv_explicit(tv_grid grid, float *to, int64_t to_plane, int64_t to_row, tv_job job,
                            int first_plane)
{
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    const int z = blockIdx.z + first_plane, own = job.planes > 1 ? z : 0;
    if (x >= job.columns || y >= job.rows)
        return;
    if (job.planes == 1)
        grid.u += z * grid.plane;
    grid.planes = job.planes;
    const float div = (grid.field(2, own, y, x) - grid.field(2, own, y, x - 1)) +
                      (grid.field(1, own, y, x) - grid.field(1, own, y - 1, x)) +
                      (grid.field(0, own, y, x) - grid.field(0, own - 1, y, x));
    const float u = grid.at(own, y, x), f = job.f[z * job.f_plane + y * job.f_row + x];
    const float v = fmaf(job.field, div, fmaf(job.data, f - u, u));
    to[z * to_plane + y * to_row + x] = v < job.least ? job.least : v;
}

/* All steps of some slices, or of a volume. `count`: planes or slices. */
static mb_status tv_explicit_all(const mb_op_call *call, const mb_tv_cuda *c, tv_job job,
                                 int64_t count, int64_t steps)
{
    float *state = (float *)call->slots[MB_TOTAL_VARIATION_STATE];
    float *set[2] = {state, state + c->slot * c->shift};
    const int64_t own[2] = {c->slot, c->pitch};
    const int64_t to[2] = {job.result_plane, job.result_row};
    for (int64_t k = 1; k < steps; k++) {
        tv_grid grid = {set[k & 1], c->slot, c->pitch, job.planes, job.rows, job.columns, job.step};
        if (k == 1) {
            grid.u = job.f;
            grid.plane = job.f_plane;
            grid.row = job.f_row;
        }
        for (int64_t z = 0; z < count; z += 65535) {
            const dim3 blocks((job.columns + 31) / 32, (job.rows + 7) / 8,
                              (unsigned)(count - z < 65535 ? count - z : 65535));
            tv_explicit<<<blocks, dim3(32, 8), 0, mb_stream(call)>>>(grid, set[(k & 1) ^ 1], own[0],
                                                                     own[1], job, (int)z);
            MB_LAUNCHED("tv_explicit");
        }
    }
    return tv_copy_planes(call, job.result, to, set[steps & 1], own, count, &job);
}

/* ---- the whole call ---- */

static tv_job tv_job_of(const mb_op_call *call, const mb_tv_extents *n, const mb_tv_cuda *c)
{
    const mb_array *a = call->arrays[MB_TOTAL_VARIATION_A];
    const mb_array *result = call->arrays[MB_TOTAL_VARIATION_RESULT];
    const mb_tv_rates rates = mb_tv_rates_of((const mb_total_variation_params *)call->params);
    tv_job job = {};
    job.f = (const float *)a->data;
    job.result = (float *)result->data;
    mb_tv_strides(a, &job.f_plane, &job.f_row);
    mb_tv_strides(result, &job.result_plane, &job.result_row);
    job.planes = (int)n->planes;
    job.rows = (int)n->rows;
    job.columns = (int)n->columns;
    job.pitch = c->pitch;
    job.plane = c->slot;
    job.step = rates.step;
    job.field = rates.field;
    job.data = rates.data;
    job.least = rates.least;
    return job;
}

extern "C" mb_status mb_cuda_total_variation(const mb_op_call *call)
{
    const mb_total_variation_params *p = (const mb_total_variation_params *)call->params;
    const mb_tv_extents n = mb_tv_extents_of(p, &call->arrays[MB_TOTAL_VARIATION_A]->shape);
    const mb_tv_cuda c = mb_tv_cuda_of(p, &n, &call->device->facts);
    const tv_job job = tv_job_of(call, &n, &c);
    const int64_t steps = p->iterations + 1; /* the first one takes the data as the image */
    if (n.images * n.planes * n.rows * n.columns == 0)
        return MB_STATUS_OK;
    if (!(p->lambda > 0)) {
        const int64_t to[2] = {job.result_plane, job.result_row};
        const int64_t from[2] = {job.f_plane, job.f_row};
        return tv_copy_planes(call, job.result, to, job.f, from, n.images * n.planes, &job);
    }
    if (p->dimensions == 3)
        return p->method == MB_TV_ROF ? tv_explicit_all(call, &c, job, n.planes, steps)
                                      : tv_volume(call, &c, job, steps);
    for (int64_t i = 0; i < n.images; i += c.group) {
        const int64_t left = n.images - i, slices = left < c.group ? left : c.group;
        tv_job own = job;
        own.f += i * job.f_plane;
        own.result += i * job.result_plane;
        MB_TRY(p->method == MB_TV_ROF ? tv_explicit_all(call, &c, own, slices, steps)
                                      : tv_slices(call, &c, own, slices, steps));
    }
    return MB_STATUS_OK;
}
