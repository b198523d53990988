/*
** rl_total_variation: what the host and the CUDA kernel share. Arrays: estimate (in f32, dense grid),
** correction (inout f32, padded rows); any strides. No scratch. correction /= max(1 - lambda div(grad
** x / |grad x|), 0.1): mb_rl_tv_divergence.
**
** Where the estimate is flat this is a step of diffusion, x + lambda x / |grad x| laplace(x). The
** shorter the gradient, the longer is the step, and beyond a length of its own it overshoots: noise
** and rounding would grow to a pattern of neighbors by turns. So |grad x| counts as at least `flat`
** lambda x sum(1 / spacing^2). The highest frequency has the eigenvalue 4 sum(1 / spacing^2) and
** becomes smaller if flat is above 2, or above 3 where momentum goes ahead along the last step. The
** bound is of an element alone, so tiles have it, too.
**
** The estimate may begin anywhere in the grid (`start`), go on across the grid's end, and have fewer
** elements than the grid (`extent`): nothing is known beyond. With `at` the correction is a tile of
** the estimate, which has what the tile needs: one element around it where there is one.
*/
#ifndef MB_OPS_OP_RL_TOTAL_VARIATION_H
#define MB_OPS_OP_RL_TOTAL_VARIATION_H

#include "ops/array/padded_grid.h"
#include <math.h>

typedef struct mb_rl_total_variation_params {
    double lambda, epsilon, flat;
    mb_vector spacing; /* one per axis, or one, or absent (1) */
    mb_vector start, extent, at;
} mb_rl_total_variation_params;

enum { MB_RL_TOTAL_VARIATION_ESTIMATE, MB_RL_TOTAL_VARIATION_CORRECTION };

/* The smallest divisor. */
#define MB_RL_TV_LEAST 0.1f

/* A call: first and last are those elements of the estimate along each axis of the grid; the
** correction has the elements from `at` on. least: times an element, the shortest gradient. */
typedef struct mb_rl_tv {
    mb_grid_view estimate, correction;
    int64_t first[3], last[3], at[3], n[3];
    float inverse[3], lambda, epsilon, least;
} mb_rl_tv;

static inline mb_rl_tv mb_rl_tv_of(const mb_op_call *call)
{
    const mb_rl_total_variation_params *p = (const mb_rl_total_variation_params *)call->params;
    const mb_array *estimate = call->arrays[MB_RL_TOTAL_VARIATION_ESTIMATE];
    const int rank = estimate->shape.rank;
    double squares = 0;
    mb_rl_tv job;
    job.estimate = mb_grid_view_of(estimate);
    job.correction = mb_grid_view_of(call->arrays[MB_RL_TOTAL_VARIATION_CORRECTION]);
    job.lambda = (float)p->lambda;
    job.epsilon = (float)p->epsilon;
    mb_grid_vector(&p->start, 0, job.first);
    mb_grid_vector(&p->at, 0, job.at);
    for (int i = 0; i < 3; i++) {
        const int own = i - (3 - rank);
        const int64_t grid = job.estimate.n[i];
        const int64_t extent = own < 0 || !p->extent.count ? grid : (int64_t)p->extent.values[own];
        const double spacing =
            own < 0 || !p->spacing.count ? 1 : p->spacing.values[p->spacing.count == 1 ? 0 : own];
        job.last[i] = (job.first[i] + extent - 1) % grid;
        job.n[i] = p->at.count ? job.correction.n[i] : grid;
        job.inverse[i] = (float)(1 / spacing);
        squares += extent > 1 ? 1 / (spacing * spacing) : 0;
    }
    job.least = (float)(p->flat * p->lambda * squares);
    return job;
}

/* Steps to the element after p along an axis, and to the one before. */
MB_BOTH static inline int64_t mb_rl_tv_next(const mb_rl_tv *job, int axis, int64_t p)
{
    return p + 1 < job->estimate.n[axis] ? job->estimate.step[axis] : -p * job->estimate.step[axis];
}
MB_BOTH static inline int64_t mb_rl_tv_before(const mb_rl_tv *job, int axis, int64_t p)
{
    return p > 0 ? p - 1 : job->estimate.n[axis] - 1;
}

/* Forward difference along `axis` at p, over the length of the whole forward gradient there, or the
** least one; 0 beyond the last element. */
MB_BOTH static inline float mb_rl_tv_unit(const mb_rl_tv *job, int64_t pz, int64_t py, int64_t px,
                                          int axis)
{
    const int64_t *step = job->estimate.step;
    const float *at =
        (const float *)job->estimate.data + pz * step[0] + py * step[1] + px * step[2];
    float here = at[0];
    float dz = pz != job->last[0] ? (at[mb_rl_tv_next(job, 0, pz)] - here) * job->inverse[0] : 0;
    float dy = py != job->last[1] ? (at[mb_rl_tv_next(job, 1, py)] - here) * job->inverse[1] : 0;
    float dx = px != job->last[2] ? (at[mb_rl_tv_next(job, 2, px)] - here) * job->inverse[2] : 0;
    float length = sqrtf(dz * dz + dy * dy + dx * dx + job->epsilon * job->epsilon);
    const float least = job->least * here;
    length = length > least ? length : least;
    return (axis == 0 ? dz : axis == 1 ? dy : dx) / length;
}

/* div(grad x / |grad x|): backward differences of unit vectors, which are 0 outside. */
MB_BOTH static inline float mb_rl_tv_divergence(const mb_rl_tv *job, int64_t z, int64_t y,
                                                int64_t x)
{
    float sum = 0;
    for (int axis = 0; axis < 3; axis++) {
        const int64_t p = axis == 0 ? z : axis == 1 ? y : x;
        float unit = mb_rl_tv_unit(job, z, y, x, axis);
        if (p != job->first[axis]) {
            const int64_t b = mb_rl_tv_before(job, axis, p);
            unit -=
                mb_rl_tv_unit(job, axis == 0 ? b : z, axis == 1 ? b : y, axis == 2 ? b : x, axis);
        }
        sum += unit * job->inverse[axis];
    }
    return sum;
}

/* What the correction at an element of it is divided by. */
MB_BOTH static inline float mb_rl_tv_divisor(const mb_rl_tv *job, int64_t z, int64_t y, int64_t x)
{
    const float divisor =
        1 - job->lambda * mb_rl_tv_divergence(job, job->at[0] + z, job->at[1] + y, job->at[2] + x);
    return divisor > MB_RL_TV_LEAST ? divisor : MB_RL_TV_LEAST;
}

#endif
