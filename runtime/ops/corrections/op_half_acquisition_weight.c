/*
** half_acquisition_weight: weights the columns that a half acquisition sees twice, so that the two
** views add up to one, and, with extend, gives the rows the width of the whole field of view. f32,
** any rank; the last axis is the detector.
*/
#include "ops/corrections/op_half_acquisition_weight.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"
#include <string.h>

#define PARAMS mb_half_acquisition_weight_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("sino", MB_BIT(MB_F32), 1, 3,
                "sinograms over a whole turn; the last axis is the detector"),
    MB_HALF_ACQUISITION_CENTER_ARG,
    MB_BOOL(extend, false,
            "add columns of zeros beyond the axis, to the width of the whole field of view"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 1, 3,
                 "weighted sinograms; without extend it may be sino")};

static const mb_op_split split[] = {
    MB_SPLIT_AXIS(0, .when = "it is not the axis of the detector", .adapt = mb_whole_rows_adapt),
    MB_SPLIT_AXIS(1, .when = "it is not the axis of the detector", .adapt = mb_whole_rows_adapt),
    MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 17}}, params = {center = 12.25}}",
    "{inputs = {{'f32', 2, 7, 20}}, params = {center = 3, extend = true}}",
    "{inputs = {{'f32', 6, 31}}, params = {center = 30, extend = true}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_half_acquisition_weight_params *p = params;
    mb_spec result = arrays[MB_HALF_ACQUISITION_WEIGHT_SINO];
    int64_t *cols = &result.shape.dims[result.shape.rank - 1];
    const char *problem = mb_half_acquisition_problem(p->center, *cols);
    if (problem)
        return mb_fail(MB_STATUS_ARGUMENT, "center", problem, p->center, (long long)*cols);
    if (p->extend)
        *cols = mb_half_acquisition_of(p->center, *cols).extended;
    arrays[MB_HALF_ACQUISITION_WEIGHT_RESULT] = result;
    return MB_STATUS_OK;
}

/* Columns [u0, u1) of the detector. */
static void weigh(const mb_half_acquisition *h, float *to, const float *from, int64_t u0,
                  int64_t u1)
{
    for (int64_t u = u0; u < u1; u++)
        to[u] = from[u] * mb_half_acquisition_weight_at(h, u);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_half_acquisition_weight_params *p = call->params;
    const mb_array *sino = call->arrays[MB_HALF_ACQUISITION_WEIGHT_SINO];
    mb_array *result = call->arrays[MB_HALF_ACQUISITION_WEIGHT_RESULT];
    int64_t cols = sino->shape.dims[sino->shape.rank - 1];
    int64_t wide = result->shape.dims[result->shape.rank - 1];
    mb_half_acquisition h = mb_half_acquisition_of(p->center, cols);
    int64_t front = mb_half_acquisition_front(&h, p->extend);
    int64_t rows = (int64_t)mb_array_elements(sino) / cols;
    /* The columns that are seen once are copied. */
    int64_t once = (int64_t)ceil(2 * h.axis - (double)(cols - 1));
    int64_t low = h.left ? 0 : once, high = h.left ? cols - once : cols;
    int threads = rows * wide < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < rows; i++) {
        if (mb_cancelled())
            continue;
        const float *from = (const float *)sino->data + mb_array_row_offset(sino, i);
        float *row = (float *)result->data + mb_array_row_offset(result, i), *to = row + front;
        if (to != from) {
            memset(row, 0, (size_t)front * 4);
            memcpy(to, from, (size_t)low * 4);
            memcpy(to + high, from + high, (size_t)(cols - high) * 4);
            memset(to + cols, 0, (size_t)(wide - front - cols) * 4);
        }
        weigh(&h, to, from, low, high);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_half_acquisition_weight = {
    .name = "half_acquisition_weight",
    .summary = "Weights the columns that a half acquisition sees twice, so that both views add up "
               "to one.",
    .doc =
        "A half acquisition is a whole turn with the axis near an edge of the detector. With W "
        "columns and the axis at a columns from the far edge, the field of view is E = floor(2a) + "
        "1 columns wide. The weight is 1 where a ray is seen once. Where a ray is seen twice, the "
        "weight falls linearly to 0 at the near edge: w(t) + w(2a - t) = 1.\n"
        "extend makes rows of E columns, with zeros beyond the near edge. For an axis left of the "
        "middle the zeros are in front, and the axis moves to center + E - W. Weighted and "
        "extended rows, filtered and back-projected over the whole turn with scale 2 pi / angles, "
        "give exactly the reconstruction from complete rows, without stitching or pairing of "
        "angles. The weights must come before the filter, which would otherwise see the edge of "
        "the detector.",
    .reference = "Wang, X-ray micro-CT with a displaced detector array, Med. Phys. 29 (2002) 1634",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_HALF_ACQUISITION_WEIGHT_SINO,
    .tolerance = 1e-6,
};
