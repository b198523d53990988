/*
** The operator registry: a table in the order of the generated list (build/gen/op_registry.inc,
** written by premake5.lua from the files op_<name>.c of the families), so it is sorted by name.
*/
#include "ops/op.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MB_OP(folder, name) extern const mb_op mb_op_##name;
#include "op_registry.inc"
#undef MB_OP

static mb_operator operators[] = {
#define MB_OP(folder, name) {.op = &mb_op_##name, .category = #folder},
#include "op_registry.inc"
#undef MB_OP
};

#define COUNT ((int)(sizeof operators / sizeof *operators))

static mb_named_kernel host_kernels[COUNT];

static void count_arguments(mb_operator *entry)
{
    assert(entry->op->params_bytes <= MB_OP_MAX_PARAMS);
    for (const mb_op_arg *arg = entry->op->args; arg < mb_op_args_end(entry->op); arg++) {
        entry->required += arg->required && arg->kind != MB_ARG_OUT;
        if (mb_op_is_array(arg)) {
            assert(entry->array_count < MB_OP_MAX_ARRAYS);
            entry->arrays[entry->array_count++] = arg;
        }
    }
}

mb_operator mb_operator_of(const mb_op *op)
{
    mb_operator entry = {.op = op, .number = -1};
    count_arguments(&entry);
    return entry;
}

/* Before main, or when the library is loaded: devices that open later ask for the kernels. */
__attribute__((constructor)) static void register_operators(void)
{
    for (int i = 0; i < COUNT; i++) {
        const mb_op *op = operators[i].op;
        operators[i].number = i;
        count_arguments(&operators[i]);
        host_kernels[i] = (mb_named_kernel){op->name, op->run_host};
    }
    mb_device_set_operators(host_kernels, COUNT);
}

int mb_operator_count(void)
{
    return COUNT;
}

const mb_operator *mb_operator_at(int number)
{
    return number >= 0 && number < COUNT ? &operators[number] : NULL;
}

const mb_operator *mb_operator_find(const char *name)
{
    int low = 0, high = COUNT - 1;
    while (low <= high) {
        int middle = (low + high) / 2, order = strcmp(name, operators[middle].op->name);
        if (order == 0)
            return &operators[middle];
        if (order < 0)
            high = middle - 1;
        else
            low = middle + 1;
    }
    return NULL;
}

mb_op_kernel mb_operator_kernel(const mb_operator *entry, const mb_device *device)
{
    if (entry->number >= 0)
        return device->kernels[entry->number];
    return device->backend->kernels ? NULL : entry->op->run_host;
}

const mb_op_arg *mb_op_find_arg(const mb_op *op, const char *name)
{
    for (const mb_op_arg *arg = op->args; arg < mb_op_args_end(op); arg++)
        if (strcmp(arg->name, name) == 0)
            return arg;
    return NULL;
}

int mb_op_array_index(const mb_op *op, const mb_op_arg *arg)
{
    int index = 0;
    for (const mb_op_arg *a = op->args; a != arg; a++)
        index += mb_op_is_array(a);
    return index;
}

const char *mb_op_choices(const mb_op_arg *arg, char list[400])
{
    size_t used = 0;
    for (int i = 0; arg->choices[i] && used + strlen(arg->choices[i]) + 3 < 400; i++)
        used +=
            (size_t)snprintf(list + used, 400 - used, "%s%s", i > 0 ? ", " : "", arg->choices[i]);
    return list;
}

void mb_op_defaults(const mb_op *op, void *params)
{
    memset(params, 0, op->params_bytes);
    for (const mb_op_arg *arg = op->args; arg < mb_op_args_end(op); arg++) {
        char *member = (char *)params + arg->offset;
        switch (arg->kind) {
        case MB_ARG_INT:
            *(int64_t *)(void *)member = isnan(arg->initial) ? 0 : (int64_t)arg->initial;
            break;
        case MB_ARG_FLOAT: *(double *)(void *)member = arg->initial; break;
        case MB_ARG_BOOL: *(bool *)member = arg->initial > 0; break;
        case MB_ARG_ENUM:
            *(int *)(void *)member = isnan(arg->initial) ? 0 : (int)arg->initial;
            break;
        default: break; /* arrays have no member; vectors start empty */
        }
    }
}
