/*
** What a call of an operator would take, and how it can be cut. The arguments need not exist: an
** input is an array or its type and shape, and parameters are given by name.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_table.h"
#include "call/lua_type.h"
#include "device/lua_device.h"
#include "lua_op.h"
#include "lua_op_describe.h"
#include "memory/lua_array_box.h"
#include "ops/cut.h"
#include <string.h>

/* ---- arguments ---- */

/* Reads the value at the top of the stack: an array, {d1, d2, ...} (f32), {dtype, d1, ...} or
** {dtype =, shape =}. */
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
            mbl_op_fail(L, op, MB_STATUS_SHAPE, arg->name,
                        "%s has a negative extent; extents must be 0 or more", arg->name);
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
                    mbl_type_name(L, inputs));
    for (const mb_op_arg *arg = op->args; arg < mb_op_args_end(op); arg++) {
        if (arg->kind != MB_ARG_IN && arg->kind != MB_ARG_INOUT)
            continue;
        position++;
        if (lua_getfield(L, inputs, arg->name) == LUA_TNIL) {
            lua_pop(L, 1);
            lua_geti(L, inputs, position);
        }
        if (lua_toboolean(L, -1))
            arrays[mb_op_array_index(op, arg)] = check_spec(L, op, arg);
        else if (arg->required)
            mbl_op_fail(L, op, MB_STATUS_ARGUMENT, arg->name,
                        "input %d of %s, '%s', is missing; give an array or {dtype, extent, ...}",
                        position, op->name, arg->name);
        lua_pop(L, 1);
    }
}

/* Fails for a key that is none of the parameters. */
static _Noreturn void unknown_param(lua_State *L, const mb_op *op, const char *key)
{
    const char *names[MB_OP_MAX_ARGS + 1];
    int count = 0;
    for (const mb_op_arg *arg = op->args; arg < mb_op_args_end(op); arg++)
        if (!mb_op_is_array(arg))
            names[count++] = arg->name;
    names[count] = NULL;
    mbl_unknown_option(L, key, names, op->name);
}

/* Reads a table whose keys must be parameters. Buffers of vectors stay on the stack. */
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
        const mb_op_arg *arg =
            lua_type(L, -2) == LUA_TSTRING ? mb_op_find_arg(op, lua_tostring(L, -2)) : NULL;
        if (!arg || mb_op_is_array(arg))
            unknown_param(L, op, luaL_tolstring(L, -2, NULL));
        lua_pop(L, 1);
    }
    for (const mb_op_arg *arg = op->args; arg < mb_op_args_end(op); arg++)
        if (!mb_op_is_array(arg) && mbl_option(L, table, arg->name))
            mbl_set_param(L, op, arg, params);
}

/* Reads the option `given`: true for all results, otherwise a list of names. */
static void parse_given(lua_State *L, const mb_op *op, bool *given)
{
    bool all = lua_isboolean(L, -1) && lua_toboolean(L, -1);
    for (const mb_op_arg *arg = op->args; arg < mb_op_args_end(op); arg++)
        if (all && arg->kind == MB_ARG_OUT)
            given[mb_op_array_index(op, arg)] = true;
    if (!lua_istable(L, -1))
        return;
    for (lua_Unsigned i = 1; i <= lua_rawlen(L, -1); i++) {
        lua_rawgeti(L, -1, (lua_Integer)i);
        const char *name = mbl_check_string(L, -1, "given");
        const mb_op_arg *arg = mb_op_find_arg(op, name);
        if (!arg || arg->kind != MB_ARG_OUT)
            mbl_op_fail(L, op, MB_STATUS_ARGUMENT, "given",
                        "given: there is no result '%s'; mb.help(\"%s\") lists the results", name,
                        op->name);
        given[mb_op_array_index(op, arg)] = true;
        lua_pop(L, 1);
    }
}

/* ---- what a call takes ---- */

static void push_results(lua_State *L, const mb_op *op, const mb_spec *arrays)
{
    int count = 0;
    lua_newtable(L);
    for (const mb_op_arg *arg = op->args; arg < mb_op_args_end(op); arg++) {
        if (arg->kind != MB_ARG_OUT)
            continue;
        const mb_spec *spec = &arrays[mb_op_array_index(op, arg)];
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

/* ---- cuts ---- */

/* {[name of an array] = the axis along which it is cut} */
static void push_axes(lua_State *L, const mb_operator *entry, const mb_op_cut *cut)
{
    lua_newtable(L);
    for (int i = 0; i < entry->array_count; i++)
        if (cut->axes[i] >= 0)
            mbl_set_integer(L, entry->arrays[i]->name, cut->axes[i] + 1);
}

static void push_cut(lua_State *L, const mb_operator *entry, const mb_op_cut *cut)
{
    const int along = cut->axes[cut->result];
    lua_newtable(L);
    mbl_set_integer(L, "axis", cut->split->axis + 1);
    if (along >= 0)
        mbl_set_integer(L, "result_axis", along + 1);
    mbl_set_integer(L, "rows", cut->rows);
    mbl_set_integer(L, "packet", cut->packet);
    mbl_set_string(L, "combine", mbl_op_combines[cut->combine]);
    push_axes(L, entry, cut);
    lua_setfield(L, -2, "arrays");
}

/* Pushes the axes of the first array that may be cut with these arguments, each with the rows that
** a piece needs beside its own. */
static void push_split(lua_State *L, const mb_operator *entry, const void *params,
                       const mb_spec *arrays, const mb_device *device)
{
    int count = 0;
    lua_newtable(L);
    for (const mb_op_split *split = entry->op->split; split && split->axis >= 0; split++) {
        mb_op_cut cut;
        if (!mb_op_cut_along(entry, params, arrays, split->axis, device, &cut))
            continue;
        const mb_rows all = {0, cut.rows}, needs = mb_op_needs(&cut, params, arrays, all);
        push_cut(L, entry, &cut);
        mbl_set_integer(L, "before", all.first - needs.first);
        mbl_set_integer(L, "after", needs.end - all.end);
        lua_rawseti(L, -2, ++count);
    }
}

/* ---- calls that are not made ---- */

typedef struct imagined {
    const mb_operator *entry;
    mb_device *device;
    void *params; /* on the Lua stack */
    mb_spec arrays[MB_OP_MAX_ARRAYS];
    mb_op_estimate estimate;
} imagined;

/* Reads arguments 1 to 3: name, inputs, params. The device is an option of argument 4. */
static void imagine(lua_State *L, const bool *given, imagined *call)
{
    const mb_op *op = call->entry->op;
    parse_inputs(L, op, 2, call->arrays);
    call->params = lua_newuserdatauv(L, op->params_bytes > 0 ? op->params_bytes : 1, 0);
    mb_op_defaults(op, call->params);
    parse_params(L, op, 3, call->params);
    mb_status status = mb_op_estimate_memory(call->entry, call->params, call->arrays, given,
                                             call->device, &call->estimate);
    if (status != MB_STATUS_OK)
        mb_error_name_op(op->name);
    mbl_check(L, status);
}

/* Reads the options, argument 4, and opens the call. */
static void open_call(lua_State *L, const char *const *names, const char *what, imagined *call)
{
    memset(call, 0, sizeof *call);
    call->entry = mbl_check_op(L, 1);
    lua_settop(L, 4);
    mbl_check_options(L, 4, names, what);
    luaL_checkstack(L, 2 * MB_OP_MAX_ARGS + 10, call->entry->op->name);
    call->device = mbl_option_device(L, 4);
}

/* estimate(name, inputs [, params [, {device =, given =}]]) */
static int op_estimate(lua_State *L)
{
    static const char *const names[] = {"device", "given", NULL};
    bool given[MB_OP_MAX_ARRAYS] = {false};
    imagined call;
    open_call(L, names, "estimate", &call);
    const mb_op *op = call.entry->op;
    if (mbl_option(L, 4, "given")) {
        parse_given(L, op, given);
        lua_pop(L, 1);
    }
    imagine(L, given, &call);
    lua_newtable(L);
    mbl_set_integer(L, "result", (int64_t)call.estimate.result_bytes);
    mbl_set_integer(L, "scratch", (int64_t)call.estimate.scratch_bytes);
    mbl_set_integer(L, "peak", (int64_t)call.estimate.peak_bytes);
    mbl_push_basis(L, call.device);
    lua_setfield(L, -2, "basis");
    push_results(L, op, call.arrays);
    lua_setfield(L, -2, "results");
    push_slots(L, &call.estimate);
    lua_setfield(L, -2, "slots");
    push_split(L, call.entry, call.params, call.arrays, call.device);
    lua_setfield(L, -2, "split");
    return 1;
}

/* Pushes the value of a parameter as a call takes it; nil for an absent list. */
static void push_param(lua_State *L, const mb_op_arg *arg, const void *params)
{
    const void *member = (const char *)params + arg->offset;
    const mb_vector *vector = member;
    switch (arg->kind) {
    case MB_ARG_INT: lua_pushinteger(L, *(const int64_t *)member); return;
    case MB_ARG_FLOAT: lua_pushnumber(L, *(const double *)member); return;
    case MB_ARG_BOOL: lua_pushboolean(L, *(const bool *)member); return;
    case MB_ARG_ENUM: lua_pushstring(L, arg->choices[*(const int *)member]); return;
    default: break;
    }
    if (vector->count == 0) {
        lua_pushnil(L);
        return;
    }
    lua_createtable(L, (int)vector->count, 0);
    for (int64_t i = 0; i < vector->count; i++) {
        const double value = vector->values[i];
        if (value == (double)(int64_t)value)
            lua_pushinteger(L, (int64_t)value);
        else
            lua_pushnumber(L, value);
        lua_rawseti(L, -2, i + 1);
    }
}

static bool same_param(const mb_op_arg *arg, const void *one, const void *other)
{
    static const size_t sizes[] = {[MB_ARG_INT] = sizeof(int64_t),
                                   [MB_ARG_FLOAT] = sizeof(double),
                                   [MB_ARG_BOOL] = sizeof(bool),
                                   [MB_ARG_ENUM] = sizeof(int)};
    const char *a = (const char *)one + arg->offset, *b = (const char *)other + arg->offset;
    if (arg->kind != MB_ARG_VECTOR)
        return memcmp(a, b, sizes[arg->kind]) == 0;
    const mb_vector *u = (const void *)a, *v = (const void *)b;
    return u->values == v->values && u->count == v->count;
}

/* Pushes a copy of the table of parameters with the values that differ for a piece. */
static void push_params(lua_State *L, const imagined *call, const void *own)
{
    lua_newtable(L);
    if (lua_istable(L, 3))
        for (lua_pushnil(L); lua_next(L, 3) != 0;) {
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, -4);
        }
    const mb_op *op = call->entry->op;
    for (const mb_op_arg *arg = op->args; arg < mb_op_args_end(op); arg++)
        if (!mb_op_is_array(arg) && !same_param(arg, call->params, own)) {
            push_param(L, arg, own);
            lua_setfield(L, -2, arg->name);
        }
}

static int64_t check_row(lua_State *L, const mb_op *op, const char *name, int64_t most)
{
    lua_getfield(L, 4, name);
    const int64_t value = mbl_check_integer(L, -1, name);
    if (value < 1 || value > most)
        mbl_op_fail(L, op, MB_STATUS_ARGUMENT, name,
                    "%s is %lld; the rows along this axis are 1 to %lld", name, (long long)value,
                    (long long)most);
    lua_pop(L, 1);
    return value;
}

/* piece(name, inputs, params, {axis =, first =, last = [, device =]}) */
static int op_piece(lua_State *L)
{
    static const char *const names[] = {"device", "axis", "first", "last", NULL};
    double room[MB_OP_ROOM];
    imagined call;
    mb_op_cut cut;
    open_call(L, names, "piece", &call);
    const mb_op *op = call.entry->op;
    imagine(L, NULL, &call);
    lua_getfield(L, 4, "axis");
    const int64_t axis = mbl_check_integer(L, -1, "axis");
    if (axis < 1 || axis > MB_MAX_RANK ||
        !mb_op_cut_along(call.entry, call.params, call.arrays, (int)axis - 1, call.device, &cut))
        mbl_op_fail(L, op, MB_STATUS_UNSUPPORTED, "axis",
                    "%s cannot be cut along axis %lld of these arguments", op->name,
                    (long long)axis);
    const mb_rows rows = {check_row(L, op, "first", cut.rows) - 1,
                          check_row(L, op, "last", cut.rows)};
    if (rows.first >= rows.end)
        mbl_op_fail(L, op, MB_STATUS_ARGUMENT, "last", "last is %lld and first is %lld",
                    (long long)rows.end, (long long)rows.first + 1);
    void *own = lua_newuserdatauv(L, op->params_bytes > 0 ? op->params_bytes : 1, 0);
    const mb_op_piece piece = mb_op_piece_of(op, &cut, call.params, call.arrays, rows, own, room);
    push_cut(L, call.entry, &cut);
    mbl_set_integer(L, "first", piece.input.first + 1);
    mbl_set_integer(L, "last", piece.input.end);
    mbl_set_integer(L, "skip", piece.skip);
    push_params(L, &call, own);
    lua_setfield(L, -2, "params");
    return 1;
}

const luaL_Reg mbl_op_estimate_functions[] = {
    {"estimate", op_estimate},
    {"piece", op_piece},
    {NULL, NULL},
};
