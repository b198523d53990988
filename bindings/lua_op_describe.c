/*
** What is known about operators without running them: descriptors as Lua tables, and estimates.
** Help texts, the reference page, completion in the REPL and the conformance spec are made from
** these tables.
*/
#include "lua_op_describe.h"
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_table.h"
#include "call/lua_type.h"
#include "device/lua_device.h"
#include "device/planned/planned_backend.h"
#include "lua_op.h"
#include "memory/lua_array_box.h"
#include <math.h>
#include <string.h>

static bool is_array(const mb_op_arg *arg)
{
    return arg->kind == MB_ARG_IN || arg->kind == MB_ARG_OUT || arg->kind == MB_ARG_INOUT;
}

static void push_arg(lua_State *L, const mb_op_arg *arg)
{
    static const char *const kinds[] = {"in",    "out",  "inout", "int",
                                        "float", "bool", "enum",  "vector"};
    lua_newtable(L);
    mbl_set_string(L, "name", arg->name);
    mbl_set_string(L, "kind", kinds[arg->kind]);
    mbl_set_boolean(L, "array", is_array(arg));
    mbl_set_boolean(L, "required", arg->required);
    mbl_set_string(L, "unit", arg->unit);
    mbl_set_string(L, "doc", arg->doc);
    if (is_array(arg)) {
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

static const char *const combines[] = {"none", "sum"};

/* Does a planned GPU, hence every GPU, have a kernel for it? */
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
    mbl_set_string(L, "category", op->category);
    mbl_set_string(L, "strides", strides[op->strides]);
    mbl_set_boolean(L, "host_only", !planned_kernel(op));
    mbl_set_number(L, "tolerance", op->tolerance);
    mbl_push_names(L, op->samples);
    lua_setfield(L, -2, "samples");
    lua_newtable(L);
    for (const mb_op_arg *arg = op->args; arg->name; arg++) {
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
        lua_newtable(L);
        mbl_set_integer(L, "axis", split->axis + 1);
        mbl_set_integer(L, "result_axis", split->result_axis + 1);
        mbl_set_boolean(L, "halo", split->halo);
        mbl_set_string(L, "combine", combines[split->combine]);
        lua_rawseti(L, -2, ++count);
    }
    lua_setfield(L, -2, "split");
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

/* supported(name, device): has the device's backend this operator? */
static int op_supported(lua_State *L)
{
    const mb_operator *entry = mbl_check_op(L, 1);
    mb_device *device = mbl_opt_device(L, 2);
    lua_pushboolean(L, !!mb_operator_kernel(entry, device));
    return 1;
}

/* ---- estimates ---- */

/* An array, {d1, d2, ...} (f32), {dtype, d1, ...} or {dtype =, shape =} at the top of the stack. */
static mb_spec check_spec(lua_State *L, const mb_op *op, const mb_op_arg *arg)
{
    mb_spec spec = {.present = true, .dtype = MB_F32};
    if (mbl_array_slot(L, -1))
        return mb_array_spec(mbl_check_array(L, -1));
    if (!lua_istable(L, -1))
        mbl_op_fail(L, op, MB_STATUS_ARGUMENT, arg->name,
                    "%s must be an array or {[dtype,] extent, ...}, not a %s", arg->name,
                    mbl_type_name(L, -1));
    int table = lua_absindex(L, -1);
    if (lua_getfield(L, table, "shape") != LUA_TNIL) {
        spec.shape = mbl_check_shape(L, -1, arg->name);
        spec.dtype = mbl_option_dtype(L, table, MB_F32);
        lua_pop(L, 1);
        return spec;
    }
    lua_pop(L, 1);
    const int named = lua_geti(L, table, 1) == LUA_TSTRING;
    if (named)
        spec.dtype = mbl_check_dtype(L, -1, arg->name);
    lua_pop(L, 1);
    lua_Unsigned rank = mbl_length(L, table) - (lua_Unsigned)named;
    if (rank > MB_MAX_RANK)
        mbl_op_fail(L, op, MB_STATUS_SHAPE, arg->name, "%s has %llu axes; at most %d are possible",
                    arg->name, (unsigned long long)rank, MB_MAX_RANK);
    spec.shape.rank = (int)rank;
    for (int axis = 0; axis < spec.shape.rank; axis++) {
        lua_geti(L, table, axis + 1 + named);
        spec.shape.dims[axis] = mbl_check_integer(L, -1, arg->name);
        if (spec.shape.dims[axis] < 0)
            mbl_op_fail(L, op, MB_STATUS_SHAPE, arg->name, "%s has a negative extent", arg->name);
        lua_pop(L, 1);
    }
    return spec;
}

static void parse_inputs(lua_State *L, const mb_op *op, int inputs, mb_spec *arrays)
{
    int position = 0;
    if (!lua_istable(L, inputs))
        mbl_op_fail(L, op, MB_STATUS_ARGUMENT, "inputs",
                    "inputs must be a list of arrays or of {[dtype,] extent, ...}, not a %s",
                    luaL_typename(L, inputs));
    for (const mb_op_arg *arg = op->args; arg->name; arg++) {
        if (arg->kind != MB_ARG_IN && arg->kind != MB_ARG_INOUT)
            continue;
        position++;
        if (lua_getfield(L, inputs, arg->name) == LUA_TNIL) {
            lua_pop(L, 1);
            lua_geti(L, inputs, position);
        }
        if (lua_toboolean(L, -1))
            arrays[mbl_op_array_index(op, arg)] = check_spec(L, op, arg);
        else if (arg->required)
            mbl_op_fail(L, op, MB_STATUS_ARGUMENT, arg->name, "input %d of %s, '%s', is missing",
                        position, op->name, arg->name);
        lua_pop(L, 1);
    }
}

/* Every key must be a parameter. Buffers of vectors stay on the stack. */
static void parse_params(lua_State *L, const mb_op *op, int table, void *params)
{
    if (lua_isnil(L, table))
        return;
    if (!lua_istable(L, table)) {
        lua_pushvalue(L, table);
        mbl_op_fail(L, op, MB_STATUS_ARGUMENT, "params",
                    "params must be a table of parameters by name, not a %s", mbl_type_name(L, -1));
    }
    lua_pushnil(L);
    while (lua_next(L, table) != 0) {
        bool known = false;
        for (const mb_op_arg *arg = op->args; arg->name && !known; arg++)
            known = !is_array(arg) && lua_type(L, -2) == LUA_TSTRING &&
                    strcmp(arg->name, lua_tostring(L, -2)) == 0;
        if (!known)
            mbl_op_unknown(L, op, luaL_tolstring(L, -2, NULL));
        lua_pop(L, 1);
    }
    for (const mb_op_arg *arg = op->args; arg->name; arg++)
        if (!is_array(arg) && mbl_option(L, table, arg->name))
            mbl_set_param(L, op, arg, params);
}

/* given = true: all results; otherwise a list of names. */
static void parse_given(lua_State *L, const mb_op *op, bool *given)
{
    bool all = lua_isboolean(L, -1) && lua_toboolean(L, -1);
    for (const mb_op_arg *arg = op->args; arg->name; arg++)
        if (all && arg->kind == MB_ARG_OUT)
            given[mbl_op_array_index(op, arg)] = true;
    if (!lua_istable(L, -1))
        return;
    for (lua_Unsigned i = 1; i <= lua_rawlen(L, -1); i++) {
        bool found = false;
        lua_rawgeti(L, -1, (lua_Integer)i);
        const char *name = mbl_check_string(L, -1, "given");
        for (const mb_op_arg *arg = op->args; arg->name; arg++)
            if (arg->kind == MB_ARG_OUT && strcmp(arg->name, name) == 0)
                found = given[mbl_op_array_index(op, arg)] = true;
        if (!found)
            mbl_op_fail(L, op, MB_STATUS_ARGUMENT, "given", "given: there is no result '%s'", name);
        lua_pop(L, 1);
    }
}

static void push_results(lua_State *L, const mb_op *op, const mb_spec *arrays)
{
    int count = 0;
    lua_newtable(L);
    for (const mb_op_arg *arg = op->args; arg->name; arg++) {
        if (arg->kind != MB_ARG_OUT)
            continue;
        const mb_spec *spec = &arrays[mbl_op_array_index(op, arg)];
        if (!spec->present)
            continue;
        uint64_t bytes = mb_bytes_mul(mb_shape_elements(&spec->shape), mb_dtype_bytes(spec->dtype));
        lua_newtable(L);
        mbl_set_string(L, "name", arg->name);
        mbl_set_string(L, "dtype", mb_dtype_name(spec->dtype));
        mbl_set_extents(L, "shape", spec->shape.rank, spec->shape.dims);
        mbl_set_integer(L, "bytes", (int64_t)bytes);
        lua_rawseti(L, -2, ++count);
    }
}

static void push_slots(lua_State *L, const mb_op_estimate *estimate)
{
    lua_newtable(L);
    for (int i = 0; i < estimate->slot_count; i++) {
        const mb_slot *slot = &estimate->slots[i];
        lua_newtable(L);
        mbl_set_string(L, "name", slot->name);
        mbl_set_integer(L, "bytes", (int64_t)slot->bytes);
        mbl_set_integer(L, "offset", (int64_t)slot->offset);
        mbl_set_integer(L, "first", slot->first);
        mbl_set_integer(L, "last", slot->last);
        lua_rawseti(L, -2, i + 1);
    }
}

/* The axes of the first input that may be cut for these arguments, with their halos. */
static void push_split(lua_State *L, const mb_op *op, const void *params, const mb_spec *arrays)
{
    int count = 0;
    lua_newtable(L);
    for (const mb_op_split *split = op->split; split && split->axis >= 0; split++) {
        int64_t before = 0, after = 0;
        if (split->axis >= arrays[0].shape.rank)
            continue;
        if (split->halo)
            split->halo(params, arrays, &before, &after);
        lua_newtable(L);
        mbl_set_integer(L, "axis", split->axis + 1);
        mbl_set_integer(L, "result_axis", split->result_axis + 1);
        mbl_set_integer(L, "before", before);
        mbl_set_integer(L, "after", after);
        mbl_set_string(L, "combine", combines[split->combine]);
        lua_rawseti(L, -2, ++count);
    }
}

/* estimate(name, inputs [, params [, {device =, given =}]]) */
static int op_estimate(lua_State *L)
{
    static const char *const names[] = {"device", "given", NULL};
    mb_spec arrays[MB_OP_MAX_ARRAYS];
    bool given[MB_OP_MAX_ARRAYS] = {false};
    mb_op_estimate estimate;
    memset(arrays, 0, sizeof arrays);
    memset(&estimate, 0, sizeof estimate);
    const mb_operator *entry = mbl_check_op(L, 1);
    const mb_op *op = entry->op;
    lua_settop(L, 4);
    mbl_check_options(L, 4, names, "estimate");
    luaL_checkstack(L, 2 * MB_OP_MAX_ARGS + 10, op->name);
    mb_device *device = mbl_option_device(L, 4);
    if (mbl_option(L, 4, "given")) {
        parse_given(L, op, given);
        lua_pop(L, 1);
    }
    parse_inputs(L, op, 2, arrays);
    void *params = lua_newuserdatauv(L, op->params_bytes > 0 ? op->params_bytes : 1, 0);
    mb_op_defaults(op, params);
    parse_params(L, op, 3, params);
    mb_status status = mb_op_estimate_memory(entry, params, arrays, given, device, &estimate);
    if (status != MB_STATUS_OK)
        mb_error_name_op(op->name);
    mbl_check(L, status);
    lua_newtable(L);
    mbl_set_integer(L, "result", (int64_t)estimate.result_bytes);
    mbl_set_integer(L, "scratch", (int64_t)estimate.scratch_bytes);
    mbl_set_integer(L, "peak", (int64_t)estimate.peak_bytes);
    mbl_push_basis(L, device);
    lua_setfield(L, -2, "basis");
    push_results(L, op, arrays);
    lua_setfield(L, -2, "results");
    push_slots(L, &estimate);
    lua_setfield(L, -2, "slots");
    push_split(L, op, params, arrays);
    lua_setfield(L, -2, "split");
    return 1;
}

const luaL_Reg mbl_op_describe_functions[] = {
    {"list", op_list},
    {"describe", op_describe},
    {"supported", op_supported},
    {"estimate", op_estimate},
    {NULL, NULL},
};
