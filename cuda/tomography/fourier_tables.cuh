/*
** The tables of fourier_reconstruct, made on the device: by a host thread they would take as long
** as a slice does. The numbers of the call (angles, shifts, weights) rest in the slot RAYS until
** the rays are put there; what sorting needs, in the slot STARTS.
*/
#ifndef MB_CUDA_FOURIER_TABLES_CUH
#define MB_CUDA_FOURIER_TABLES_CUH

#include "shared/cuda_launch.cuh"
#include "ops/tomography/op_fourier_reconstruct.h"

struct fourier_tables {
    mb_parallel_geometry g;
    mb_gridding gridding; /* of cells */
    const double *given;  /* angles; then shifts and weights, where there are some */
    bool shifted, weighted, exchange;
    double *radians; /* temporary, as are */
    float *turns;
    mb_fourier_angle *angles;
    mb_gridding_ray *rays;
    int32_t *starts;
    float *deapodise;
    int side; /* the larger one of the region */
};

__global__ static void __launch_bounds__(MB_THREADS)
    fourier_make_angles(const __grid_constant__ fourier_tables tables)
{
    const int count = (int)tables.g.angles, i = blockIdx.x * MB_THREADS + threadIdx.x;
    if (i < count) {
        const double t = tables.given[i];
        const double shift = tables.shifted ? tables.given[count + i] : 0.0;
        const int before = tables.shifted ? 2 : 1;
        const double weight = tables.weighted ? tables.given[before * (int64_t)count + i] : 1.0;
        tables.angles[i] = mb_fourier_angle_of(&tables.g, t, shift, weight);
        tables.radians[i] = t;
        tables.turns[i] = (float)mb_fourier_ray_turn(tables.exchange, t);
    }
    if (i <= tables.side / 2)
        tables.deapodise[i] = (float)mb_gridding_deapodise(&tables.gridding, i);
}

/* Rays by their turns, equal ones by their angles. A warp counts how many come before its ray. */
__global__ static void __launch_bounds__(MB_THREADS)
    fourier_make_rays(const __grid_constant__ fourier_tables tables)
{
    const int count = (int)tables.g.angles, lane = threadIdx.x & 31;
    const int a = (int)((blockIdx.x * (int64_t)MB_THREADS + threadIdx.x) / 32);
    if (a >= count)
        return; /* the whole warp */
    const float turn = tables.turns[a];
    int before = 0;
    for (int b = lane; b < count; b += 32) {
        const float other = tables.turns[b];
        before += other < turn || (other == turn && b < a);
    }
    for (int step = 16; step > 0; step >>= 1)
        before += __shfl_xor_sync(0xffffffffu, before, step);
    if (lane == 0)
        tables.rays[before] =
            mb_fourier_ray_of(&tables.gridding, tables.exchange, tables.radians[a], a);
}

/* starts[b]: how many rays come before bucket b. */
__global__ static void __launch_bounds__(MB_THREADS)
    fourier_make_starts(const __grid_constant__ fourier_tables tables)
{
    const int count = (int)tables.g.angles, buckets = tables.gridding.buckets;
    const int b = blockIdx.x * MB_THREADS + threadIdx.x;
    if (b > buckets)
        return;
    const float edge = mb_fourier_bucket(&tables.gridding, b);
    int low = 0, high = count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (b == buckets || tables.rays[middle].turn < edge)
            low = middle + 1;
        else
            high = middle;
    }
    tables.starts[b] = low;
}

static inline mb_status fourier_make_tables(const mb_op_call *call,
                                            const mb_fourier_reconstruct_params *p,
                                            const mb_parallel_geometry *g,
                                            const mb_gridding *gridding, bool exchange)
{
    const int64_t count = g->angles, side = mb_fourier_side(g);
    const mb_vector *given[] = {&p->angles, &p->shifts, &p->weights};
    const int64_t entries = count > side / 2 + 1 ? count : side / 2 + 1;
    cudaStream_t stream = mb_stream(call);
    fourier_tables tables;
    char *raw = (char *)call->slots[MB_FOURIER_RAYS];
    static_assert(sizeof(mb_gridding_ray) >= 3 * sizeof(double), "the call's numbers fit");
    tables.given = (const double *)raw;
    for (const mb_vector *vector : given)
        if (vector->count) {
            MB_TRY(mb_upload(call, raw, vector->values, (uint64_t)count * sizeof(double)));
            raw += count * sizeof(double);
        }
    tables.g = *g;
    tables.gridding = *gridding;
    tables.shifted = p->shifts.count > 0;
    tables.weighted = p->weights.count > 0;
    tables.exchange = exchange;
    tables.angles = (mb_fourier_angle *)call->slots[MB_FOURIER_ANGLES];
    tables.rays = (mb_gridding_ray *)call->slots[MB_FOURIER_RAYS];
    tables.starts = (int32_t *)call->slots[MB_FOURIER_STARTS];
    tables.deapodise = (float *)call->slots[MB_FOURIER_DEAPODISE];
    tables.radians = (double *)tables.starts; /* 12 bytes an angle of 16 */
    tables.turns = (float *)(tables.radians + count);
    tables.side = (int)side;
    fourier_make_angles<<<(unsigned)((entries + MB_THREADS - 1) / MB_THREADS), MB_THREADS, 0,
                          stream>>>(tables);
    MB_LAUNCHED("fourier_make_angles");
    fourier_make_rays<<<(unsigned)((count * 32 + MB_THREADS - 1) / MB_THREADS), MB_THREADS, 0,
                        stream>>>(tables);
    MB_LAUNCHED("fourier_make_rays");
    fourier_make_starts<<<(unsigned)((gridding->buckets + MB_THREADS) / MB_THREADS), MB_THREADS, 0,
                          stream>>>(tables);
    MB_LAUNCHED("fourier_make_starts");
    return MB_STATUS_OK;
}

#endif
