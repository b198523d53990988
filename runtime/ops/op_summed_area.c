/*
** summed_area: the summed-area table of an array: sums over any box become 8 look-ups. Small arrays (PSFs): serial.
*/
#include "ops/op_summed_area.h"

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_F32), 1, 3, "array"),
    {.name = "scale",
     .kind = MB_ARG_FLOAT,
     .initial = 1,
     .offset = offsetof(mb_summed_area_params, scale),
     .doc = "factor of every sum, such as 1 / the sum of all"},
    MB_ARRAY_OUT("result", MB_BIT(MB_F64), 1, 3, "sums; extents one larger"),
    {.name = NULL}};

static const char *const samples[] = {"{inputs = {{'f32', 3, 4, 5}}}",
                                      "{inputs = {{'u16', 7, 6}}, params = {scale = 0.25}}",
                                      "{inputs = {{'f32', 9}}}", NULL};

static mb_status infer(const void *params, mb_spec *arrays)
{
    mb_spec result = {true, MB_F64, arrays[MB_SUMMED_AREA_A].shape};
    (void)params;
    for (int i = 0; i < result.shape.rank; i++)
        result.shape.dims[i]++;
    arrays[MB_SUMMED_AREA_RESULT] = result;
    return MB_STATUS_OK;
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_summed_area_params *p = call->params;
    const mb_array *a = call->arrays[MB_SUMMED_AREA_A];
    int rank = a->shape.rank;
    double *out = call->arrays[MB_SUMMED_AREA_RESULT]->data;
    int64_t k[3], n[3], steps[3], from = 0;
    mb_grid_dims(&a->shape, k);
    for (int i = 0; i < 3; i++)
        n[i] = k[i] + (i >= 3 - rank);
    steps[2] = 1;
    steps[1] = n[2];
    steps[0] = n[1] * n[2];
    for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
        int64_t z = i / steps[0], y = i / n[2] % n[1], x = i % n[2];
        bool zero = (rank > 2 && z == 0) || (rank > 1 && y == 0) || x == 0;
        double v = 0;
        if (x == 0)
            MB_TRY(mb_cancel_check());
        if (!zero) {
            if (a->dtype == MB_U8)
                v = ((const uint8_t *)a->data)[from];
            else if (a->dtype == MB_U16)
                v = ((const uint16_t *)a->data)[from];
            else
                v = (double)((const float *)a->data)[from];
            from++;
        }
        out[i] = v * p->scale;
    }
    for (int axis = 2; axis >= 3 - rank; axis--)
        for (int64_t row = 0; row < n[0] * n[1]; row++) {
            MB_TRY(mb_cancel_check());
            for (int64_t i = row * n[2]; i < (row + 1) * n[2]; i++)
                if (i / steps[axis] % n[axis] > 0)
                    out[i] += out[i - steps[axis]];
        }
    return MB_STATUS_OK;
}

const mb_op mb_op_summed_area = {
    .name = "summed_area",
    .summary = "Summed-area table: sums over boxes by look-ups.",
    .doc = "result[i, j, k] is the sum of a over the first i, j and k elements of its axes; the "
           "sum over any box is the alternating sum of its corners.",
    .reference = "F. C. Crow, SIGGRAPH 1984, 207",
    .category = "array",
    .args = args,
    .params_bytes = sizeof(mb_summed_area_params),
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 1e-12,
    .samples = samples,
    .infer = infer,
    .run_host = run_host,
};
