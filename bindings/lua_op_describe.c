/*
** The descriptors of operators as Lua tables. Help texts, the reference pages, completion in the
** REPL and the conformance spec are made from these tables.
*/
#include "lua_op_describe.h"
#include "call/lua_args.h"
#include "call/lua_table.h"
#include "device/lua_device.h"
#include "device/planned/planned_backend.h"
#include "lua_op.h"
#include "memory/lua_array_box.h"
#include <math.h>
#include <string.h>

static void push_arg(lua_State *L, const mb_op_arg *arg)
{
    static const char *const kinds[] = {"in",    "out",  "inout", "int",
                                        "float", "bool", "enum",  "vector"};
    lua_newtable(L);
    mbl_set_string(L, "name", arg->name);
    mbl_set_string(L, "kind", kinds[arg->kind]);
    mbl_set_boolean(L, "array", mb_op_is_array(arg));
    mbl_set_boolean(L, "required", arg->required);
    mbl_set_string(L, "unit", arg->unit);
    mbl_set_string(L, "doc", arg->doc);
    if (mb_op_is_array(arg)) {
        int count = 0;
        lua_newtable(L);
        for (int dtype = 0; dtype < MB_DTYPE_COUNT; dtype++)
            if (arg->dtypes & MB_BIT(dtype)) {
                lua_pushstring(L, mb_dtype_name((mb_dtype)dtype));
                lua_rawseti(L, -2, ++count);
            }
        lua_setfield(L, -2, "dtypes");
        mbl_set_integer(L, "rank_min", arg->rank_min);
        mbl_set_integer(L, "rank_max", arg->rank_max);
        return;
    }
    if (arg->min < arg->max) {
        mbl_set_number(L, "min", arg->min);
        mbl_set_number(L, "max", arg->max);
    }
    if (arg->kind == MB_ARG_ENUM) {
        mbl_push_names(L, arg->choices);
        lua_setfield(L, -2, "choices");
    }
    if (arg->required || arg->kind == MB_ARG_VECTOR)
        return;
    if (arg->kind == MB_ARG_INT)
        mbl_set_integer(L, "default", (int64_t)arg->initial);
    else if (arg->kind == MB_ARG_BOOL)
        mbl_set_boolean(L, "default", arg->initial != 0);
    else if (arg->kind == MB_ARG_ENUM)
        mbl_set_string(L, "default", arg->choices[(int)arg->initial]);
    else if (isnan(arg->initial))
        mbl_set_string(L, "default", "auto");
    else
        mbl_set_number(L, "default", arg->initial);
}

const char *const mbl_op_combines[] = {"none", "sum", "min", "max"};

/* Whether a planned GPU, and therefore every GPU, has a kernel for the operator. */
static bool planned_kernel(const mb_op *op)
{
    const mb_named_kernel *kernel = mb_planned_backend.kernels;
    while (kernel->name && strcmp(kernel->name, op->name) != 0)
        kernel++;
    return kernel->name;
}

/* describe(name): the descriptor as a table. */
static int op_describe(lua_State *L)
{
    static const char *const strides[] = {"contiguous", "rows", "any"};
    const mb_operator *entry = mbl_check_op(L, 1);
    const mb_op *op = entry->op;
    int count = 0;
    lua_newtable(L);
    mbl_set_string(L, "name", op->name);
    mbl_set_string(L, "summary", op->summary);
    mbl_set_string(L, "doc", op->doc);
    mbl_set_string(L, "reference", op->reference);
    mbl_set_string(L, "category", entry->category);
    mbl_set_string(L, "strides", strides[op->strides]);
    mbl_set_boolean(L, "host_only", !planned_kernel(op));
    mbl_set_number(L, "tolerance", op->tolerance);
    lua_newtable(L);
    for (size_t i = 0; i < op->sample_count; i++) {
        lua_pushstring(L, op->samples[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "samples");
    lua_newtable(L);
    for (const mb_op_arg *arg = op->args; arg < mb_op_args_end(op); arg++) {
        push_arg(L, arg);
        lua_rawseti(L, -2, ++count);
    }
    lua_setfield(L, -2, "args");
    lua_newtable(L); /* names of the inputs that the first result may be identical to */
    count = 0;
    for (int i = 0; i < entry->array_count; i++)
        if (op->alias & (1u << i)) {
            lua_pushstring(L, entry->arrays[i]->name);
            lua_rawseti(L, -2, ++count);
        }
    lua_setfield(L, -2, "alias");
    lua_newtable(L);
    count = 0;
    for (const mb_op_split *split = op->split; split && split->axis >= 0; split++) {
        if (split->axis >= entry->arrays[0]->rank_max)
            break; /* the first array never has this many axes */
        lua_newtable(L);
        mbl_set_integer(L, "axis", split->axis + 1);
        mbl_set_string(L, "when", split->when);
        mbl_set_boolean(L, "needs", split->needs);
        mbl_set_boolean(L, "packet", split->packet);
        mbl_set_string(L, "combine", mbl_op_combines[split->combine]);
        lua_rawseti(L, -2, ++count);
    }
    lua_setfield(L, -2, "split");
    mbl_set_string(L, "uncut", op->uncut);
    return 1;
}

/* list(): the names, sorted. */
static int op_list(lua_State *L)
{
    int count = mb_operator_count();
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushstring(L, mb_operator_at(i)->op->name);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* supported(name, device): whether the device's backend has this operator. */
static int op_supported(lua_State *L)
{
    const mb_operator *entry = mbl_check_op(L, 1);
    mb_device *device = mbl_opt_device(L, 2);
    lua_pushboolean(L, !!mb_operator_kernel(entry, device));
    return 1;
}

const luaL_Reg mbl_op_describe_functions[] = {
    {"list", op_list},
    {"describe", op_describe},
    {"supported", op_supported},
    {NULL, NULL},
};
