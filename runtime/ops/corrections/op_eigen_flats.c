/*
** eigen_flats: the images that a beam is made of: weighted sums of frames, then a constant and two
** gradients. a (n, row, column), f32, rows anywhere -> result (components + 3, row, column).
*/
#include "core/multiversion.h"
#include "ops/corrections/op_eigen_flats.h"
#include "ops/op_args.h"

#define PARAMS mb_eigen_flats_params

enum { BLOCK = 256 };

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 3, 3, "frames (n, row, column); rows anywhere"),
    MB_VECTOR(weights, MB_ANY, NULL,
              "factors of the n frames for each component, one component after the other"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 3, 3,
                 "components, a constant 1, gradients along columns and rows from -1 to 1")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 4, 17}}, params = {weights = {1, -1, 0.5, 0.25, 0, 2}}}",
    "{inputs = {{'f32', 1, 1, 300}}, params = {weights = {0.3}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_eigen_flats_params *p = params;
    const mb_shape *shape = &arrays[MB_EIGEN_FLATS_A].shape;
    const int64_t n = shape->dims[0];
    if (n < 1 || p->weights.count % n)
        return mb_fail(MB_STATUS_ARGUMENT, "weights",
                       "weights has %lld numbers, which is no multiple of the %lld frames; give as "
                       "many for each",
                       (long long)p->weights.count, (long long)n);
    arrays[MB_EIGEN_FLATS_RESULT] = (mb_spec){
        true,
        MB_F32,
        {3, {p->weights.count / n + MB_EIGEN_FLATS_EXTRA, shape->dims[1], shape->dims[2]}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_eigen_flats_params *p = params;
    const bool host = planner->device->facts.compute_capability == 0;
    (void)arrays;
    mb_planner_slot(planner, "weights", host ? 0 : (uint64_t)p->weights.count * 8, 0, 0);
}

MB_MULTIVERSION
static void add_scaled(double *sums, const float *from, double weight, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sums[i] += weight * (double)from[i];
}

static void make_row(const mb_op_call *call, int64_t k, int64_t y)
{
    const mb_eigen_flats_params *p = call->params;
    const mb_array *a = call->arrays[MB_EIGEN_FLATS_A],
                   *result = call->arrays[MB_EIGEN_FLATS_RESULT];
    const int64_t n = a->shape.dims[0], h = a->shape.dims[1], w = a->shape.dims[2];
    const int64_t components = p->weights.count / n;
    float *to = (float *)result->data + k * result->strides[0] + y * result->strides[1];
    if (k >= components) {
        for (int64_t x = 0; x < w; x++)
            to[x] = k == components       ? 1.0f
                    : k == components + 1 ? mb_eigen_flats_ramp(x, w)
                                          : mb_eigen_flats_ramp(y, h);
        return;
    }
    for (int64_t x = 0; x < w; x += BLOCK) {
        const int64_t many = w - x < BLOCK ? w - x : BLOCK;
        double sums[BLOCK] = {0};
        for (int64_t j = 0; j < n; j++)
            add_scaled(sums, (const float *)a->data + j * a->strides[0] + y * a->strides[1] + x,
                       p->weights.values[k * n + j], many);
        for (int64_t i = 0; i < many; i++)
            to[x + i] = (float)sums[i];
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_array *result = call->arrays[MB_EIGEN_FLATS_RESULT];
    const int64_t frames = result->shape.dims[0], h = result->shape.dims[1];
    const int threads = call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < frames * h; i++)
        if (!mb_cancelled())
            make_row(call, i / h, i % h);
    return MB_STATUS_OK;
}

const mb_op mb_op_eigen_flats = {
    .name = "eigen_flats",
    .summary = "Weighted sums of frames, then a constant and two gradients.",
    .doc = "Component k is the sum over frames j of weights[(k - 1) n + j] times frame j, in "
           "double precision: an eigenvector of the frames' inner products makes an eigen flat of "
           "them. After the components come a constant 1, and gradients from -1 to 1 along columns "
           "and along rows.",
    .reference = "C. Jailin et al., J. Synchrotron Rad. 24 (2017) 220",
    MB_OP_PLANNED_PARTS,
    .strides = MB_STRIDES_ROWS,
    .uncut = "its gradients span whole frames",
    .tolerance = 1e-6, /* sums are fused or not */
};
