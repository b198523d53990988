/*
** stripes_sorting: removes stripes by sorting (stripes_vo.h).
*/
#include "ops/stripes/stripes_columns.h"
#include "ops/op_args.h"
#include "ops/array/strided.h"
#include <omp.h>

#define PARAMS mb_stripes_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("sino", MB_BIT(MB_F32), 2, 3, "sinograms (row, angle, column), or one"),
    MB_INT(size, 1, 1 << 20, 21, "columns", "window of the median; wider than the stripes"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "same shape; may be sino"),
    {.name = NULL}};

static const mb_op_split split[] = MB_SPLIT_STACK(NULL);

static const char *const samples[] = {"{inputs = {{'f32', 3, 23, 37}}, params = {size = 5}}",
                                      "{inputs = {{'f32', 2, 1, 9}}, params = {size = 30}}",
                                      "{inputs = {{'f32', 40, 16}}, params = {size = 4}}",
                                      "{inputs = {{'f32', 2, 1601, 10}}, params = {size = 3}}",
                                      NULL};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_shape *shape = &arrays[MB_STRIPES_SINO].shape;
    (void)params;
    if (shape->dims[shape->rank - 2] > 1 << 30)
        return mb_fail(MB_STATUS_SHAPE, "sino",
                       "the sinograms have %lld angles; they may have 2^30 at most",
                       (long long)shape->dims[shape->rank - 2]);
    arrays[MB_STRIPES_RESULT] = arrays[MB_STRIPES_SINO];
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_stripes_params *p = params;
    const mb_device_facts *facts = &planner->device->facts;
    mb_stripes_sinos s = mb_stripes_sinos_of(&arrays[MB_STRIPES_SINO].shape);
    bool host = facts->compute_capability == 0, runs = !host && mb_stripes_run(&s) < s.angles;
    uint64_t count = mb_bytes_mul(
        mb_bytes_mul((uint64_t)mb_stripes_group(&s, host), (uint64_t)s.columns), (uint64_t)s.pitch);
    bool work = host && count > 0;
    mb_planner_slot(planner, "values", mb_bytes_mul(count, 4), 0, 0);
    mb_planner_slot(planner, "order",
                    mb_bytes_mul(count, (uint64_t)mb_stripes_order_bytes(&s, host)), 0, 0);
    mb_planner_slot(planner, "medians", mb_bytes_mul(count, 4), 0, 0);
    mb_planner_slot(planner, "run order", runs ? mb_bytes_mul(count, 2) : 0, 0, 0);
    mb_planner_slot(
        planner, "work",
        work ? mb_bytes_mul(mb_stripes_work_bytes(&s, p->size), (uint64_t)facts->threads) : 0, 0,
        0);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_stripes_params *p = call->params;
    const mb_array *sino = call->arrays[MB_STRIPES_SINO];
    mb_array *result = call->arrays[MB_STRIPES_RESULT];
    mb_stripes_sinos s = mb_stripes_sinos_of(&sino->shape);
    uint64_t work_bytes = mb_stripes_work_bytes(&s, p->size);
    int32_t *values = call->slots[MB_STRIPES_VALUES], *medians = call->slots[MB_STRIPES_MEDIANS];
    uint32_t *order = call->slots[MB_STRIPES_ORDER];
    int threads = s.angles * s.columns < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
    if (mb_array_elements(sino) == 0)
        return MB_STATUS_OK;
#pragma omp parallel num_threads(threads)
    for (int64_t z = 0; z < s.rows; z++) {
        char *work =
            (char *)call->slots[MB_STRIPES_WORK] + work_bytes * (uint64_t)omp_get_thread_num();
        const float *from = (const float *)sino->data + mb_array_row_offset(sino, z * s.angles);
        float *to = (float *)result->data + mb_array_row_offset(result, z * s.angles);
        int rank = sino->shape.rank;
        mb_stripes_sort(&s, from, sino->strides[rank - 2], values, order, work);
        mb_stripes_medians(&s, values, medians, p->size, work);
        mb_stripes_put_back(&s, medians, order, to, result->strides[rank - 2], work);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_stripes_sorting = {
    .name = "stripes_sorting",
    .summary = "Removes stripes of sinograms by sorting: full, partial and small ones.",
    .doc = "The values of each column are sorted along the angles. At each rank a median over size "
           "neighboring columns replaces the value, which goes back to its angle. A window that is "
           "too small leaves wide stripes, one that is too large blurs. Columns beyond the border "
           "are reflected, with the border column itself. An even window has one column more "
           "before than after, and the larger of the two middle values.\n"
           "Equal values keep the order of their angles. NaN counts as larger than every number, "
           "so a single one becomes a finite value of the neighboring columns. -0 counts as 0 and "
           "becomes 0.\n"
           "A sinogram may be a permuted view of projections.",
    .reference =
        "N. T. Vo, R. C. Atwood, M. Drakopoulos, Superior techniques for eliminating ring "
        "artifacts in X-ray micro-tomography, Optics Express 26, 28396 (2018), algorithm 3",
    .category = "stripes",
    MB_OP_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_STRIPES_SINO,
    .split = split,
    .tolerance = 0, /* values of the sinogram */
    .plan = plan,
};
