/*
** project on CUDA, few slices or any device: a gather in ordinary arithmetic.
**
** A pixel whose shadow falls on u gives its value times 1 - |u - bin| to the bins nearer than 1:
** the weights with which backproject reads them. Along the image axis that runs more across the ray
** (columns where |cos| >= |sin|, rows elsewhere) at most three pixels of each line are that near,
** so a bin is the sum of three candidates per line, in a fixed order. The place where the ray
** crosses a line is kept in fixed point, 2^-32 of a pixel: exact to add, and as accurate at the
** last line as at the first.
**
** Slices are packed first, with the mask applied and zeros around every line: [plane][line][place],
** a place holding one slice or four. So neighboring bins read neighboring places; for rays along
** the rows the packed slices are transposed. A thread owns one bin of all planes, a thread block
** the same bins at eight angles of similar direction, which keep in step: they read nearly the same
** pixels, from the first-level cache.
*/
#ifndef MB_CUDA_PROJECT_PLAIN_CUH
#define MB_CUDA_PROJECT_PLAIN_CUH

#include "shared/cuda_launch.cuh"
#include "tomography/project_groups.cuh"

#define PROJECT_BINS 64
#define PROJECT_ANGLES 8
#define PROJECT_STEP 16 /* lines between two meetings of a thread block */

struct project_job {
    const mb_project_ray *rays; /* `angles` of them, of one kind */
    int angles, cols, lines, across;
    const void *packed;
    int64_t plane; /* places of one */
    float *sino;   /* of the first slice */
    int64_t sino_z, sino_a;
    float scale;
    int slices;
    bool by_rows;  /* lines are image rows */
    bool distance; /* the method */
};

/* Slices first ... of the volume into planes, a place being `lanes` slices. Tiles of 32 x 32 pixels
** go through shared memory, so that both orientations are read and written along lines. */
template <int LANES>
__global__ void __launch_bounds__(256)
    project_pack(const float *volume, int64_t stride_z, int64_t stride_y, int slices,
                 mb_parallel_geometry g, bool by_rows, float *packed, int64_t plane)
{
    __shared__ float tile[LANES][32][33];
    const int64_t x0 = blockIdx.x * (int64_t)32, y0 = blockIdx.y * (int64_t)32;
    const int z0 = blockIdx.z * LANES, tx = threadIdx.x % 32, ty = threadIdx.x / 32;
    for (int z = 0; z < LANES; z++)
        for (int i = ty; i < 32; i += 8) {
            const int64_t x = x0 + tx, y = y0 + i;
            const bool take =
                z0 + z < slices && x < g.nx && y < g.ny && mb_parallel_inside(&g, y, x);
            tile[z][i][tx] = take ? volume[(z0 + z) * stride_z + y * stride_y + x] : 0.0f;
        }
    __syncthreads();
    const int64_t lines = by_rows ? g.ny : g.nx, across = by_rows ? g.nx : g.ny,
                  pitch = mb_project_pitch(across);
    const int64_t line0 = by_rows ? y0 : x0, p0 = by_rows ? x0 : y0;
    for (int i = threadIdx.x; i < 32 * 32 * LANES; i += 256) {
        const int z = i % LANES, p = i / LANES % 32, line = i / LANES / 32;
        if (line0 + line < lines && p0 + p < across)
            packed[((blockIdx.z * plane + (line0 + line) * pitch) + MB_PROJECT_GUARD + p0 + p) *
                       LANES +
                   z] = by_rows ? tile[z][line][p] : tile[z][p][line];
    }
}

__device__ static inline void project_add(float w, float v, float &sum)
{
    sum = fmaf(w, v, sum);
}
__device__ static inline void project_add(float w, const float4 &v, float4 &sum)
{
    sum.x = fmaf(w, v.x, sum.x);
    sum.y = fmaf(w, v.y, sum.y);
    sum.z = fmaf(w, v.z, sum.z);
    sum.w = fmaf(w, v.w, sum.w);
}
__device__ static inline float project_lane(float v, int)
{
    return v;
}
__device__ static inline float project_lane(const float4 &v, int lane)
{
    return lane == 0 ? v.x : lane == 1 ? v.y : lane == 2 ? v.z : v.w;
}

template <class PLACE, int PLANES>
__global__ void __launch_bounds__(PROJECT_BINS *PROJECT_ANGLES)
    project_kernel(const __grid_constant__ project_job job)
{
    constexpr int LANES = sizeof(PLACE) / 4;
    const int bin = blockIdx.x * PROJECT_BINS + threadIdx.x % PROJECT_BINS,
              k = blockIdx.y * PROJECT_ANGLES + threadIdx.x / PROJECT_BINS;
    const bool real = bin < job.cols && k < job.angles;
    const mb_project_ray ray = job.rays[k < job.angles ? k : job.angles - 1];
    const double one = 4294967296.0;
    /* u = o + p cross + q along: p the candidate's index, q the line's. u = bin at p = start + q
    ** slope. */
    const double cross = job.by_rows ? ray.place.cosine : -ray.place.sine,
                 along = job.by_rows ? -ray.place.sine : ray.place.cosine;
    const double start = ((double)bin - ray.place.offset) / cross, slope = -along / cross,
                 reach = 1.0 / fabs(cross);
    const int lines = job.lines, across = job.across, pitch = (int)mb_project_pitch(across);
    /* Lines on which the ray is within reach of the image: -2 <= start + q slope <= across + 1, and
    ** one more, which the guards around lines cover. */
    int q0 = 0, q1 = lines - 1;
    if (fabs(slope) > 1e-9) {
        double e = (-2.0 - start) / slope, f = (across + 1.0 - start) / slope;
        q0 = (int)fmin(fmax(floor(fmin(e, f)), 0.0), (double)lines);
        q1 = (int)fmin(fmax(ceil(fmax(e, f)), -1.0), (double)(lines - 1));
    } else if (start < -3.0 || start > across + 2.0) {
        q1 = -1;
    }
    if (!real)
        q1 = -1;
    PLACE sum[PLANES] = {};
    /* First place within reach: one after `at`. */
    int64_t at = q0 <= q1 ? __double2ll_rn((start - reach + q0 * slope) * one) : 0;
    const int64_t add = __double2ll_rn(slope * one);
    const float c = (float)fabs(cross);
    const mb_parallel_shadow shadow = mb_parallel_shadow_of(c, c);
    for (int from = 0; from < lines; from += PROJECT_STEP) {
        const int last = min(from + PROJECT_STEP - 1, q1);
        for (int q = max(from, q0); q <= last; q++, at += add) {
            /* Candidate i lies (1 + i - f) c - 1 from the bin; c is 0.7 to 1. */
            const float rest = 1.0f - (float)(uint32_t)at * 2.3283064365386963e-10f;
            float w0 = rest * c;
            const float middle = w0 + c;
            float w1 = fminf(middle, 2.0f - middle), w2 = 2.0f - middle - c;
            if (job.distance) {
                w0 = mb_parallel_share(w0, shadow);
                w1 = mb_parallel_share(w1, shadow);
                w2 = mb_parallel_share(w2, shadow);
            }
            const PLACE *place = (const PLACE *)job.packed + (int64_t)q * pitch +
                                 ((int)(at >> 32) + 1 + MB_PROJECT_GUARD);
#pragma unroll
            for (int v = 0; v < PLANES; v++) {
                project_add(w0, __ldg(place + v * job.plane), sum[v]);
                project_add(w1, __ldg(place + v * job.plane + 1), sum[v]);
            }
            if (w2 > 0)
#pragma unroll
                for (int v = 0; v < PLANES; v++)
                    project_add(w2, __ldg(place + v * job.plane + 2), sum[v]);
        }
        __syncthreads();
    }
    if (!real)
        return;
    float *to = job.sino + ray.index * job.sino_a + bin;
#pragma unroll
    for (int v = 0; v < PLANES; v++)
#pragma unroll
        for (int i = 0; i < LANES; i++)
            if (v * LANES + i < job.slices)
                to[(v * LANES + i) * job.sino_z] = project_lane(sum[v], i) * job.scale;
}

/* Rays whose lines are rows first, each kind by its slope. */
static int project_plain_order(const void *a, const void *b)
{
    const mb_project_ray *p = (const mb_project_ray *)a, *q = (const mb_project_ray *)b;
    const bool rows = project_by_rows(&p->place);
    if (rows != project_by_rows(&q->place))
        return rows ? -1 : 1;
    const double s = rows ? p->place.sine / p->place.cosine : p->place.cosine / p->place.sine;
    const double t = rows ? q->place.sine / q->place.cosine : q->place.cosine / q->place.sine;
    if (s != t)
        return s < t ? -1 : 1;
    return p->index < q->index ? -1 : 1;
}

static mb_status upload_rays(const mb_op_call *call, const mb_parallel_geometry *g,
                             int64_t *by_rows)
{
    const mb_project_params *params = (const mb_project_params *)call->params;
    const uint64_t bytes = (uint64_t)g->angles * sizeof(mb_project_ray);
    mb_project_ray *table = (mb_project_ray *)malloc(bytes);
    if (!table)
        return mb_cuda_core->fail(MB_STATUS_MEMORY, NULL, "out of host memory for %lld angles",
                                  (long long)g->angles);
    for (int64_t k = 0; k < g->angles; k++) {
        table[k].place = mb_project_angle(params, g, k);
        table[k].index = k;
    }
    qsort(table, (size_t)g->angles, sizeof *table, project_plain_order);
    *by_rows = 0;
    while (*by_rows < g->angles && project_by_rows(&table[*by_rows].place))
        ++*by_rows;
    mb_status status = mb_upload(call, call->slots[MB_PROJECT_ANGLES], table, bytes);
    free(table);
    return status;
}

/* Rays of one kind, through the slices of one batch. */
template <class PLACE, int PLANES>
static mb_status project_batch(const mb_op_call *call, const mb_parallel_geometry *g,
                               const project_job &job, const float *volume, int64_t stride_z,
                               int64_t stride_y)
{
    constexpr int LANES = sizeof(PLACE) / 4;
    const int planes = (job.slices + LANES - 1) / LANES;
    cudaStream_t stream = mb_stream(call);
    const dim3 tiles((unsigned)((g->nx + 31) / 32), (unsigned)((g->ny + 31) / 32),
                     (unsigned)planes);
    const dim3 blocks((unsigned)((job.cols + PROJECT_BINS - 1) / PROJECT_BINS),
                      (unsigned)((job.angles + PROJECT_ANGLES - 1) / PROJECT_ANGLES));
    float *packed = (float *)call->slots[MB_PROJECT_PACKED];
    MB_CUDA(cudaMemsetAsync(packed, 0, (size_t)(job.plane * LANES * planes) * 4, stream));
    project_pack<LANES><<<tiles, 256, 0, stream>>>(volume, stride_z, stride_y, job.slices, *g,
                                                   job.by_rows, packed, job.plane);
    MB_LAUNCHED("project_pack");
    project_kernel<PLACE, PLANES><<<blocks, PROJECT_BINS * PROJECT_ANGLES, 0, stream>>>(job);
    MB_LAUNCHED("project_kernel");
    return MB_STATUS_OK;
}

/* Through up to 16 slices. */
static mb_status project_slices(const mb_op_call *call, const mb_parallel_geometry *g,
                                const project_job &job, const float *volume, int64_t stride_z,
                                int64_t stride_y)
{
    if (job.slices == 1)
        return project_batch<float, 1>(call, g, job, volume, stride_z, stride_y);
    if (job.slices <= 4)
        return project_batch<float4, 1>(call, g, job, volume, stride_z, stride_y);
    if (job.slices <= 8)
        return project_batch<float4, 2>(call, g, job, volume, stride_z, stride_y);
    return project_batch<float4, 4>(call, g, job, volume, stride_z, stride_y);
}

/* `rows` slices, a batch at a time. */
static mb_status project_plain_run(const mb_op_call *call, const mb_parallel_geometry *g,
                                   project_job job, const float *from, int64_t stride_z,
                                   int64_t stride_y, float *sino, int64_t rows)
{
    const mb_project_ray *rays = (const mb_project_ray *)call->slots[MB_PROJECT_ANGLES];
    const int64_t most = mb_project_lanes(g, rows);
    int64_t by_rows = 0;
    MB_TRY(upload_rays(call, g, &by_rows));
    for (int64_t first = 0; first < rows; first += most) {
        if (mb_cuda_core->cancelled())
            return MB_STATUS_CANCELLED;
        job.slices = (int)(rows - first < most ? rows - first : most);
        job.sino = sino + first * job.sino_z;
        for (int kind = 0; kind < 2; kind++) {
            job.by_rows = kind == 0;
            job.rays = rays + (job.by_rows ? 0 : by_rows);
            job.angles = (int)(job.by_rows ? by_rows : g->angles - by_rows);
            job.lines = (int)(job.by_rows ? g->ny : g->nx);
            job.across = (int)(job.by_rows ? g->nx : g->ny);
            job.plane = job.lines * mb_project_pitch(job.across);
            if (job.angles == 0)
                continue;
            MB_TRY(project_slices(call, g, job, from + first * stride_z, stride_z, stride_y));
        }
    }
    return MB_STATUS_OK;
}

#endif
