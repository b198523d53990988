/*
** fourier_project on CUDA. Steps, layouts and slots: ops/op_fourier_project.h; from pixels to the
** grid: fourier_embed.cuh; samples and rows: fourier_polar.cuh. Grids and rows that do not fit
** those kernels go through the FFT library.
*/
#include "ops/tomography/op_fourier_project.h"
#include "tomography/fourier_embed.cuh"
#include "tomography/fourier_polar.cuh"
#include "tomography/fourier_tables.cuh"

/* Pixels into [pair][y][x], with zeros around them. */
__global__ void __launch_bounds__(MB_THREADS)
    fourier_spread(const __grid_constant__ fourier_embed_job job, int64_t pairs)
{
    const fourier_image_job &image = job.image;
    const int grid = image.grid, high = (int)(image.g.y1 - image.g.y0),
              wide = (int)(image.g.x1 - image.g.x0);
    for (int64_t at = blockIdx.x; at < pairs * grid; at += gridDim.x) {
        const int64_t pair = at / grid;
        const int p = (int)(at - pair * grid), i = (2 * p < grid ? p : p - grid) + high / 2;
        const bool inside = i >= 0 && i < high && 2 * pair < image.to.slices,
                   two = 2 * pair + 1 < image.to.slices;
        const fourier_line line(image, inside ? i : 0);
        const float *even = row_of(image.to, inside ? 2 * pair : 0, inside ? i : 0),
                    *odd = row_of(image.to, inside && two ? 2 * pair + 1 : 0, inside ? i : 0);
        for (int q = threadIdx.x; q < grid; q += MB_THREADS) {
            const int xs = 2 * q < grid ? q : q - grid, x = xs + wide / 2;
            float2 v = make_float2(0, 0);
            if (inside && x >= 0 && x < wide && line.has(x)) {
                const float weight = line.weight(xs, image.deapodise[xs < 0 ? -xs : xs]);
                v = make_float2(even[x] * weight, two ? odd[x] * weight : 0.0f);
            }
            job.cells[at * grid + q] = v;
        }
    }
}

/* The first cols of n points of each row, taken apart. */
__global__ void __launch_bounds__(MB_THREADS)
    fourier_unpair(const __grid_constant__ fourier_back_job job, int64_t pairs, int64_t n)
{
    for (int64_t r = blockIdx.x; r < pairs * job.angles; r += gridDim.x) {
        const int64_t pair = r / job.angles, a = r - pair * job.angles;
        const bool two = 2 * pair + 1 < job.to.slices;
        if (2 * pair >= job.to.slices)
            return;
        float *even = (float *)row_of(job.to, 2 * pair, a),
              *odd = (float *)row_of(job.to, two ? 2 * pair + 1 : 2 * pair, a);
        for (int64_t b = threadIdx.x; b < job.cols; b += MB_THREADS) {
            const float2 v = job.samples[r * n + b];
            even[b] = v.x;
            if (two)
                odd[b] = v.y;
        }
    }
}

/* Slices first ... of an array, of which there are `slices`. */
static fourier_rows rows_of(const mb_array *array, int64_t first, int64_t slices)
{
    const int rank = array->shape.rank;
    fourier_rows rows;
    rows.stride_z = rank == 3 ? array->strides[0] : 0;
    rows.stride_row = array->strides[rank - 2];
    rows.data = (float *)array->data + first * rows.stride_z;
    rows.slices = slices - first;
    return rows;
}

/* Of `pairs` pairs, each `points` from the last, one at a time. */
static mb_status transform(const mb_op_call *call, int fft, float2 *data, int64_t pairs,
                           int64_t points)
{
    for (int64_t q = 0; q < pairs; q++)
        MB_TRY(mb_cuda_transform(call, fft, data + q * points, data + q * points,
                                 MB_FOURIER_PROJECT_WORK + fft));
    return MB_STATUS_OK;
}

/* Steps 7 and 6. */
static mb_status make_cells(const mb_op_call *call, const mb_fourier_project_job *sizes,
                            const fourier_embed_job &job, int64_t pairs)
{
    const int64_t grid = sizes->l.grid;
    if (sizes->l.own)
        return fourier_embed(job, pairs, mb_stream(call));
    fourier_spread<<<mb_blocks(call, pairs * grid, 1), MB_THREADS, 0, mb_stream(call)>>>(job,
                                                                                         pairs);
    MB_LAUNCHED("fourier_spread");
    return transform(call, sizes->image, job.cells, pairs, grid * grid);
}

/* Steps 3 and 2. */
static mb_status make_rows(const mb_op_call *call, const mb_fourier_project_job *sizes,
                           const fourier_back_job &job, int64_t pairs)
{
    const int64_t n = sizes->l.samples;
    if (sizes->l.fused)
        return fourier_back(job, (int)sizes->row_threads, pairs, mb_stream(call));
    MB_TRY(transform(call, sizes->row, (float2 *)job.samples, pairs, job.angles * n));
    fourier_unpair<<<mb_blocks(call, pairs * job.angles, 1), MB_THREADS, 0, mb_stream(call)>>>(
        job, pairs, n);
    MB_LAUNCHED("fourier_unpair");
    return MB_STATUS_OK;
}

static fourier_embed_job embedding(const mb_op_call *call, const mb_fourier_project_job *sizes,
                                   const mb_gridding *gridding)
{
    const mb_fourier_layout *l = &sizes->l;
    fourier_embed_job job = {};
    job.image.lines = (float2 *)call->slots[MB_FOURIER_PROJECT_LINES];
    job.image.deapodise = (const float *)call->slots[MB_FOURIER_DEAPODISE];
    job.image.g = sizes->g;
    job.image.grid = (int)l->grid;
    job.image.kept = l->own ? (int)(l->grid / l->threads) : 0;
    job.image.reach = gridding->outer + 2.0f; /* a window's cells may lie a little beyond it */
    job.image.scale = (float)(sizes->g.scale / (double)l->samples);
    job.cells = (float2 *)call->slots[MB_FOURIER_PROJECT_CELLS];
    job.ahead = (int)call->device->facts.threads;
    return job;
}

/* Pairs of a batch are filled up to so many, which lie side by side. */
static int side_by_side(const mb_fourier_layout *l, int64_t pairs, fourier_embed_job *job)
{
    const int columns = l->own ? (int)MB_FOURIER_COLUMNS(l->threads) : 1;
    int side = 1;
    while (columns > 1 && side < pairs)
        side *= 2;
    job->side = side;
    job->lanes = side < columns ? side : columns;
    job->tile = columns / job->lanes;
    return side;
}

extern "C" mb_status mb_cuda_fourier_project(const mb_op_call *call)
{
    const mb_array *volume = call->arrays[MB_FOURIER_PROJECT_VOLUME],
                   *result = call->arrays[MB_FOURIER_PROJECT_RESULT];
    mb_fourier_project_job sizes;
    mb_fourier_project_planned(&sizes, call);
    const mb_parallel_geometry &g = sizes.g;
    const mb_fourier_layout &l = sizes.l;
    if (g.rows == 0)
        return MB_STATUS_OK;
    const mb_gridding gridding = mb_fourier_gridding(sizes.adjoint.accuracy, &g, l.samples, l.grid);
    fourier_embed_job embed = embedding(call, &sizes, &gridding);
    fourier_polar_job polar = {};
    polar.g = gridding;
    polar.rays = (const float4 *)call->slots[MB_FOURIER_RAYS];
    polar.angles = (const mb_fourier_angle *)call->slots[MB_FOURIER_ANGLES];
    polar.cells = embed.cells;
    polar.samples = (float2 *)call->slots[MB_FOURIER_PROJECT_SAMPLES];
    polar.n = (int)l.samples;
    fourier_back_job back = {};
    back.samples = polar.samples;
    back.angles = (int)g.angles;
    back.cols = (int)g.cols;
    back.kept = l.fused ? (int)(l.samples / sizes.row_threads) : 0;
    MB_TRY(fourier_make_tables(call, &sizes.adjoint, &g, &gridding, l.own));
    for (int64_t first = 0; first < g.rows; first += 2 * l.pairs) {
        if (mb_cuda_core->cancelled())
            return MB_STATUS_CANCELLED;
        const int64_t left = (g.rows - first + 1) / 2, most = left < l.pairs ? left : l.pairs;
        const int side = side_by_side(&l, most, &embed);
        const int64_t pairs = (most + side - 1) / side * side;
        embed.image.to = rows_of(volume, first, g.rows);
        back.to = rows_of(result, first, g.rows);
        polar.pairs = (int)pairs;
        MB_TRY(make_cells(call, &sizes, embed, pairs));
        MB_TRY(fourier_polar_of(polar, side, mb_stream(call)));
        MB_TRY(make_rows(call, &sizes, back, pairs));
    }
    return MB_STATUS_OK;
}
