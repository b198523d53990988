/*
** blend_seam: joins the images of two cameras that lie side by side in each frame. a (..., W), f32
** -> (..., W - overlap).
*/
#include "ops/geometry/op_blend_seam.h"
#include "ops/frames.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"
#include <string.h>

#define PARAMS mb_blend_seam_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 2, 3, "frames (frame, row, column), or one (row, column)"),
    MB_INT_REQUIRED(seam, 1, 1 << 30, 0, "px", "columns of the image on the left"),
    MB_INT_REQUIRED(overlap, 0, 1 << 30, 0, "px",
                    "columns that both images show: the last of the left, the first of the right"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "frames with W - overlap columns")};

static const mb_op_split split[] = {
    MB_SPLIT_AXIS(0, .combine = MB_COMBINE_NONE),
    MB_SPLIT_AXIS(1, .adapt = mb_whole_rows_adapt, .when = "there are three axes"), MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 40}}, params = {seam = 18, overlap = 7}}",
    "{inputs = {{'f32', 6, 30}}, params = {seam = 15, overlap = 1}}",
    "{inputs = {{'f32', 2, 2, 9}}, params = {seam = 5, overlap = 0}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_blend_seam_params *p = params;
    mb_spec result = arrays[MB_BLEND_SEAM_A];
    const int64_t cols = result.shape.dims[result.shape.rank - 1];
    if (p->seam >= cols)
        return mb_fail(MB_STATUS_ARGUMENT, "seam",
                       "seam is %lld; it lies within the %lld columns of both images",
                       (long long)p->seam, (long long)cols);
    if (p->overlap > p->seam || p->overlap > cols - p->seam)
        return mb_fail(MB_STATUS_ARGUMENT, "overlap",
                       "overlap is %lld; the images have %lld and %lld columns",
                       (long long)p->overlap, (long long)p->seam, (long long)(cols - p->seam));
    result.shape.dims[result.shape.rank - 1] = cols - p->overlap;
    arrays[MB_BLEND_SEAM_RESULT] = result;
    return MB_STATUS_OK;
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_blend_seam_params *p = call->params;
    const mb_array *result = call->arrays[MB_BLEND_SEAM_RESULT];
    const mb_frames s = mb_frames_of(call->arrays[MB_BLEND_SEAM_A], result);
    const int64_t cols = result->shape.dims[result->shape.rank - 1];
    const int threads = s.count * s.rows * cols < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < s.count * s.rows; i++) {
        const int64_t f = i / s.rows, y = i % s.rows, begin = p->seam - p->overlap;
        const float *from = s.from + f * s.from_frame + y * s.from_pitch;
        float *to = s.to + f * s.to_frame + y * s.to_pitch;
        if (mb_cancelled())
            continue;
        memcpy(to, from, (size_t)begin * sizeof *to);
        for (int64_t x = begin; x < p->seam; x++)
            to[x] = mb_blend_seam_at(from, p->seam, p->overlap, x);
        memcpy(to + p->seam, from + p->seam + p->overlap, (size_t)(cols - p->seam) * sizeof *to);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_blend_seam = {
    .name = "blend_seam",
    .summary = "Joins the images of two cameras that lie side by side in each frame.",
    .doc =
        "The last overlap columns of the left image show the same as the first ones of the right "
        "image. In the result they are blended: the weight of the right image rises linearly from "
        "0 in the first of them to 1 in the last; a single one is the mean. A NaN stays in its "
        "column.",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 1e-6,
};
