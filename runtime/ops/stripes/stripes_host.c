/*
** Stripes on the host: all threads work on one sinogram, whose sorted columns are in scratch.
*/
#include "ops/stripes/stripes_host.h"
#include "ops/stripes/stripes_columns.h"
#include "ops/stripes/stripes_found.h"
#include "ops/array/strided.h"
#include <omp.h>

mb_status mb_stripes_infer(mb_spec *arrays)
{
    const mb_shape *shape = &arrays[MB_STRIPES_SINO].shape;
    int64_t angles = shape->dims[shape->rank - 2], columns = shape->dims[shape->rank - 1];
    if (angles > 1 << 20 || columns > 1 << 20)
        return mb_fail(MB_STATUS_SHAPE, "sino",
                       "the sinograms have %lld angles and %lld columns; they may have 2^20 of "
                       "each at most; bin them",
                       (long long)angles, (long long)columns);
    arrays[MB_STRIPES_RESULT] = arrays[MB_STRIPES_SINO];
    return MB_STATUS_OK;
}

/* The widest window that slides along the ranks. */
static int64_t widest(const mb_stripes_job *job)
{
    int64_t large = job->large ? job->large_size : 1, small = job->sorting ? job->small_size : 1;
    return large > small ? large : small;
}

void mb_stripes_plan(const mb_stripes_job *job, const mb_spec *arrays, mb_planner *planner)
{
    const mb_device_facts *facts = &planner->device->facts;
    mb_stripes_sinos s = mb_stripes_sinos_of(&arrays[MB_STRIPES_SINO].shape);
    bool host = facts->compute_capability == 0,
         runs = !host && mb_stripes_run_length(&s) < s.angles;
    bool sorts = job->large || job->sorting, finds = job->large || job->dead;
    uint64_t group = (uint64_t)mb_stripes_group(&s, facts);
    uint64_t columns = mb_bytes_mul(group, (uint64_t)s.columns);
    uint64_t count = sorts ? mb_bytes_mul(columns, (uint64_t)s.pitch) : 0;
    uint64_t chunks = job->dead && !host ? (uint64_t)mb_stripes_chunks(&s) : 0;
    uint64_t threads = host && columns > 0 && s.angles > 0 ? (uint64_t)facts->threads : 0;
    mb_planner_slot(planner, "values", mb_bytes_mul(count, 4), 0, 0);
    mb_planner_slot(planner, "order",
                    mb_bytes_mul(count, (uint64_t)mb_stripes_order_bytes(&s, host)), 0, 0);
    mb_planner_slot(planner, "medians", mb_bytes_mul(count, 4), 0, 0);
    mb_planner_slot(planner, "run order", runs ? mb_bytes_mul(count, 2) : 0, 0, 0);
    mb_planner_slot(planner, "columns", finds ? mb_bytes_mul(columns, 4 * MB_STRIPES_LISTS) : 0, 0,
                    0);
    mb_planner_slot(planner, "sums", mb_bytes_mul(mb_bytes_mul(columns, chunks), 8), 0, 0);
    mb_planner_slot(planner, "work", mb_bytes_mul(mb_stripes_work_bytes(&s, widest(job)), threads),
                    0, 0);
}

/* A sinogram, by all threads of a parallel region. */
static void remove_stripes(const mb_op_call *call, const mb_stripes_job *job,
                           const mb_stripes_sinos *s, const float *from, int64_t from_stride,
                           float *to, int64_t to_stride)
{
    uint64_t work_bytes = mb_stripes_work_bytes(s, widest(job));
    char *work = (char *)call->slots[MB_STRIPES_WORK] + work_bytes * (uint64_t)omp_get_thread_num();
    int32_t *values = call->slots[MB_STRIPES_VALUES], *medians = call->slots[MB_STRIPES_MEDIANS];
    uint32_t *order = call->slots[MB_STRIPES_ORDER];
    mb_stripes_lists lists = mb_stripes_lists_at(call->slots[MB_STRIPES_COLUMNS], s->columns);
    if (job->dead) {
        mb_stripes_fluctuations(s, from, from_stride, &lists, job->large_size);
        mb_stripes_find(s->columns, &lists, job->snr, true);
        mb_stripes_fill_in(s, &lists, from, from_stride, to, to_stride);
        from = to;
        from_stride = to_stride;
    }
    if (!job->large && !job->sorting)
        return;
    mb_stripes_sort(s, from, from_stride, values, order, work);
    if (job->large) {
        mb_stripes_medians(s, values, medians, job->large_size, work);
        mb_stripes_factors(s, values, medians, job->drop_ratio, &lists);
        mb_stripes_find(s->columns, &lists, job->snr, false);
        mb_stripes_choose(s, values, medians, order, &lists, job->normalize);
    }
    if (job->large && job->sorting)
        mb_stripes_medians(s, medians, values, job->small_size, work);
    else if (job->sorting)
        mb_stripes_medians(s, values, medians, job->small_size, work);
    mb_stripes_put_back(s, job->large && job->sorting ? values : medians, order, to, to_stride,
                        work);
}

mb_status mb_stripes_run(const mb_op_call *call, const mb_stripes_job *job)
{
    const mb_array *sino = call->arrays[MB_STRIPES_SINO];
    mb_array *result = call->arrays[MB_STRIPES_RESULT];
    mb_stripes_sinos s = mb_stripes_sinos_of(&sino->shape);
    int threads = s.angles * s.columns < MB_WALK_SERIAL ? 1 : call->device->facts.threads;
    int axis = sino->shape.rank - 2;
    if (mb_array_elements(sino) == 0)
        return MB_STATUS_OK;
#pragma omp parallel num_threads(threads)
    for (int64_t z = 0; z < s.rows; z++)
        remove_stripes(
            call, job, &s, (const float *)sino->data + mb_array_row_offset(sino, z * s.angles),
            sino->strides[axis], (float *)result->data + mb_array_row_offset(result, z * s.angles),
            result->strides[axis]);
    return MB_STATUS_OK;
}
