/*
** project: parallel-beam projection, the exact transpose of backproject (at scale 1) with the same
** linear weights. volume (rows, ny, nx) or (ny, nx), f32, any row strides -> (rows, angles, cols)
** or (angles, cols).
**
** Host kernel: project_host.c, where a slice's rows do not depend on the others in the call.
*/
#include "ops/tomography/op_project.h"
#include "ops/tomography/parallel_args.h"
#include "ops/tomography/project_host.h"

#define PARAMS mb_project_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("volume", MB_BIT(MB_F32), 2, 3, "slices (row, y, x), or one (y, x)"),
    MB_VECTOR(angles, MB_ANY, "rad", "any number of angles in any order"),
    MB_INT(cols, 0, 1 << 24, 0, "px", "detector columns; 0: nx"),
    MB_PARALLEL_DETECTOR_ARGS,
    MB_FLOAT(circle, 0, 10, 0, "half-width",
             "ignore pixels outside this fraction of half the smaller side; 0: use all pixels"),
    MB_FLOAT(scale, MB_ANY, 1, NULL, "factor of the sums; 1 gives line integrals in pixel units"),
    MB_PARALLEL_METHOD_ARG,
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3,
                 "sinograms (row, angle, column), or one (angle, column)")};

static int64_t packet(const void *params, const mb_spec *arrays, int axis, const mb_device *device)
{
    const mb_parallel_geometry g = mb_project_geometry(params, &arrays[MB_PROJECT_VOLUME].shape);
    (void)axis;
    return device->facts.compute_capability == 0 ? 1 : mb_project_cuda_packet(&g, &device->facts);
}

static const mb_op_split split[] = MB_SPLIT_STACK(packet);

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 17, 17}}, params = {angles = {0, 0.6, 1.2, 1.8, 2.4}}}",
    "{inputs = {{'f32', 19, 23}}, params = {angles = {0, 0.4, 0.8, 1.3, 1.7, 2.2, 2.6}, cols = 31, "
    "center = 14.25, circle = 0.9}}",
    "{inputs = {{'f32', 26, 15, 29}}, params = {angles = {0, 0.02, 0.04, 0.06, 0.3, 0.31, 0.8, "
    "2.5, 2.52, 3.2, 4.7}, cols = 40, center = 17.5, circle = 1}}",
    "{inputs = {{'f32', 18, 13, 13}}, params = {angles = {0.1, 1.1, 2.1}, shifts = {0.5, -1, 2}, "
    "scale = 0.5, method = 'distance'}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_project_params *p = params;
    const mb_shape *shape = &arrays[MB_PROJECT_VOLUME].shape;
    mb_spec result = {true, MB_F32, *shape};
    mb_parallel_geometry g = mb_project_geometry(p, shape);
    if (g.angles < 1)
        return mb_fail(MB_STATUS_ARGUMENT, "angles", "angles is empty; at least one is needed");
    if (p->shifts.count != 0 && p->shifts.count != g.angles)
        return mb_fail(MB_STATUS_ARGUMENT, "shifts", "%lld shifts were given and %lld angles",
                       (long long)p->shifts.count, (long long)g.angles);
    if (g.ny < 1 || g.nx < 1 || g.ny > 1 << 24 || g.nx > 1 << 24)
        return mb_fail(MB_STATUS_SHAPE, "volume",
                       "the volume's slices are %lld x %lld; each extent must be 1 to 2^24",
                       (long long)g.ny, (long long)g.nx);
    result.shape.dims[shape->rank - 2] = g.angles;
    result.shape.dims[shape->rank - 1] = g.cols;
    arrays[MB_PROJECT_RESULT] = result;
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_device_facts *facts = &planner->device->facts;
    mb_parallel_geometry g = mb_project_geometry(params, &arrays[MB_PROJECT_VOLUME].shape);
    const bool host = facts->compute_capability == 0;
    const mb_project_packing packing = mb_project_cuda_packing(&g, facts);
    mb_planner_slot(
        planner, "angles",
        host ? mb_bytes_mul((uint64_t)g.angles, sizeof(mb_project_path)) : packing.angles, 0, 0);
    mb_planner_slot(planner, "strips",
                    host ? mb_bytes_mul(mb_project_strip_bytes(&g), (uint64_t)facts->threads) : 0,
                    0, 0);
    mb_planner_slot(planner, "packed", host ? 0 : packing.packed, 0, 0);
    mb_planner_slot(planner, "range", host ? 0 : packing.range, 0, 0);
}

const mb_op mb_op_project = {
    .name = "project",
    .summary = "Parallel-beam projection, the matched forward operator of backproject.",
    .doc =
        "The geometry is that of backproject: pixel (y, x) falls on u = X cos t + Y sin t + center "
        "+ shift with X = x - (nx-1)/2 and Y = (ny-1)/2 - y. The two bins beside u share its "
        "value; a part outside the detector is lost.\n"
        "With scale = 1 the sums are line integrals in pixel units, to the accuracy of this "
        "pixel-driven model: within 1 % for smooth objects, while near 45 degrees neighboring bins "
        "alternate by up to 10 %. method = 'distance' does not do so: the shadow of a pixel is a "
        "box as wide as max(|cos t|, |sin t|), and a bin gets the part that lies in it. "
        "backproject with scale = 1 and the same geometry and method is the exact "
        "adjoint: <A x, y> = <x, A' y>.\n"
        "On CUDA devices of capability 9.0 and newer slices go through the tensor cores, except a "
        "last few; there the error is up to 4e-6 of the result, and a pixel that is not finite "
        "spoils the rays that pass it within 8 px.",
    .reference =
        "De Man and Basu, Distance-driven projection and backprojection in three dimensions, "
        "Phys. Med. Biol. 49 (2004) 2463",
    MB_OP_PARTS_OF(mb_project_host),
    .plan = plan,
    .split = split,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 1e-5, /* sums of some thousand floats in another order */
};
