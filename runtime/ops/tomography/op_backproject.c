/*
** backproject: parallel-beam back-projection by linear interpolation. sino (rows, angles, cols) or
** (angles, cols), f32, any row and angle strides -> (rows, y1 - y0, x1 - x0) or without rows.
** Geometry: parallel_geometry.h. Host kernel: backproject_host.c.
*/
#include "ops/tomography/op_backproject.h"
#include "ops/tomography/parallel_args.h"
#include "ops/tomography/backproject_host.h"

#define PARAMS mb_backproject_params

static const char *const accuracies[] = {"fast", "exact", NULL};

static const mb_op_arg args[] = {
    MB_PARALLEL_SINO_ARG,
    MB_VECTOR(angles, MB_ANY, "rad", "one per angle, any order"),
    MB_PARALLEL_DETECTOR_ARGS,
    MB_PARALLEL_SLICE_ARGS(1 << 24),
    MB_ENUM(accuracy, accuracies, MB_BACKPROJECT_FAST,
            "fast: a GPU reads 640 angles or more in half precision; exact: float32 throughout"),
    MB_PARALLEL_METHOD_ARG,
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "slices (row, y, x), or one (y, x)")};

/* The host's slices do not touch each other. */
static int64_t packet(const void *params, const mb_spec *arrays, int axis, const mb_device *device)
{
    const mb_parallel_geometry g =
        mb_backproject_geometry(params, &arrays[MB_BACKPROJECT_SINO].shape);
    (void)axis;
    return device->facts.compute_capability > 0 ? mb_backproject_cuda_packet(&g, &device->facts)
                                                : 1;
}

static const mb_op_split split[] = MB_SPLIT_STACK(packet);

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 17}}, params = {angles = {0, 0.6, 1.2, 1.8, 2.4}, accuracy = "
    "'exact'}}",
    "{inputs = {{'f32', 7, 20}}, params = {angles = {0, 0.4, 0.8, 1.3, 1.7, 2.2, 2.6}, center = "
    "8.25, size = {19, 23}, circle = 0.9, circle_value = -1, accuracy = 'exact'}}",
    "{inputs = {{'f32', 18, 3, 31}}, params = {angles = {0.1, 1.1, 2.1}, shifts = {0.5, -1, 2}, "
    "roi = {5, 29, 3, 20}, scale = 1, accuracy = 'exact'}}",
    "{inputs = {{'f32', 18, 4, 25}}, params = {angles = {0.1, 0.8, 1.6, 2.4}, shifts = {0.5, -1, "
    "2, "
    "0}, size = 21, circle = 1, method = 'distance'}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_backproject_params *p = params;
    const mb_shape *shape = &arrays[MB_BACKPROJECT_SINO].shape;
    mb_spec result = {true, MB_F32, *shape};
    mb_parallel_geometry g;
    int64_t angles = shape->dims[shape->rank - 2], cols = shape->dims[shape->rank - 1];
    if (angles < 1 || cols < 1 || cols > 1 << 24)
        return mb_fail(MB_STATUS_SHAPE, "sino",
                       "the sinogram has %lld angles and %lld columns; it must have at least one "
                       "angle and 1 to 2^24 columns",
                       (long long)angles, (long long)cols);
    MB_TRY(mb_parallel_check_count("angles", &p->angles, angles));
    MB_TRY(mb_parallel_check_count("shifts", &p->shifts, angles));
    MB_TRY(mb_parallel_check_image(&p->size, &p->roi));
    g = mb_backproject_geometry(p, shape);
    MB_TRY(mb_parallel_check_region(&g));
    result.shape.dims[shape->rank - 2] = g.y1 - g.y0;
    result.shape.dims[shape->rank - 1] = g.x1 - g.x0;
    arrays[MB_BACKPROJECT_RESULT] = result;
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_backproject_params *p = params;
    const mb_device_facts *facts = &planner->device->facts;
    mb_parallel_geometry g = mb_backproject_geometry(p, &arrays[MB_BACKPROJECT_SINO].shape);
    bool host = facts->compute_capability == 0;
    mb_planner_slot(planner, "angles", mb_bytes_mul((uint64_t)g.angles, sizeof(mb_parallel_angle)),
                    0, 0);
    if (host) {
        mb_planner_slot(planner, "packed", mb_backproject_host_packed_bytes(&g), 0, 0);
        mb_planner_slot(planner, "tiles",
                        mb_bytes_mul(mb_backproject_host_tile_bytes(&g), (uint64_t)facts->threads),
                        0, 0);
        mb_planner_slot(planner, "range", 0, 0, 0);
    } else {
        mb_backproject_packing packing = mb_backproject_cuda_packing(p, &g, facts);
        mb_planner_slot(planner, "packed", packing.bytes, 0, 0);
        mb_planner_slot(planner, "tiles", 0, 0, 0);
        mb_planner_slot(planner, "range", packing.range_bytes, 0, 0);
    }
}

const mb_op mb_op_backproject = {
    .name = "backproject",
    .summary = "Parallel-beam back-projection with linear interpolation.",
    .doc =
        "Pixel (y, x) of the ny x nx slice lies at X = x - (nx-1)/2 and Y = (ny-1)/2 - y; row 0 is "
        "on top. At angle t the pixel reads the detector at u = X cos t + Y sin t + center + shift "
        "(the convention of ASTRA and scikit-image) by linear interpolation. Samples outside the "
        "detector are 0. The result is scale times the sum over angles, in float32. On a GPU "
        "slices are computed in packets of 16 (fewer where they are very large), counted from the "
        "first, and how a slice is rounded depends on how many slices its packet has.\n"
        "The relative L2 error against double precision is 2e-6 for exact. For fast on a GPU it is "
        "up to 1e-4 for filtered projections of a phantom and 4e-4 for white noise. fast is the "
        "same as exact on the host, with fewer than 640 angles, and for a packet of one slice. "
        "exact takes 2.6 times as long.\n"
        "With scale = 1 this operator is the exact adjoint of project with the same method. For "
        "method = 'distance' float32 is used throughout, and a GPU takes one slice at a time. "
        "Filtered back-projection is ramp_filter followed by backproject with its default scale, "
        "which gives densities per pixel for angles that cover 180 degrees evenly.",
    .reference = "Kak and Slaney, Principles of Computerized Tomographic Imaging (1988), ch. 3.3",
    MB_OP_PARTS_OF(mb_backproject_host),
    .plan = plan,
    .split = split,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 2e-5, /* of exact mode, largest error; fast has a spec of its own */
};
