/*
** ellipsoid_volume: the volume whose projections ellipsoid_projections gives, anti-aliased in the
** plane: a pixel that an ellipse's edge crosses averages subsamples x subsamples points; with
** subslices also across planes. Conventions as there.
*/
#include "ops/phantom/op_ellipsoid_volume.h"
#include "ops/op_args.h"

#define PARAMS mb_ellipsoid_volume_params

static const mb_op_arg args[] = {
    MB_ELLIPSOIDS_ARG,
    MB_VECTOR(heights, MB_ANY, "px", "height of each slice above the middle"),
    MB_VECTOR(size, 1, 1 << 24, "px", "slice extents ny, nx, or one number for both"),
    MB_INT(subsamples, 1, 64, 8, NULL, "points per side of a pixel that an edge crosses"),
    MB_INT(subslices, 1, 64, 1, NULL,
           "sections averaged over the 1 px height of a slice; 1: the section at its middle"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 3, 3, "density per px (slice, y, x)")};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_ellipsoid_volume_params *p = params;
    MB_TRY(mb_ellipsoids_check(&p->ellipsoids));
    if (p->size.count < 1 || p->size.count > 2)
        return mb_fail(MB_STATUS_ARGUMENT, "size",
                       "size has %lld numbers; give {ny, nx}, or one for both",
                       (long long)p->size.count);
    int64_t ny = (int64_t)p->size.values[0], nx = (int64_t)p->size.values[p->size.count - 1];
    arrays[0] = (mb_spec){true, MB_F32, {3, {p->heights.count, ny, nx}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_ellipsoid_volume_params *p = params;
    (void)arrays;
    uint64_t numbers = (uint64_t)(p->ellipsoids.count + p->heights.count);
    bool table = planner->device->facts.compute_capability > 0;
    mb_planner_slot(planner, "table", table ? mb_bytes_mul(numbers, sizeof(double)) : 0, 0, 0);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_ellipsoid_volume_params *p = call->params;
    const mb_shape *shape = &call->arrays[MB_ELLIPSOID_VOLUME_RESULT]->shape;
    float *out = call->arrays[MB_ELLIPSOID_VOLUME_RESULT]->data;
    int64_t ny = shape->dims[1], nx = shape->dims[2],
            count = p->ellipsoids.count / MB_ELLIPSOID_NUMBERS;
#pragma omp parallel for schedule(dynamic, 8) num_threads(call->device->facts.threads)
    for (int64_t line = 0; line < shape->dims[0] * ny; line++) {
        float *row = out + line * nx;
        double height = p->heights.values[line / ny],
               y = 0.5 * (double)(ny - 1) - (double)(line % ny);
        memset(row, 0, (size_t)nx * sizeof *row);
        if (mb_cancelled())
            continue;
        for (int64_t k = 0; k < count; k++) {
            mb_ellipsoid e = mb_ellipsoid_at(p->ellipsoids.values, k);
            double reach = mb_ellipsoid_reach(&e), middle = 0.5 * (double)(nx - 1) + e.x;
            double cosine = cos(e.phi), sine = sin(e.phi);
            if (fabs(y - e.y) > reach)
                continue;
            int64_t first, last;
            mb_ellipsoid_columns(middle - reach, middle + reach, nx, &first, &last);
            for (int64_t x = first; x <= last; x++)
                row[x] += (float)(e.density * mb_ellipsoid_part(&e, height, (double)x - middle,
                                                                y - e.y, cosine, sine,
                                                                p->subsamples, p->subslices));
        }
    }
    return mb_cancel_check();
}

static const char *const samples[] = {
    "{inputs = {}, params = {ellipsoids = {1, 5, 3, 4, 1, -1, 0, 0.3}, heights = {-1, 0}, size = "
    "{13, 17}}}",
    "{inputs = {}, params = {ellipsoids = {2, 4, 4, 4, 0, 0, 0, 0}, heights = {0}, size = {16}, "
    "subsamples = 3}}",
    "{inputs = {}, params = {ellipsoids = {2, 4, 4, 4, 0, 7, 0, 0, 1, 3, 5, 2, -4, 0, 1, 0.4}, "
    "heights = {-1, 0, 1, 2, 3}, size = {16, 19}, subsamples = 4, subslices = 5}}"};

const mb_op mb_op_ellipsoid_volume = {
    .name = "ellipsoid_volume",
    .summary =
        "Anti-aliased volume of a sum of ellipsoids: the result of a perfect reconstruction.",
    .doc = "The result is (slice, y, x). The middle of a slice is the rotation axis. Row 0 is on "
           "top (largest Y).",
    .reference =
        "A. C. Kak, M. Slaney, Principles of Computerized Tomographic Imaging, 1988, section 3.1",
    MB_OP_PLANNED_PARTS,
    .uncut = "it reads no array; a part of the result is made from a part of the heights",
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 1e-6,
};
