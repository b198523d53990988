/*
** summed_area: the summed-area table of an array: sums over any box become 8 look-ups. Small arrays
** (PSFs): serial.
*/
#include "ops/filter/op_summed_area.h"
#include "ops/op_args.h"

#define PARAMS mb_summed_area_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_F32), 1, 3, "array"),
    MB_FLOAT(scale, MB_ANY, 1, NULL, "factor of every sum, such as 1 / the sum of all elements"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F64), 1, 3, "sums; each extent is one larger")};

static const char *const samples[] = {"{inputs = {{'f32', 3, 4, 5}}}",
                                      "{inputs = {{'u16', 7, 6}}, params = {scale = 0.25}}",
                                      "{inputs = {{'f32', 9}}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    mb_spec result = {true, MB_F64, arrays[MB_SUMMED_AREA_A].shape};
    (void)params;
    for (int i = 0; i < result.shape.rank; i++)
        result.shape.dims[i]++;
    arrays[MB_SUMMED_AREA_RESULT] = result;
    return MB_STATUS_OK;
}

static double value_at(const mb_array *a, int64_t at)
{
    if (a->dtype == MB_U8)
        return ((const uint8_t *)a->data)[at];
    if (a->dtype == MB_U16)
        return ((const uint16_t *)a->data)[at];
    return (double)((const float *)a->data)[at];
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_summed_area_params *p = call->params;
    const mb_array *a = call->arrays[MB_SUMMED_AREA_A],
                   *result = call->arrays[MB_SUMMED_AREA_RESULT];
    int64_t n[3], steps[3], from[3], before[3]; /* before: the zero planes of an axis */
    mb_grid_dims(&result->shape, n);
    mb_grid_strides(result, steps);
    mb_grid_strides(a, from);
    for (int i = 0; i < 3; i++)
        before[i] = i >= 3 - a->shape.rank;
    for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
        const int64_t at[3] = {i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]};
        double *out = (double *)result->data, v = 0;
        if (at[2] == 0)
            MB_TRY(mb_cancel_check());
        int64_t place = 0, source = 0;
        bool zero = false;
        for (int axis = 0; axis < 3; axis++) {
            place += at[axis] * steps[axis];
            source += (at[axis] - before[axis]) * from[axis];
            zero = zero || at[axis] < before[axis];
        }
        if (!zero)
            v = value_at(a, source);
        out[place] = v * p->scale;
    }
    for (int axis = 2; axis >= 3 - a->shape.rank; axis--)
        for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
            const int64_t at[3] = {i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]};
            if (at[2] == 0)
                MB_TRY(mb_cancel_check());
            double *out =
                (double *)result->data + at[0] * steps[0] + at[1] * steps[1] + at[2] * steps[2];
            if (at[axis] > 0)
                *out += *(out - steps[axis]);
        }
    return MB_STATUS_OK;
}

const mb_op mb_op_summed_area = {
    .name = "summed_area",
    .summary = "Summed-area table: sums over boxes by look-ups.",
    .doc = "result[i, j, k] is the sum of a over the first i, j and k elements of its axes. The "
           "sum over any box is the alternating sum of the table at its corners.",
    .reference = "F. C. Crow, SIGGRAPH 1984, 207",
    MB_OP_PARTS,
    .uncut = "an element of the table is a sum from the first element on",
    .strides = MB_STRIDES_ANY,
    .tolerance = 1e-12,
};
