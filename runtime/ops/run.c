/*
** The one driver: check, infer, plan, place, run. Estimate and run share every step but the last
** two, so the estimate is the allocation.
*/
#include "ops/op.h"
#include "device/host/host_backend.h"
#include "device/ledger.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- check ---- */

static mb_status check_number(const mb_op_arg *arg, double value)
{
    if (isnan(value)) {
        if (arg->kind == MB_ARG_FLOAT && isnan(arg->initial))
            return MB_STATUS_OK; /* NaN stands for "not given" */
        return mb_fail(MB_STATUS_ARGUMENT, arg->name, "%s is not a number", arg->name);
    }
    if (!isfinite(value))
        return mb_fail(MB_STATUS_ARGUMENT, arg->name, "%s is infinite", arg->name);
    if (arg->min < arg->max && (value < arg->min || value > arg->max))
        return mb_fail(MB_STATUS_ARGUMENT, arg->name, "%s is %.10g; it must lie in [%g, %g]%s%s",
                       arg->name, value, arg->min, arg->max, arg->unit ? " " : "",
                       arg->unit ? arg->unit : "");
    return MB_STATUS_OK;
}

/* Angles are radians everywhere. Nothing tells degrees from radians in so small a range as 0 to
** 10; a span of more than two turns does: it is degrees, or a scan of many turns, of which only
** the directions matter. */
static mb_status check_angles(const mb_op_arg *arg, const mb_vector *vector)
{
    const double turn = 6.283185307179586, most = 1e9;
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (int64_t i = 0; i < vector->count; i++) {
        low = fmin(low, vector->values[i]);
        high = fmax(high, vector->values[i]);
    }
    if (vector->count > 0 && fmax(-low, high) > most)
        return mb_fail(MB_STATUS_ARGUMENT, arg->name,
                       "%s reach %g rad, where no precision is left; give them within 1e9 rad",
                       arg->name, -low > high ? low : high);
    if (high - low > 2 * turn * (1 + 1e-9))
        return mb_fail(MB_STATUS_ARGUMENT, arg->name,
                       "%s span %.6g rad, %.1f turns: are they degrees? Radians are needed "
                       "(math.rad converts one); for a scan of many turns give "
                       "mb.tomo.wrapped(%s)",
                       arg->name, high - low, (high - low) / turn, arg->name);
    return MB_STATUS_OK;
}

static mb_status check_parameters(const mb_op *op, const void *params)
{
    for (const mb_op_arg *arg = op->args; arg->name; arg++) {
        const char *member = (const char *)params + arg->offset;
        switch (arg->kind) {
        case MB_ARG_INT:
            MB_TRY(check_number(arg, (double)*(const int64_t *)(const void *)member));
            break;
        case MB_ARG_FLOAT: MB_TRY(check_number(arg, *(const double *)(const void *)member)); break;
        case MB_ARG_ENUM: {
            int value = *(const int *)(const void *)member, count = 0;
            while (arg->choices[count])
                count++;
            if (value < 0 || value >= count)
                return mb_fail(MB_STATUS_ARGUMENT, arg->name, "%s has no choice number %d",
                               arg->name, value);
            break;
        }
        case MB_ARG_VECTOR: {
            const mb_vector *vector = (const mb_vector *)(const void *)member;
            for (int64_t i = 0; vector->values && i < vector->count; i++) {
                double value = vector->values[i];
                if (!isfinite(value) ||
                    (arg->min < arg->max && (value < arg->min || value > arg->max)))
                    return mb_fail(MB_STATUS_ARGUMENT, arg->name, "element %lld of %s is %.10g%s",
                                   (long long)i + 1, arg->name, value,
                                   isfinite(value) ? ", outside its range"
                                                   : "; it must be a finite number");
            }
            if (vector->values && arg->unit && strcmp(arg->unit, "rad") == 0)
                MB_TRY(check_angles(arg, vector));
            break;
        }
        default: break;
        }
    }
    return MB_STATUS_OK;
}

static mb_status check_dtype(const mb_op_arg *arg, mb_dtype dtype)
{
    if (arg->dtypes & MB_BIT(dtype))
        return MB_STATUS_OK;
    char accepted[80] = "";
    const char *into = arg->dtypes & MB_BIT(MB_F32) ? mb_dtype_name(MB_F32) : NULL;
    for (int i = 0; i < MB_DTYPE_COUNT; i++)
        if (arg->dtypes & MB_BIT(i)) {
            if (accepted[0])
                strncat(accepted, ", ", sizeof accepted - strlen(accepted) - 1);
            strncat(accepted, mb_dtype_name((mb_dtype)i), sizeof accepted - strlen(accepted) - 1);
            into = into != NULL ? into : mb_dtype_name((mb_dtype)i);
        }
    return mb_fail(MB_STATUS_DTYPE, arg->name, "%s is %s; accepted: %s (a:cast(\"%s\") converts)",
                   arg->name, mb_dtype_name(dtype), accepted, into);
}

static mb_status check_array(const mb_op_arg *arg, const mb_spec *spec)
{
    char text[128];
    if (!spec->present)
        return arg->required ? mb_fail(MB_STATUS_ARGUMENT, arg->name, "%s is missing", arg->name)
                             : MB_STATUS_OK;
    MB_TRY(check_dtype(arg, spec->dtype));
    if (spec->shape.rank < arg->rank_min || spec->shape.rank > arg->rank_max) {
        if (arg->rank_min == arg->rank_max)
            return mb_fail(MB_STATUS_SHAPE, arg->name, "%s is %s; %d axes are needed", arg->name,
                           mb_shape_format(&spec->shape, text, sizeof text), arg->rank_min);
        return mb_fail(MB_STATUS_SHAPE, arg->name, "%s is %s; %d to %d axes are needed", arg->name,
                       mb_shape_format(&spec->shape, text, sizeof text), arg->rank_min,
                       arg->rank_max);
    }
    for (int i = 0; i < spec->shape.rank; i++)
        if (spec->shape.dims[i] < 0)
            return mb_fail(MB_STATUS_SHAPE, arg->name, "extent %d of %s is negative", i + 1,
                           arg->name);
    uint64_t bytes;
    return mb_shape_bytes(&spec->shape, spec->dtype, &bytes);
}

static mb_status check(const mb_op *op, const void *params, mb_spec *arrays)
{
    MB_TRY(check_parameters(op, params));
    int count = mb_op_array_count(op);
    for (int i = 0; i < count; i++) {
        const mb_op_arg *arg = mb_op_array_arg(op, i);
        if (arg->kind == MB_ARG_OUT)
            arrays[i] = (mb_spec){.present = false};
        else
            MB_TRY(check_array(arg, &arrays[i]));
    }
    MB_TRY(op->infer(params, arrays));
    uint64_t bytes;
    for (int i = 0; i < count; i++)
        if (arrays[i].present)
            MB_TRY(mb_shape_bytes(&arrays[i].shape, arrays[i].dtype, &bytes));
    return MB_STATUS_OK;
}

mb_status mb_op_check(const mb_op *op, const void *params, mb_spec *arrays)
{
    mb_status status = check(op, params, arrays);
    if (status != MB_STATUS_OK)
        mb_error_name_op(op->name);
    return status;
}

/* The kernel, asked for before anything is planned: a plan for a device that then refuses the
** call is none. */
static mb_status find_kernel(const mb_op *op, mb_device *device, mb_op_kernel *kernel)
{
    *kernel =
        device->facts.compute_capability == 0 ? op->run_host : mb_device_kernel(device, op->name);
    if (*kernel)
        return MB_STATUS_OK;
    return mb_fail(MB_STATUS_UNSUPPORTED, NULL,
                   "%s runs on the host alone: it has no kernel for %s; move its inputs with "
                   "a:to(\"host\")",
                   op->name, device->id);
}

/* ---- plan ---- */

static bool is_empty(const mb_op *op, const mb_spec *arrays)
{
    for (int i = 0; i < mb_op_array_count(op); i++)
        if (mb_op_array_arg(op, i)->kind != MB_ARG_IN && arrays[i].present &&
            mb_shape_elements(&arrays[i].shape))
            return false;
    return true;
}

static mb_status plan(const mb_op *op, const void *params, const mb_spec *arrays, mb_device *device,
                      mb_planner *planner)
{
    mb_op_kernel kernel;
    mb_planner_begin(planner, device);
    MB_TRY(find_kernel(op, device, &kernel));
    if (op->plan && !is_empty(op, arrays))
        op->plan(params, arrays, planner);
    return mb_planner_assign(planner);
}

mb_status mb_op_estimate_memory(const mb_op *op, const void *params, mb_spec *arrays,
                                const bool *given, mb_device *device, mb_op_estimate *out)
{
    memset(out, 0, sizeof *out);
    MB_TRY(mb_op_check(op, params, arrays));
    mb_planner planner;
    mb_status status = plan(op, params, arrays, device, &planner);
    if (status == MB_STATUS_OK) {
        for (int i = 0; i < mb_op_array_count(op); i++) {
            uint64_t bytes = 0;
            if (mb_op_array_arg(op, i)->kind != MB_ARG_OUT || !arrays[i].present ||
                (given && given[i]))
                continue;
            status = mb_shape_bytes(&arrays[i].shape, arrays[i].dtype, &bytes);
            out->result_bytes = mb_bytes_add(out->result_bytes, mb_pool_round(bytes));
        }
        out->scratch_bytes = planner.extent;
        out->peak_bytes = mb_bytes_add(out->result_bytes, out->scratch_bytes);
        out->slot_count = planner.slot_count;
        memcpy(out->slots, planner.slots, sizeof out->slots);
    }
    mb_planner_finish(&planner);
    if (status != MB_STATUS_OK)
        mb_error_name_op(op->name);
    return status;
}

/* ---- place and run ---- */

static mb_status check_layout(const mb_op *op, const mb_op_arg *arg, const mb_array *array)
{
    if (!mb_array_elements(array))
        return MB_STATUS_OK;
    if (op->strides == MB_STRIDES_CONTIGUOUS && !mb_array_contiguous(array))
        return mb_fail(MB_STATUS_SHAPE, arg->name,
                       "%s is a strided view; this operator needs it contiguous: a:copy()",
                       arg->name);
    if (op->strides == MB_STRIDES_ROWS && !mb_array_rows(array))
        return mb_fail(MB_STATUS_SHAPE, arg->name,
                       "the last axis of %s is not dense; this operator needs rows: a:copy()",
                       arg->name);
    if (arg->kind == MB_ARG_IN)
        return MB_STATUS_OK;
    for (int i = 0; i < array->shape.rank; i++)
        if (array->shape.dims[i] > 1 && array->strides[i] == 0)
            return mb_fail(MB_STATUS_SHAPE, arg->name,
                           "%s is a broadcast view and cannot be written to", arg->name);
    return MB_STATUS_OK;
}

/* May result `r` stand where input `i` stands? Element sizes may differ (in-place real transforms),
** addresses and the byte strides of all but the last axis may not. */
static bool coincide(const mb_array *r, const mb_array *i)
{
    if (r->data != i->data || r->shape.rank != i->shape.rank)
        return false;
    if (r->dtype == i->dtype)
        return mb_array_same(r, i);
    int64_t r_size = (int64_t)mb_dtype_bytes(r->dtype), i_size = (int64_t)mb_dtype_bytes(i->dtype);
    for (int k = 0; k < r->shape.rank - 1; k++)
        if (r->shape.dims[k] != 1 && r->strides[k] * r_size != i->strides[k] * i_size)
            return false;
    return true;
}

static mb_status check_overlap(const mb_op *op, mb_array *const *arrays, int count)
{
    for (int r = 0; r < count; r++) {
        const mb_op_arg *result = mb_op_array_arg(op, r);
        if (result->kind == MB_ARG_IN || !arrays[r])
            continue;
        for (int i = 0; i < count; i++) {
            if (i == r || !arrays[i] || !mb_array_overlap(arrays[r], arrays[i]))
                continue;
            bool allowed = result->kind == MB_ARG_OUT && (op->alias >> i & 1u) &&
                           coincide(arrays[r], arrays[i]);
            if (!allowed)
                return mb_fail(MB_STATUS_ARGUMENT, result->name,
                               "%s overlaps %s; give it memory of its own%s", result->name,
                               mb_op_array_arg(op, i)->name,
                               op->alias >> i & 1u ? " or exactly the same array" : "");
        }
    }
    return MB_STATUS_OK;
}

static mb_status check_given(const mb_op_arg *arg, const mb_array *array, const mb_spec *spec)
{
    char got[128], want[128];
    if (!spec->present)
        return mb_fail(MB_STATUS_ARGUMENT, arg->name, "with these arguments there is no result %s",
                       arg->name);
    if (array->dtype != spec->dtype)
        return mb_fail(MB_STATUS_DTYPE, arg->name, "%s is %s; the result is %s", arg->name,
                       mb_dtype_name(array->dtype), mb_dtype_name(spec->dtype));
    if (!mb_shape_equal(&array->shape, &spec->shape))
        return mb_fail(MB_STATUS_SHAPE, arg->name, "%s is %s; the result is %s", arg->name,
                       mb_shape_format(&array->shape, got, sizeof got),
                       mb_shape_format(&spec->shape, want, sizeof want));
    return MB_STATUS_OK;
}

static mb_status launch(const mb_op *op, const void *params, mb_array **arrays, int count,
                        mb_device *device, mb_planner *planner, const mb_block *scratch)
{
    mb_op_kernel kernel;
    MB_TRY(find_kernel(op, device, &kernel));
    mb_op_call call = {.op = op, .params = params, .device = device};
    for (int i = 0; i < count; i++)
        call.arrays[i] = arrays[i];
    for (int i = 0; i < planner->slot_count; i++) {
        call.slot_bytes[i] = planner->slots[i].bytes;
        call.slots[i] =
            planner->slots[i].bytes ? (char *)scratch->address + planner->slots[i].offset : NULL;
    }
    for (int i = 0; i < planner->fft_count; i++)
        call.ffts[i] = planner->ffts[i];
    call.stream = device->backend->stream(device->self);
    mb_status status = kernel(&call);
    if (status == MB_STATUS_DEVICE)
        device->dead = true;
    /* Host kernels skip the rest of their work when the flag is raised: what they leave is no
    ** result. */
    if (status == MB_STATUS_OK && device->backend == &mb_host_backend)
        status = mb_cancel_check();
    return status;
}

/* What a call takes at once: its scratch, and the results that nobody gave. */
static uint64_t need_of(const mb_op *op, const mb_spec *specs, mb_array *const *arrays,
                        const mb_planner *planner)
{
    uint64_t need = planner->extent;
    for (int i = 0; i < mb_op_array_count(op); i++) {
        uint64_t bytes = 0;
        if (mb_op_array_arg(op, i)->kind == MB_ARG_OUT && specs[i].present && !arrays[i] &&
            mb_shape_bytes(&specs[i].shape, specs[i].dtype, &bytes) == MB_STATUS_OK)
            need = mb_bytes_add(need, mb_pool_round(bytes));
    }
    return need;
}

/* Adds to the failure of a call that does not fit as a whole which part of it is the first that
** does not. */
static void describe_refused(const mb_op *op, const mb_spec *specs, mb_array *const *arrays,
                             uint64_t room)
{
    char request[160] = "scratch", shape[96];
    for (int i = 0; i < mb_op_array_count(op); i++) {
        uint64_t bytes = 0;
        if (mb_op_array_arg(op, i)->kind != MB_ARG_OUT || !specs[i].present || arrays[i] ||
            mb_shape_bytes(&specs[i].shape, specs[i].dtype, &bytes) != MB_STATUS_OK)
            continue;
        bytes = mb_pool_round(bytes);
        if (bytes > room) {
            snprintf(request, sizeof request, "result '%s', %s %s", mb_op_array_arg(op, i)->name,
                     mb_dtype_name(specs[i].dtype),
                     mb_shape_format(&specs[i].shape, shape, sizeof shape));
            break;
        }
        room -= bytes;
    }
    mb_error_describe(request);
}

/* Does the whole call fit? Asked before anything of it is live. */
static mb_status check_room(const mb_op *op, const mb_spec *specs, mb_array *const *arrays,
                            mb_device *device, const mb_planner *planner)
{
    mb_status status = mb_pool_fits(device->pool, need_of(op, specs, arrays, planner), op->name);
    if (status == MB_STATUS_BUDGET) {
        mb_pool_stats stats;
        mb_pool_get_stats(device->pool, &stats);
        describe_refused(op, specs, arrays, stats.free_bytes);
    }
    return status;
}

static mb_status run(const mb_op *op, const void *params, mb_array **arrays, mb_device *device,
                     const char *owner)
{
    int count = mb_op_array_count(op);
    mb_spec specs[MB_OP_MAX_ARRAYS] = {0};
    bool made[MB_OP_MAX_ARRAYS] = {false};
    MB_TRY(mb_cancel_check());
    if (device->dead)
        return mb_device_sync(device); /* says why */
    for (int i = 0; i < count; i++)
        if (arrays[i]) {
            const mb_op_arg *arg = mb_op_array_arg(op, i);
            if (arrays[i]->device != device)
                return mb_fail(MB_STATUS_ARGUMENT, arg->name,
                               "%s is on %s, the call runs on %s; move it with a:to(\"%s\")",
                               arg->name, arrays[i]->device->id, device->id, device->id);
            specs[i] = mb_array_spec(arrays[i]);
        }
    MB_TRY(mb_op_check(op, params, specs));
    for (int i = 0; i < count; i++)
        if (arrays[i]) {
            const mb_op_arg *arg = mb_op_array_arg(op, i);
            if (arg->kind == MB_ARG_OUT)
                MB_TRY(check_given(arg, arrays[i], &specs[i]));
            MB_TRY(check_layout(op, arg, arrays[i]));
        }
    MB_TRY(check_overlap(op, arrays, count));
    mb_planner planner;
    mb_block scratch = {.node = UINT32_MAX};
    mb_status status = plan(op, params, specs, device, &planner);
    bool noted = mb_ledger_on(device);
    uint64_t before = noted ? mb_pool_live(device->pool) : 0, peak = 0;
    if (status == MB_STATUS_OK)
        status = check_room(op, specs, arrays, device, &planner);
    mb_ledger_hush(1);
    for (int i = 0; status == MB_STATUS_OK && i < count; i++)
        if (mb_op_array_arg(op, i)->kind == MB_ARG_OUT && !arrays[i] && specs[i].present) {
            status = mb_array_create(device, specs[i].dtype, &specs[i].shape, owner, &arrays[i]);
            made[i] = status == MB_STATUS_OK;
        }
    if (status == MB_STATUS_OK)
        status = mb_pool_alloc(device->pool, planner.extent, MB_POOL_SCRATCH, op->name, &scratch);
    if (noted)
        peak = mb_pool_live(device->pool);
    if (status == MB_STATUS_OK && !device->dry && !is_empty(op, specs))
        status = launch(op, params, arrays, count, device, &planner, &scratch);
    mb_pool_free(device->pool, &scratch);
    uint64_t work = noted ? mb_planner_work(&planner) : 0;
    mb_planner_finish(&planner);
    for (int i = 0; status != MB_STATUS_OK && i < count; i++)
        if (made[i]) {
            mb_array_destroy(arrays[i]);
            arrays[i] = NULL;
        }
    mb_ledger_hush(-1);
    if (status == MB_STATUS_OK && noted) {
        uint64_t live = mb_pool_live(device->pool);
        mb_ledger_note(device, &(mb_ledger_row){.kind = MB_LEDGER_OPERATOR,
                                                .label = op->name,
                                                .owner = owner,
                                                .keep = (int64_t)(live - before),
                                                .temp = planner.extent - work,
                                                .work = work,
                                                .live = live,
                                                .peak = peak});
    }
    return status;
}

mb_status mb_op_run(const mb_op *op, const void *params, mb_array **arrays, mb_device *device,
                    const char *owner)
{
    mb_status status = run(op, params, arrays, device, owner);
    if (status != MB_STATUS_OK)
        mb_error_name_op(op->name);
    return status;
}
