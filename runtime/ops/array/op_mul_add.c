/*
** mul_add: dst[D] = a * dst[D] + b * other[O] in place, D and O rectangles of one size. 2-D, f32, a
** row pitch of its own for each array; no temporaries.
*/
#include "core/multiversion.h"
#include "ops/array/op_mul_add.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"

#define PARAMS mb_mul_add_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("dst", MB_BIT(MB_F32), 2, 2,
                   "image that is changed inside its region (row, column)"),
    MB_ARRAY_IN("other", MB_BIT(MB_F32), 2, 2, "image that is added (row, column); not dst itself"),
    MB_FLOAT(a, MB_ANY, 1, NULL, "factor of dst; 0 overwrites dst, even NaN"),
    MB_FLOAT(b, MB_ANY, 1, NULL, "factor of other"),
    MB_VECTOR_OPTION(
        region, 0, 1e12, "px",
        "part of dst, {y0, y1, x0, x1}, 0-based; y1 and x1 are excluded; default all of dst"),
    MB_VECTOR_OPTION(other_region, 0, 1e12, "px",
                     "part of other, {y0, y1, x0, x1}, of the same size; default all of other")};

static const char *const samples[] = {
    "{inputs = {{'f32', 5, 17}, {'f32', 5, 17}}, params = {a = 3, b = 5}}",
    "{inputs = {{'f32', 30, 45}, {'f32', 22, 40}}, params = {a = 0.5, b = 1.7, region = {10, 20, "
    "15, 24}, other_region = {2, 12, 20, 29}}}",
    "{inputs = {{'f32', 9, 300}, {'f32', 4, 7}}, params = {a = 0, b = -1, region = {5, 9, 2, 9}}}"};

static mb_status check_region(const char *name, const mb_vector *region, const mb_shape *shape)
{
    mb_mul_add_region r;
    if (region->count != 0 && region->count != 4)
        return mb_fail(MB_STATUS_ARGUMENT, name, "%s has %lld numbers; give {y0, y1, x0, x1}", name,
                       (long long)region->count);
    MB_TRY(mb_check_whole(name, region));
    r = mb_mul_add_region_of(region, shape);
    if (r.y0 >= r.y1 || r.x0 >= r.x1 || r.y1 > shape->dims[0] || r.x1 > shape->dims[1])
        return mb_fail(MB_STATUS_ARGUMENT, name,
                       "%s {%lld, %lld, %lld, %lld} must be {y0, y1, x0, x1} with 0 <= y0 < y1 <= "
                       "%lld and 0 <= x0 < x1 <= %lld",
                       name, (long long)r.y0, (long long)r.y1, (long long)r.x0, (long long)r.x1,
                       (long long)shape->dims[0], (long long)shape->dims[1]);
    return MB_STATUS_OK;
}

static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    const mb_mul_add_params *p = params;
    (void)arrays, (void)cut;
    return p->region.count == 0 && p->other_region.count == 0;
}

#define WHOLE .alike = 1u << MB_MUL_ADD_OTHER, .when = "no region is given", .adapt = adapt
static const mb_op_split split[] = {MB_SPLIT_AXIS(0, WHOLE), MB_SPLIT_AXIS(1, WHOLE), MB_SPLIT_END};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_mul_add_params *p = params;
    mb_mul_add_region d, o;
    MB_TRY(check_region("region", &p->region, &arrays[MB_MUL_ADD_DST].shape));
    MB_TRY(check_region("other_region", &p->other_region, &arrays[MB_MUL_ADD_OTHER].shape));
    d = mb_mul_add_region_of(&p->region, &arrays[MB_MUL_ADD_DST].shape);
    o = mb_mul_add_region_of(&p->other_region, &arrays[MB_MUL_ADD_OTHER].shape);
    if (d.y1 - d.y0 != o.y1 - o.y0 || d.x1 - d.x0 != o.x1 - o.x0)
        return mb_fail(MB_STATUS_ARGUMENT, "other_region",
                       "the region of dst is %lld x %lld and that of other %lld x %lld; they must "
                       "be equal",
                       (long long)(d.y1 - d.y0), (long long)(d.x1 - d.x0), (long long)(o.y1 - o.y0),
                       (long long)(o.x1 - o.x0));
    return MB_STATUS_OK;
}

/* Products are exact in double, whether the compiler fuses one with the sum or not. */
MB_MULTIVERSION
static void combine(float *restrict to, const float *restrict from, int64_t n, float a, float b)
{
    if (a == 0)
        for (int64_t i = 0; i < n; i++)
            to[i] = b * from[i];
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)((double)a * (double)to[i] + (double)b * (double)from[i]);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_mul_add_params *p = call->params;
    mb_array *dst = call->arrays[MB_MUL_ADD_DST];
    const mb_array *other = call->arrays[MB_MUL_ADD_OTHER];
    mb_mul_add_region d = mb_mul_add_region_of(&p->region, &dst->shape);
    mb_mul_add_region o = mb_mul_add_region_of(&p->other_region, &other->shape);
    int64_t rows = d.y1 - d.y0, cols = d.x1 - d.x0;
    int threads = rows * cols < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t y = 0; y < rows; y++)
        if (!mb_cancelled())
            combine((float *)dst->data + (d.y0 + y) * dst->strides[0] + d.x0,
                    (const float *)other->data + (o.y0 + y) * other->strides[0] + o.x0, cols,
                    (float)p->a, (float)p->b);
    return MB_STATUS_OK;
}

const mb_op mb_op_mul_add = {
    .name = "mul_add",
    .summary = "Weighted sum of two images in place: dst[D] = a dst[D] + b other[O].",
    .doc = "D (region) and O (other_region) are rectangles of equal size. Elements outside D keep "
           "their values. Nothing is allocated. dst and other must not share memory.",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 1e-6, /* fused or separate multiplication and addition */
};
