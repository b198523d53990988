/*
** The C API (moonbeam.h): operators by name. A list of arguments becomes the parameter structure
** and the arrays that the driver takes (ops/op.h).
*/
#include "moonbeam.h"
#include "ops/op.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARRAY_PARAM = 1, RESULT_PARAM, NUMBER_PARAM, TEXT_PARAM, VECTOR_PARAM };

static const char *const TYPE_NAMES[] = {"nothing",  "an array", "a place for a result",
                                         "a number", "a text",   "a vector"};

/* ---- what there is ---- */

int moonbeam_op_count(void)
{
    return mb_operator_count();
}

const char *moonbeam_op_name(int number)
{
    const mb_operator *entry = mb_operator_at(number);
    return entry ? entry->op->name : NULL;
}

const char *moonbeam_op_summary(const char *name)
{
    const mb_operator *entry = mb_operator_find(name);
    return entry ? entry->op->summary : NULL;
}

const char *moonbeam_op_doc(const char *name)
{
    const mb_operator *entry = mb_operator_find(name);
    return entry ? entry->op->doc : NULL;
}

static mb_status find_op(const char *name, const mb_operator **entry)
{
    *entry = name ? mb_operator_find(name) : NULL;
    if (!*entry)
        return mb_fail(MB_STATUS_ARGUMENT, "op", "there is no operator '%s'", name ? name : "NULL");
    return MB_STATUS_OK;
}

static moonbeam_argument_kind public_kind(mb_arg_kind kind)
{
    switch (kind) {
    case MB_ARG_IN: return MOONBEAM_ARRAY_IN;
    case MB_ARG_OUT: return MOONBEAM_ARRAY_OUT;
    case MB_ARG_INOUT: return MOONBEAM_ARRAY_INOUT;
    case MB_ARG_INT: return MOONBEAM_INT;
    case MB_ARG_FLOAT: return MOONBEAM_FLOAT;
    case MB_ARG_BOOL: return MOONBEAM_BOOL;
    case MB_ARG_ENUM: return MOONBEAM_CHOICE;
    default: return MOONBEAM_VECTOR;
    }
}

moonbeam_status moonbeam_argument_at(const char *name, int number, moonbeam_argument *out)
{
    const mb_operator *entry;
    *out = (moonbeam_argument){0};
    mb_status status = find_op(name, &entry);
    if (status != MB_STATUS_OK)
        return (moonbeam_status)status;
    const mb_op *op = entry->op;
    const int count = (int)op->arg_count;
    if (number < 0 || number >= count)
        return (moonbeam_status)mb_fail(MB_STATUS_ARGUMENT, "number",
                                        "%s has %d arguments, and none of number %d", name, count,
                                        number);
    const mb_op_arg *arg = &op->args[number];
    *out = (moonbeam_argument){.name = arg->name,
                               .unit = arg->unit,
                               .doc = arg->doc,
                               .kind = public_kind(arg->kind),
                               .required = arg->required,
                               .least = arg->min,
                               .most = arg->max,
                               .initial = arg->initial,
                               .choices = arg->choices};
    return MOONBEAM_OK;
}

/* ---- arguments ---- */

moonbeam_param moonbeam_array_param(const char *name, moonbeam_array *array)
{
    return (moonbeam_param){.name = name, .type = ARRAY_PARAM, .array = array};
}

moonbeam_param moonbeam_result(const char *name, moonbeam_array **result)
{
    return (moonbeam_param){.name = name, .type = RESULT_PARAM, .result = result};
}

moonbeam_param moonbeam_number(const char *name, double number)
{
    return (moonbeam_param){.name = name, .type = NUMBER_PARAM, .number = number};
}

moonbeam_param moonbeam_choice(const char *name, const char *text)
{
    return (moonbeam_param){.name = name, .type = TEXT_PARAM, .text = text};
}

moonbeam_param moonbeam_vector(const char *name, const double *values, int64_t count)
{
    return (moonbeam_param){.name = name, .type = VECTOR_PARAM, .values = values, .count = count};
}

moonbeam_param moonbeam_end(void)
{
    return (moonbeam_param){0};
}

typedef struct request {
    const mb_operator *entry;
    const mb_op *op;
    mb_device *device;
    void *params;
    mb_array *arrays[MB_OP_MAX_ARRAYS];         /* as given; NULL: absent */
    moonbeam_array **results[MB_OP_MAX_ARRAYS]; /* where to put what the call makes */
} request;

/* Is a parameter a NULL pointer of its type? */
static bool is_null(const moonbeam_param *param)
{
    switch (param->type) {
    case ARRAY_PARAM: return !param->array;
    case RESULT_PARAM: return !param->result;
    case TEXT_PARAM: return !param->text;
    case VECTOR_PARAM: return !param->values;
    default: return false;
    }
}

static mb_status wrong_type(const mb_op_arg *arg, const moonbeam_param *param, const char *expected)
{
    const bool known = param->type > 0 && param->type <= VECTOR_PARAM;
    if (param->type == VECTOR_PARAM && param->count < 0)
        return mb_fail(MB_STATUS_ARGUMENT, arg->name, "%s must be %s, got one of %lld elements",
                       arg->name, expected, (long long)param->count);
    return mb_fail(MB_STATUS_ARGUMENT, arg->name, "%s must be %s, got %s%s", arg->name, expected,
                   TYPE_NAMES[known ? param->type : 0], is_null(param) ? " that is NULL" : "");
}

static mb_status set_array(request *r, const mb_op_arg *arg, const moonbeam_param *param)
{
    const int index = mb_op_array_index(r->op, arg);
    if (param->type == RESULT_PARAM && arg->kind == MB_ARG_OUT && param->result) {
        r->results[index] = param->result;
        return MB_STATUS_OK;
    }
    if (param->type != ARRAY_PARAM || !param->array)
        return wrong_type(arg, param,
                          arg->kind == MB_ARG_OUT ? "an array or a result" : "an array");
    r->arrays[index] = (mb_array *)param->array;
    return MB_STATUS_OK;
}

static mb_status set_choice(const mb_op_arg *arg, const moonbeam_param *param, int *member)
{
    char list[400];
    if (param->type != TEXT_PARAM || !param->text)
        return wrong_type(arg, param, "a text");
    for (int i = 0; arg->choices[i]; i++)
        if (strcmp(arg->choices[i], param->text) == 0) {
            *member = i;
            return MB_STATUS_OK;
        }
    return mb_fail(MB_STATUS_ARGUMENT, arg->name, "%s has no choice '%s'; it has %s", arg->name,
                   param->text, mb_op_choices(arg, list));
}

static mb_status set_number(const mb_op_arg *arg, const moonbeam_param *param, void *member)
{
    const double value = param->number;
    if (param->type != NUMBER_PARAM)
        return wrong_type(arg, param, "a number");
    if (arg->kind == MB_ARG_FLOAT) {
        *(double *)member = value;
        return MB_STATUS_OK;
    }
    if (!(value == floor(value) && fabs(value) <= 9007199254740992.0))
        return mb_fail(MB_STATUS_ARGUMENT, arg->name, "%s must be an integer, got %g", arg->name,
                       value);
    if (arg->kind == MB_ARG_INT)
        *(int64_t *)member = (int64_t)value;
    else if (value == 0 || value == 1)
        *(bool *)member = value != 0;
    else
        return mb_fail(MB_STATUS_ARGUMENT, arg->name, "%s must be 0 or 1, got %g", arg->name,
                       value);
    return MB_STATUS_OK;
}

static mb_status set_vector(const mb_op_arg *arg, const moonbeam_param *param, mb_vector *member)
{
    if (param->type == NUMBER_PARAM)
        *member = (mb_vector){&param->number, 1};
    else if (param->type == VECTOR_PARAM && param->count >= 0 && (param->values || !param->count))
        *member = (mb_vector){param->values, param->count};
    else
        return wrong_type(arg, param, "a vector");
    return MB_STATUS_OK;
}

static mb_status set_argument(request *r, const mb_op_arg *arg, const moonbeam_param *param)
{
    void *member = (char *)r->params + arg->offset;
    if (mb_op_is_array(arg))
        return set_array(r, arg, param);
    if (arg->kind == MB_ARG_ENUM)
        return set_choice(arg, param, member);
    if (arg->kind == MB_ARG_VECTOR)
        return set_vector(arg, param, member);
    return set_number(arg, param, member);
}

static mb_status read_params(request *r, const moonbeam_param *params)
{
    bool given[MB_OP_MAX_ARGS] = {false};
    for (const moonbeam_param *p = params; p && p->name; p++) {
        const mb_op_arg *arg = mb_op_find_arg(r->op, p->name);
        if (!arg)
            return mb_fail(MB_STATUS_ARGUMENT, p->name, "%s has no argument '%s'", r->op->name,
                           p->name);
        if (given[arg - r->op->args])
            return mb_fail(MB_STATUS_ARGUMENT, arg->name, "%s is given twice", arg->name);
        MB_TRY(set_argument(r, arg, p));
        given[arg - r->op->args] = true;
    }
    for (const mb_op_arg *arg = r->op->args; arg < mb_op_args_end(r->op); arg++)
        if (arg->required && arg->kind != MB_ARG_OUT && !given[arg - r->op->args])
            return mb_fail(MB_STATUS_ARGUMENT, arg->name, "%s is missing: %s", arg->name, arg->doc);
    for (int i = 0; i < MB_OP_MAX_ARRAYS; i++)
        if (r->arrays[i] && (!r->device || i == 0))
            r->device = r->arrays[i]->device;
    return r->device ? MB_STATUS_OK
                     : mb_fail(MB_STATUS_ARGUMENT, "device",
                               "device is NULL; %s has no input array that says where to run",
                               r->op->name);
}

/* The request of a call. Its parameters must be freed in any case. */
static mb_status prepare(request *r, moonbeam_device *device, const char *name,
                         const moonbeam_param *params)
{
    memset(r, 0, sizeof *r);
    for (const moonbeam_param *p = params; p && p->name; p++)
        if (p->type == RESULT_PARAM && p->result)
            *p->result = NULL;
    MB_TRY(find_op(name, &r->entry));
    r->op = r->entry->op;
    r->device = (mb_device *)device;
    r->params = malloc(r->op->params_bytes > 0 ? r->op->params_bytes : 1);
    if (!r->params)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for the parameters of %s", name);
    mb_op_defaults(r->op, r->params);
    return read_params(r, params);
}

static moonbeam_status finish(request *r, mb_status status)
{
    if (status != MB_STATUS_OK && r->op)
        mb_error_name_op(r->op->name);
    free(r->params);
    return (moonbeam_status)status;
}

moonbeam_status moonbeam_run(moonbeam_device *device, const char *op, const moonbeam_param *params)
{
    request r;
    mb_array *arrays[MB_OP_MAX_ARRAYS];
    mb_status status = prepare(&r, device, op, params);
    if (status != MB_STATUS_OK)
        return finish(&r, status);
    memcpy(arrays, r.arrays, sizeof arrays);
    status = mb_op_run(r.entry, r.params, arrays, r.device, "C");
    for (int i = 0; status == MB_STATUS_OK && i < MB_OP_MAX_ARRAYS; i++)
        if (r.results[i])
            *r.results[i] = (moonbeam_array *)arrays[i];
        else if (!r.arrays[i])
            mb_array_destroy(arrays[i]);
    return finish(&r, status);
}

moonbeam_status moonbeam_estimate_run(moonbeam_device *device, const char *op,
                                      const moonbeam_param *params, moonbeam_estimate *out)
{
    request r;
    mb_op_estimate estimate;
    mb_spec specs[MB_OP_MAX_ARRAYS] = {{0}};
    bool given[MB_OP_MAX_ARRAYS];
    *out = (moonbeam_estimate){0};
    mb_status status = prepare(&r, device, op, params);
    if (status != MB_STATUS_OK)
        return finish(&r, status);
    for (int i = 0; i < MB_OP_MAX_ARRAYS; i++) {
        given[i] = r.arrays[i] != NULL;
        if (given[i])
            specs[i] = mb_array_spec(r.arrays[i]);
    }
    status = mb_op_estimate_memory(r.entry, r.params, specs, given, r.device, &estimate);
    if (status == MB_STATUS_OK)
        *out =
            (moonbeam_estimate){estimate.result_bytes, estimate.scratch_bytes, estimate.peak_bytes};
    return finish(&r, status);
}
