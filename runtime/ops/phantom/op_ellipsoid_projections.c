/*
** ellipsoid_projections: exact parallel-beam line integrals of a sum of ellipsoids, the analytic
** phantom that simulated scans and accuracy figures are made from.
**
** Lengths in pixels, heights and positions relative to the rotation axis and the middle row; X
** right, Y up, as in parallel_geometry.h. An ellipsoid with half axes a, b, c, turned by phi about
** the vertical, cuts the plane of height z in an ellipse with half axes s a and s b, s^2 = 1 - ((z
** - z0)/c)^2. With w^2 = s^2 (a^2 cos^2 + b^2 sin^2)(t - phi) and e the distance of the ray from
** the ellipse's center, the ray's length inside is 2 s^2 a b sqrt(w^2 - e^2) / w^2 for |e| < w (Kak
** and Slaney, Principles of Computerized Tomographic Imaging, 1988, section 3.1). A detector bin
** averages `subrays` rays.
*/
#include "ops/phantom/op_ellipsoid_projections.h"
#include "ops/op_args.h"
#include "ops/tomography/parallel_geometry.h"

#define PARAMS mb_ellipsoid_projections_params

static const mb_op_arg args[] = {
    MB_ELLIPSOIDS_ARG,
    MB_VECTOR(angles, MB_ANY, "rad", "projection angles"),
    MB_VECTOR(heights, MB_ANY, "px", "height of each detector row above the middle"),
    MB_INT_REQUIRED(cols, 1, 1 << 24, 0, "px", "detector columns"),
    MB_FLOAT(center, -MB_FARTHEST_PX, MB_FARTHEST_PX, NAN, "px",
             "0-based column of the rotation axis; default (cols - 1) / 2"),
    MB_VECTOR_OPTION(shifts, -MB_FARTHEST_PX, MB_FARTHEST_PX, "px",
                     "horizontal shift of each projection"),
    MB_INT(subrays, 1, 64, 8, NULL, "rays averaged in each bin"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 3, 3, "line integrals (angle, row, column)")};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_ellipsoid_projections_params *p = params;
    MB_TRY(mb_ellipsoids_check(&p->ellipsoids));
    if (p->shifts.count && p->shifts.count != p->angles.count)
        return mb_fail(MB_STATUS_SHAPE, "shifts",
                       "%lld shifts were given for %lld angles; give one each",
                       (long long)p->shifts.count, (long long)p->angles.count);
    arrays[0] = (mb_spec){true, MB_F32, {3, {p->angles.count, p->heights.count, p->cols}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_ellipsoid_projections_params *p = params;
    (void)arrays;
    uint64_t numbers = (uint64_t)(p->ellipsoids.count + 2 * p->angles.count + p->heights.count);
    bool table = planner->device->facts.compute_capability > 0;
    mb_planner_slot(planner, "table", table ? mb_bytes_mul(numbers, sizeof(double)) : 0, 0, 0);
}

/* Adds one ellipsoid's integrals at one height and angle to a row of bins. */
static void add_row(const mb_ellipsoid_projections_params *p, const mb_ellipsoid *e, double angle,
                    double axis, double height, float *row)
{
    double s2 = mb_ellipsoid_section(e, height);
    if (s2 <= 0)
        return;
    mb_ellipsoid_shadow shadow = mb_ellipsoid_shadow_of(e, s2, angle, axis, p->subrays);
    int64_t first, last;
    mb_ellipsoid_columns(shadow.middle - shadow.w - 0.5, shadow.middle + shadow.w + 0.5, p->cols,
                         &first, &last);
    for (int64_t x = first; x <= last; x++)
        row[x] += (float)mb_ellipsoid_bin(&shadow, x, p->subrays);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_ellipsoid_projections_params *p = call->params;
    float *out = call->arrays[MB_ELLIPSOID_PROJECTIONS_RESULT]->data;
    int64_t rows = p->heights.count, lines = p->angles.count * rows,
            count = p->ellipsoids.count / MB_ELLIPSOID_NUMBERS;
    double center = isnan(p->center) ? 0.5 * (double)(p->cols - 1) : p->center;
#pragma omp parallel for schedule(dynamic, 8) num_threads(call->device->facts.threads)
    for (int64_t line = 0; line < lines; line++) {
        float *row = out + line * p->cols;
        int64_t a = line / rows;
        memset(row, 0, (size_t)p->cols * sizeof *row);
        if (mb_cancelled())
            continue;
        for (int64_t k = 0; k < count; k++) {
            mb_ellipsoid e = mb_ellipsoid_at(p->ellipsoids.values, k);
            add_row(p, &e, p->angles.values[a],
                    center + (p->shifts.count ? p->shifts.values[a] : 0),
                    p->heights.values[line % rows], row);
        }
    }
    return mb_cancel_check();
}

static const char *const samples[] = {
    "{inputs = {}, params = {ellipsoids = {1, 5, 3, 4, 1, -1, 0, 0.3}, angles = {0, 0.7, 2}, "
    "heights = {-1, 0}, cols = 17}}",
    "{inputs = {}, params = {ellipsoids = {1, 5, 3, 4, 1, -1, 0, 0.3, -0.5, 2, 2, 2, 0, 0, 1, 0}, "
    "angles = {1}, heights = {0}, cols = 16, center = 6.25, shifts = {0.5}, subrays = 1}}"};

const mb_op mb_op_ellipsoid_projections = {
    .name = "ellipsoid_projections",
    .summary = "Exact line integrals of a sum of ellipsoids: an analytic tomography scan.",
    .doc = "The result (angle, row, column) is in density times pixels. Densities add where "
           "ellipsoids overlap.\n"
           "Positions are relative to the rotation axis and the middle row. At angle 0, X points "
           "to the right and Y up.",
    .reference =
        "A. C. Kak, M. Slaney, Principles of Computerized Tomographic Imaging, 1988, section 3.1",
    MB_OP_PLANNED_PARTS,
    .uncut = "it reads no array; a part of the result is made from a part of the heights or angles",
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 1e-6,
};
