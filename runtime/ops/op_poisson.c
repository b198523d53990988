/*
** poisson: replaces every mean by a Poisson-distributed count. Counter-based random numbers: the result depends on the seed
** and the element's index alone, not on threads or chunks (`first` is the index of the first element).
**
** Means below 10: products of uniforms (Knuth). Above: transformed rejection (Hoermann, The transformed rejection method
** for generating Poisson random variables, 1993, algorithm PTRS).
*/
#include "ops/op.h"
#include <math.h>

typedef struct poisson_params {
    int64_t seed, first;
} poisson_params;

static const mb_op_arg args[] = {
    {.name = "mean", .kind = MB_ARG_IN, .required = true, .dtypes = MB_BIT(MB_F32), .rank_max = MB_MAX_RANK,
     .doc = "means, 0 or more; negative and non-finite ones give 0"},
    {.name = "seed", .kind = MB_ARG_INT, .initial = 0, .min = 0, .max = 4503599627370496.0, .offset = offsetof(poisson_params, seed),
     .doc = "the same seed gives the same counts"},
    {.name = "first", .kind = MB_ARG_INT, .initial = 0, .min = 0, .max = 4503599627370496.0, .offset = offsetof(poisson_params, first),
     .doc = "index of the first element in the whole data set, for work in chunks"},
    {.name = "result", .kind = MB_ARG_OUT, .dtypes = MB_BIT(MB_F32), .rank_max = MB_MAX_RANK, .doc = "counts"},
    {0},
};

static mb_status infer(const void *params, mb_spec *arrays) {
    (void)params;
    arrays[1] = arrays[0];
    return MB_STATUS_OK;
}

/* splitmix64's finaliser over a counter. */
static uint64_t mix(uint64_t z) {
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform in (0, 1]. */
static double uniform(uint64_t *state) {
    *state += UINT64_C(0x632be59bd9b4e019);
    return ((double)(mix(*state) >> 11) + 1) * 0x1p-53;
}

static double draw_small(double mean, uint64_t *state) {
    double limit = exp(-mean), product = uniform(state);
    double count = 0;
    while (product > limit) {
        product *= uniform(state);
        count++;
    }
    return count;
}

static double draw_large(double mean, uint64_t *state) {
    double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
    double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2), log_mean = log(mean);
    for (;;) {
        double u = uniform(state) - 0.5, v = uniform(state), us = 0.5 - fabs(u);
        double k = floor((2 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= v_r)
            return k;
        if (k < 0 || (us < 0.013 && v > us))
            continue;
        int sign;
        if (log(v) + log(inverse_alpha) - log(a / (us * us) + b) <= -mean + k * log_mean - lgamma_r(k + 1, &sign))
            return k;
    }
}

static mb_status run_host(const mb_op_call *call) {
    const poisson_params *p = call->params;
    const float *mean = call->arrays[0]->data;
    float *out = call->arrays[1]->data;
    int64_t count = (int64_t)mb_array_elements(call->arrays[0]);
    uint64_t key = mix((uint64_t)p->seed);
#pragma omp parallel for schedule(static) num_threads(call->device->facts.threads)
    for (int64_t i = 0; i < count; i++) {
        uint64_t state = mix(key ^ mix((uint64_t)(p->first + i)));
        double m = (double)mean[i];
        out[i] = (float)(!(m > 0) || !isfinite(m) ? 0 : m < 10 ? draw_small(m, &state) : draw_large(m, &state));
    }
    return MB_STATUS_OK;
}

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 16}}, params = {seed = 1}}",
    "{inputs = {{'f32', 7}}, params = {seed = 2, first = 1000}}",
    NULL,
};

const mb_op mb_op_poisson = {
    .name = "poisson",
    .summary = "Photon noise: a Poisson-distributed count for every mean.",
    .doc = "Counts are whole numbers in f32 (exact up to 2^24). In place allowed.",
    .reference = "W. Hoermann, The transformed rejection method for generating Poisson random variables, 1993",
    .category = "phantom",
    .args = args,
    .params_bytes = sizeof(poisson_params),
    .strides = MB_STRIDES_CONTIGUOUS,
    .alias = 1u << 0,
    .tolerance = 0,
    .samples = samples,
    .infer = infer,
    .run_host = run_host,
};
