/*
** The operator registry: a table in the order of the generated list (build/gen/op_registry.inc,
** written by premake5.lua from the files op_<name>.c of the families), so it is sorted by name.
*/
#include "ops/op.h"
#include <math.h>
#include <string.h>

#define MB_OP(name) extern const mb_op mb_op_##name;
#include "op_registry.inc"
#undef MB_OP

static const mb_op *const operators[] = {
#define MB_OP(name) &mb_op_##name,
#include "op_registry.inc"
#undef MB_OP
};

int mb_op_count(void)
{
    return (int)(sizeof operators / sizeof *operators);
}

const mb_op *mb_op_at(int index)
{
    return index >= 0 && index < mb_op_count() ? operators[index] : NULL;
}

const mb_op *mb_op_find(const char *name)
{
    int low = 0, high = mb_op_count() - 1;
    while (low <= high) {
        int middle = (low + high) / 2, order = strcmp(name, operators[middle]->name);
        if (order == 0)
            return operators[middle];
        if (order < 0)
            high = middle - 1;
        else
            low = middle + 1;
    }
    return NULL;
}

static bool is_array(mb_arg_kind kind)
{
    return kind == MB_ARG_IN || kind == MB_ARG_OUT || kind == MB_ARG_INOUT;
}

int mb_op_array_count(const mb_op *op)
{
    int count = 0;
    for (const mb_op_arg *arg = op->args; arg->name; arg++)
        count += is_array(arg->kind);
    return count;
}

const mb_op_arg *mb_op_array_arg(const mb_op *op, int array_index)
{
    for (const mb_op_arg *arg = op->args; arg->name; arg++)
        if (is_array(arg->kind) && array_index-- == 0)
            return arg;
    return NULL;
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
