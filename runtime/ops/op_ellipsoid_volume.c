/*
** ellipsoid_volume: the volume whose projections ellipsoid_projections gives, anti-aliased in the plane: a pixel that an
** ellipse's edge crosses averages subsamples x subsamples points. Conventions as there.
*/
#include "ops/ellipsoids.h"
#include "ops/op.h"

typedef struct volume_params {
    mb_vector ellipsoids, heights, size;
    int64_t subsamples;
} volume_params;

#define MEMBER(name) offsetof(volume_params, name)
static const mb_op_arg args[] = {
    {.name = "ellipsoids", .kind = MB_ARG_VECTOR, .required = true, .offset = MEMBER(ellipsoids), .unit = "px, rad",
     .doc = "8 numbers each: density per px, half axes a, b, c, centre x, y, z, rotation phi about the vertical"},
    {.name = "heights", .kind = MB_ARG_VECTOR, .required = true, .offset = MEMBER(heights), .unit = "px",
     .doc = "height of each slice above the middle"},
    {.name = "size", .kind = MB_ARG_VECTOR, .required = true, .min = 1, .max = 1 << 24, .offset = MEMBER(size), .unit = "px",
     .doc = "slice extents ny, nx, or one number for both"},
    {.name = "subsamples", .kind = MB_ARG_INT, .initial = 8, .min = 1, .max = 64, .offset = MEMBER(subsamples),
     .doc = "points per pixel side where an edge passes"},
    {.name = "result", .kind = MB_ARG_OUT, .dtypes = MB_BIT(MB_F32), .rank_min = 3, .rank_max = 3,
     .doc = "density per px (slice, y, x)"},
    {0},
};

static mb_status infer(const void *params, mb_spec *arrays) {
    const volume_params *p = params;
    MB_TRY(mb_ellipsoids_check(&p->ellipsoids));
    if (p->size.count < 1 || p->size.count > 2)
        return mb_fail(MB_STATUS_ARGUMENT, "size", "%lld numbers; give ny, nx or one for both", (long long)p->size.count);
    int64_t ny = (int64_t)p->size.values[0], nx = (int64_t)p->size.values[p->size.count - 1];
    arrays[0] = (mb_spec){true, MB_F32, {3, {p->heights.count, ny, nx}}};
    return MB_STATUS_OK;
}

/* The part of the pixel around (x, y) that lies inside the ellipse with half axes a, b about the origin, unrotated. */
static double coverage(double x, double y, double cosine, double sine, double a, double b, int64_t n) {
    double u = (x * cosine + y * sine) / a, v = (y * cosine - x * sine) / b, r = sqrt(u * u + v * v);
    double reach = 0.7072 / (a < b ? a : b); /* how far r can change within half a pixel's diagonal */
    if (r + reach <= 1)
        return 1;
    if (r - reach >= 1)
        return 0;
    int64_t inside = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            double dx = x - 0.5 + ((double)i + 0.5) / (double)n, dy = y - 0.5 + ((double)j + 0.5) / (double)n;
            u = (dx * cosine + dy * sine) / a;
            v = (dy * cosine - dx * sine) / b;
            inside += u * u + v * v <= 1;
        }
    return (double)inside / (double)(n * n);
}

static mb_status run_host(const mb_op_call *call) {
    const volume_params *p = call->params;
    const mb_shape *shape = &call->arrays[0]->shape;
    float *out = call->arrays[0]->data;
    int64_t ny = shape->dims[1], nx = shape->dims[2], count = p->ellipsoids.count / MB_ELLIPSOID_NUMBERS;
#pragma omp parallel for schedule(dynamic, 8) num_threads(call->device->facts.threads)
    for (int64_t line = 0; line < shape->dims[0] * ny; line++) {
        float *row = out + line * nx;
        double height = p->heights.values[line / ny], y = 0.5 * (double)(ny - 1) - (double)(line % ny);
        memset(row, 0, (size_t)nx * sizeof *row);
        if (mb_cancelled())
            continue;
        for (int64_t k = 0; k < count; k++) {
            mb_ellipsoid e = mb_ellipsoid_at(&p->ellipsoids, k);
            double up = (height - e.z) / e.c, s2 = 1 - up * up;
            if (s2 <= 0)
                continue;
            double s = sqrt(s2), cosine = cos(e.phi), sine = sin(e.phi);
            for (int64_t x = 0; x < nx; x++)
                row[x] += (float)(e.density * coverage((double)x - 0.5 * (double)(nx - 1) - e.x, y - e.y, cosine, sine,
                                                       s * e.a, s * e.b, p->subsamples));
        }
    }
    return mb_cancel_check();
}

static const char *const samples[] = {
    "{inputs = {}, params = {ellipsoids = {1, 5, 3, 4, 1, -1, 0, 0.3}, heights = {-1, 0}, size = {13, 17}}}",
    "{inputs = {}, params = {ellipsoids = {2, 4, 4, 4, 0, 0, 0, 0}, heights = {0}, size = {16}, subsamples = 3}}",
    NULL,
};

const mb_op mb_op_ellipsoid_volume = {
    .name = "ellipsoid_volume",
    .summary = "Anti-aliased volume of a sum of ellipsoids: what a perfect reconstruction would give.",
    .doc = "Result (slice, y, x). The middle of the slice is the rotation axis; row 0 is on top (largest Y).",
    .reference = "A. C. Kak, M. Slaney, Principles of Computerized Tomographic Imaging, 1988, section 3.1",
    .category = "phantom",
    .args = args,
    .params_bytes = sizeof(volume_params),
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 1e-6,
    .samples = samples,
    .infer = infer,
    .run_host = run_host,
};
