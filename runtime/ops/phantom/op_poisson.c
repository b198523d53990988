/*
** poisson: replaces every mean by a Poisson-distributed count. Counter-based random numbers: the
** result depends on the seed and the element's index alone, not on threads or chunks (`first` is
** the index of the first element).
**
** Means below 10: products of uniforms (Knuth). Above: transformed rejection (Hoermann, The
** transformed rejection method for generating Poisson random variables, 1993, algorithm PTRS).
*/
#include "ops/phantom/op_poisson.h"
#include "ops/op_args.h"

#define PARAMS mb_poisson_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("mean", MB_BIT(MB_F32), 0, MB_MAX_RANK,
                "means; negative and non-finite means give 0"),
    MB_INT(seed, 0, 4503599627370496.0, 0, NULL, "the same seed gives the same counts"),
    MB_INT(first, 0, 4503599627370496.0, 0, NULL,
           "index of the first element in the whole data set, for work in chunks"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 0, MB_MAX_RANK, "counts")};

/* The elements of a piece must be neighbors in the whole data set. */
static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    (void)params;
    for (int i = 0; i < cut->split->axis; i++)
        if (arrays[0].shape.dims[i] != 1)
            return false;
    return true;
}

static void piece(const mb_spec *arrays, int axis, mb_op_piece *piece, void *params, double *room)
{
    mb_poisson_params *p = params;
    int64_t elements = piece->input.first;
    (void)room;
    for (int i = axis + 1; i < arrays[0].shape.rank; i++)
        elements *= arrays[0].shape.dims[i];
    p->first += elements;
}

static const mb_op_split split[] =
    MB_SPLIT_AXES(.when = "the axis is the first, or follows axes of one element", .adapt = adapt,
                  .piece = piece);

static mb_status infer(const void *params, mb_spec *arrays)
{
    (void)params;
    arrays[1] = arrays[0];
    return MB_STATUS_OK;
}

enum { BLOCK = 4096 }; /* elements that a thread takes at a time */

static mb_status run_host(const mb_op_call *call)
{
    const mb_poisson_params *p = call->params;
    const float *mean = call->arrays[0]->data;
    float *out = call->arrays[1]->data;
    int64_t count = (int64_t)mb_array_elements(call->arrays[0]);
    uint64_t key = mb_poisson_mix((uint64_t)p->seed);
#pragma omp parallel for schedule(static) num_threads(call->device->facts.threads)
    for (int64_t block = 0; block < count; block += BLOCK) {
        const int64_t end = count - block < BLOCK ? count : block + BLOCK;
        for (int64_t i = mb_cancelled() ? end : block; i < end; i++)
            out[i] = mb_poisson_count(mean[i], key, p->first + i);
    }
    return MB_STATUS_OK;
}

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 16}}, params = {seed = 1}}",
    "{inputs = {{'f32', 7}}, params = {seed = 2, first = 1000}}",
    "{inputs = {{'f32', 1, 5, 16, high = 40}}, params = {seed = 3, first = 10}}",
    "{inputs = {{'f32', 1, 1, 19, high = 40}}}"};

const mb_op mb_op_poisson = {
    .name = "poisson",
    .summary = "Photon noise: a Poisson-distributed count for every mean.",
    .doc = "Counts are whole numbers in f32, exact up to 2^24. out = mean works in place.",
    .reference = "W. Hoermann, The transformed rejection method for generating Poisson random "
                 "variables, 1993",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_CONTIGUOUS,
    .alias = 1u << 0,
    .tolerance =
        /* the same random numbers; a logarithm that differs in its last bit could tip a draw */
    1e-6,
};
