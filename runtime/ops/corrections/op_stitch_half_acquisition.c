/*
** stitch_half_acquisition: joins row k of a sinogram over a whole turn with the mirrored row half a
** turn later, into rows of the whole field of view over half a turn. sino (rows, angles, W) or
** (angles, W), f32 -> (rows, half, E) or (half, E).
*/
#include "ops/corrections/op_stitch_half_acquisition.h"
#include "ops/frames.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"

#define PARAMS mb_stitch_half_acquisition_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("sino", MB_BIT(MB_F32), 2, 3,
                "sinograms over a whole turn (row, angle, column), or one (angle, column)"),
    MB_HALF_ACQUISITION_CENTER_ARG,
    MB_INT(half, 0, 1 << 30, 0, "angles",
           "number of angles in half a turn; 0: half of all angles, rounded up"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3,
                 "sinograms over half a turn, E = floor(2a) + 1 columns")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 6, 17}}, params = {center = 12.25}}",
    "{inputs = {{'f32', 7, 20}}, params = {center = 3}}",
    "{inputs = {{'f32', 2, 9, 31}}, params = {center = 30, half = 4}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_stitch_half_acquisition_params *p = params;
    mb_spec result = arrays[MB_STITCH_HALF_ACQUISITION_SINO];
    int rank = result.shape.rank;
    int64_t angles = result.shape.dims[rank - 2], cols = result.shape.dims[rank - 1];
    const char *problem = mb_half_acquisition_problem(p->center, cols);
    if (problem)
        return mb_fail(MB_STATUS_ARGUMENT, "center", problem, p->center, (long long)cols);
    if (p->half > angles)
        return mb_fail(MB_STATUS_ARGUMENT, "half",
                       "half is %lld and the sinogram has %lld angles; half must not be larger",
                       (long long)p->half, (long long)angles);
    result.shape.dims[rank - 2] = mb_stitch_half(p, angles);
    result.shape.dims[rank - 1] = mb_half_acquisition_of(p->center, cols).extended;
    arrays[MB_STITCH_HALF_ACQUISITION_RESULT] = result;
    return MB_STATUS_OK;
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_stitch_half_acquisition_params *p = call->params;
    const mb_array *result = call->arrays[MB_STITCH_HALF_ACQUISITION_RESULT];
    mb_frames s = mb_frames_of(call->arrays[MB_STITCH_HALF_ACQUISITION_SINO], result);
    int64_t half = result->shape.dims[result->shape.rank - 2];
    mb_half_acquisition h = mb_half_acquisition_of(p->center, s.cols);
    int threads = s.count * half * h.extended < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < s.count * half; i++) {
        if (mb_cancelled())
            continue;
        int64_t k = i % half;
        const float *own = s.from + i / half * s.from_frame + k * s.from_pitch;
        const float *other = k + half < s.rows ? own + half * s.from_pitch : NULL;
        float *to = s.to + i / half * s.to_frame + k * s.to_pitch;
        for (int64_t x = 0; x < h.extended; x++)
            to[x] = mb_stitch_at(&h, own, other, x);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_stitch_half_acquisition = {
    .name = "stitch_half_acquisition",
    .summary = "Joins the two halves of a half acquisition into sinograms of the whole field of "
               "view.",
    .doc =
        "Row k of the result is row k joined with the mirrored row k + half. The two are blended "
        "linearly where both see the ray, and interpolated linearly where the axis is not on half "
        "a pixel. With W columns and the axis at a columns from the far edge, rows have E = "
        "floor(2a) + 1 columns. The axis of the result is at center, or at center + E - W if it "
        "was left of the middle.\n"
        "half = 0 takes half of the angles, rounded up; an odd number of angles is treated as if a "
        "row of zeros followed. Angles that include both 0 and 360 degrees need half = (angles - "
        "1) / 2. tomo.fbp with half_acquisition needs no stitching.",
    MB_OP_PARTS,
    .strides = MB_STRIDES_ROWS,
    .split = mb_stack_split,
    .tolerance = 1e-6,
};
