/*
** The checks of a call: parameters and array specs against the descriptor's table, then the arrays
** that were given: their devices, their layouts, and what they share.
*/
#include "ops/check.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- parameters and specs ---- */

static bool is_outside(const mb_op_arg *arg, double value)
{
    return arg->min < arg->max && (value < arg->min || value > arg->max);
}

/* A value outside the range of an argument. `what`: its name, or that of an element. */
static mb_status outside(const mb_op_arg *arg, const char *what, double value)
{
    return mb_fail(MB_STATUS_ARGUMENT, arg->name, "%s is %.10g; it must lie in [%g, %g]%s%s", what,
                   value, arg->min, arg->max, arg->unit ? " " : "", arg->unit ? arg->unit : "");
}

static mb_status check_number(const mb_op_arg *arg, double value)
{
    if (isnan(value)) {
        if (arg->kind == MB_ARG_FLOAT && isnan(arg->initial))
            return MB_STATUS_OK; /* NaN stands for "not given" */
        return mb_fail(MB_STATUS_ARGUMENT, arg->name, "%s is not a number", arg->name);
    }
    if (!isfinite(value))
        return mb_fail(MB_STATUS_ARGUMENT, arg->name, "%s is infinite; it must be a finite number",
                       arg->name);
    return is_outside(arg, value) ? outside(arg, arg->name, value) : MB_STATUS_OK;
}

static mb_status check_element(const mb_op_arg *arg, int64_t index, double value)
{
    char what[64];
    if (isfinite(value) && !is_outside(arg, value))
        return MB_STATUS_OK;
    snprintf(what, sizeof what, "element %lld of %s", (long long)index + 1, arg->name);
    return isfinite(value) ? outside(arg, what, value)
                           : mb_fail(MB_STATUS_ARGUMENT, arg->name,
                                     "%s is %s; it must be a finite number", what,
                                     isnan(value) ? "NaN"
                                     : value > 0  ? "inf"
                                                  : "-inf");
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
                       "(math.rad converts one); for a scan of many turns give mb.tomo.wrapped(%s)",
                       arg->name, high - low, (high - low) / turn, arg->name);
    return MB_STATUS_OK;
}

static mb_status check_parameters(const mb_op *op, const void *params)
{
    for (const mb_op_arg *arg = op->args; arg < mb_op_args_end(op); arg++) {
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
            for (int64_t i = 0; vector->values && i < vector->count; i++)
                MB_TRY(check_element(arg, i, vector->values[i]));
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
        return arg->required ? mb_fail(MB_STATUS_ARGUMENT, arg->name,
                                       "%s is missing; give an array", arg->name)
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
            return mb_fail(MB_STATUS_SHAPE, arg->name,
                           "extent %d of %s is negative; it must be 0 or more", i + 1, arg->name);
    uint64_t bytes;
    return mb_shape_bytes(&spec->shape, spec->dtype, &bytes);
}

static mb_status check(const mb_operator *entry, const void *params, mb_spec *arrays)
{
    MB_TRY(check_parameters(entry->op, params));
    for (int i = 0; i < entry->array_count; i++)
        if (entry->arrays[i]->kind == MB_ARG_OUT)
            arrays[i] = (mb_spec){.present = false};
        else
            MB_TRY(check_array(entry->arrays[i], &arrays[i]));
    MB_TRY(entry->op->infer(params, arrays));
    uint64_t bytes;
    for (int i = 0; i < entry->array_count; i++)
        if (arrays[i].present)
            MB_TRY(mb_shape_bytes(&arrays[i].shape, arrays[i].dtype, &bytes));
    return MB_STATUS_OK;
}

mb_status mb_op_check(const mb_operator *entry, const void *params, mb_spec *arrays)
{
    mb_status status = check(entry, params, arrays);
    if (status != MB_STATUS_OK)
        mb_error_name_op(entry->op->name);
    return status;
}

/* ---- the arrays of a call ---- */

mb_status mb_op_check_device(const mb_op_arg *arg, const mb_array *array, const mb_device *device)
{
    if (array->device == device)
        return MB_STATUS_OK;
    return mb_fail(MB_STATUS_ARGUMENT, arg->name,
                   "%s is on %s, the call runs on %s; move it with a:to(\"%s\")", arg->name,
                   array->device->id, device->id, device->id);
}

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

/* May the array of result `r` lie where the others do? */
static mb_status check_overlap(const mb_operator *entry, mb_array *const *arrays, int r)
{
    const mb_op_arg *result = entry->arrays[r];
    for (int i = 0; i < entry->array_count; i++) {
        if (i == r || !arrays[i] || !mb_array_overlap(arrays[r], arrays[i]))
            continue;
        bool may = entry->op->alias >> i & 1u;
        if (!(may && result->kind == MB_ARG_OUT && coincide(arrays[r], arrays[i])))
            return mb_fail(MB_STATUS_ARGUMENT, result->name,
                           "%s overlaps %s; give it memory of its own%s", result->name,
                           entry->arrays[i]->name, may ? " or exactly the same array" : "");
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

mb_status mb_op_check_places(const mb_operator *entry, mb_array *const *arrays,
                             const mb_spec *specs)
{
    for (int i = 0; i < entry->array_count; i++) {
        if (!arrays[i])
            continue;
        if (entry->arrays[i]->kind == MB_ARG_OUT)
            MB_TRY(check_given(entry->arrays[i], arrays[i], &specs[i]));
        MB_TRY(check_layout(entry->op, entry->arrays[i], arrays[i]));
    }
    for (int i = 0; i < entry->array_count; i++)
        if (arrays[i] && entry->arrays[i]->kind != MB_ARG_IN)
            MB_TRY(check_overlap(entry, arrays, i));
    return MB_STATUS_OK;
}
