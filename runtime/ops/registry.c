/*
** The operator registry: a table in the order of the generated list (build/gen/op_registry.inc,
** written by premake5.lua from the files op_<name>.c of the families), so it is sorted by name.
*/
#include "ops/op.h"
#include <assert.h>
#include <math.h>
#include <string.h>

#define MB_OP(name) extern const mb_op mb_op_##name;
#include "op_registry.inc"
#undef MB_OP

static const mb_op *const descriptors[] = {
#define MB_OP(name) &mb_op_##name,
#include "op_registry.inc"
#undef MB_OP
};

#define COUNT ((int)(sizeof descriptors / sizeof *descriptors))

static mb_operator operators[COUNT];
static mb_named_kernel host_kernels[COUNT];

mb_operator mb_operator_of(const mb_op *op)
{
    mb_operator entry = {.op = op, .number = -1};
    assert(op->params_bytes <= MB_OP_MAX_PARAMS);
    for (const mb_op_arg *arg = op->args; arg->name; arg++) {
        entry.required += arg->required && arg->kind != MB_ARG_OUT;
        if (arg->kind == MB_ARG_IN || arg->kind == MB_ARG_OUT || arg->kind == MB_ARG_INOUT) {
            assert(entry.array_count < MB_OP_MAX_ARRAYS);
            entry.arrays[entry.array_count++] = arg;
        }
    }
    return entry;
}

/* Before main, or when the library is loaded: devices that open later ask for the kernels. */
__attribute__((constructor)) static void register_operators(void)
{
    for (int i = 0; i < COUNT; i++) {
        operators[i] = mb_operator_of(descriptors[i]);
        operators[i].number = i;
        host_kernels[i] = (mb_named_kernel){descriptors[i]->name, descriptors[i]->run_host};
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
        int middle = (low + high) / 2, order = strcmp(name, descriptors[middle]->name);
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

void mb_op_defaults(const mb_op *op, void *params)
{
    memset(params, 0, op->params_bytes);
    for (const mb_op_arg *arg = op->args; arg->name; arg++) {
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
