/*
** The one operator call: every operator is called from Lua through this file, driven by its
** descriptor.
**
**   result, ... = mb.<name>(required arguments in table order [, options])
**
** Options are the optional arguments by name, and `out`: the array for the result, or a table of
** arrays by result name. The results, including arrays changed in place, are returned in the order
** of the descriptor. All arguments are parsed and all userdata are made before the driver runs, so
** no failure can leak a resource: vectors live in buffers on the Lua stack.
*/
#include "lua_op.h"
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_owner.h"
#include "call/lua_type.h"
#include "call/lua_unknown.h"
#include "core/nearest.h"
#include "device/lua_device.h"
#include "lua_modules.h"
#include "lua_op_describe.h"
#include "memory/lua_allocate.h"
#include "memory/lua_array_box.h"
#include "memory/pool_point.h"
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

int mbl_op_fail(lua_State *L, const mb_op *op, mb_status code, const char *arg, const char *format,
                ...)
{
    va_list list;
    va_start(list, format);
    mb_vfail(code, arg, format, list);
    va_end(list);
    mb_error_name_op(op->name);
    mbl_raise(L);
}

const mb_operator *mbl_check_op(lua_State *L, int index)
{
    const char *name = mbl_check_string(L, index, "name");
    const mb_operator *entry = mb_operator_find(name);
    if (entry)
        return entry;
    const char *names[256];
    int count = mb_operator_count() < 255 ? mb_operator_count() : 255;
    for (int i = 0; i < count; i++)
        names[i] = mb_operator_at(i)->op->name;
    names[count] = NULL;
    const char *nearest = mb_nearest(name, names);
    mbl_fail(L, MB_STATUS_ARGUMENT, "name", "there is no operator '%s'%s%s%s", name,
             nearest ? "; did you mean '" : "; mb.op.list() has the names", nearest ? nearest : "",
             nearest ? "'?" : "");
    return NULL;
}

/* Raises an error for the option `key`, which the operator does not have. */
static _Noreturn void unknown_option(lua_State *L, const mb_op *op, const char *key)
{
    const char *names[MB_OP_MAX_ARGS + 3];
    int count = 0, position = 0;
    for (const mb_op_arg *arg = op->args; arg < mb_op_args_end(op); arg++) {
        if (arg->kind == MB_ARG_OUT)
            continue;
        if (!arg->required) {
            names[count++] = arg->name;
            continue;
        }
        position++;
        if (strcmp(arg->name, key) == 0)
            mbl_op_fail(L, op, MB_STATUS_ARGUMENT, key, "'%s' is argument %d, not an option", key,
                        position);
    }
    names[count++] = "out";
    names[count] = NULL;
    mbl_unknown_option(L, key, names, op->name);
}

/* ---- parameters ---- */

/* What an argument must be, in words. */
static const char *expected(const mb_op_arg *arg)
{
    static const char *const WORDS[] = {
        [MB_ARG_IN] = "an array",
        [MB_ARG_OUT] = "an array",
        [MB_ARG_INOUT] = "an array",
        [MB_ARG_INT] = "an integer",
        [MB_ARG_FLOAT] = "a number",
        [MB_ARG_BOOL] = "true or false",
        [MB_ARG_ENUM] = "a name",
        [MB_ARG_VECTOR] = "a table of numbers, a number or a 1-D array",
    };
    return arg->kind == MB_ARG_FLOAT && isnan(arg->initial) ? "a number or \"auto\""
                                                            : WORDS[arg->kind];
}

static int wrong_type(lua_State *L, const mb_op *op, const mb_op_arg *arg)
{
    mbl_check_known(L, -1);
    return mbl_op_fail(L, op, MB_STATUS_ARGUMENT, arg->name, "%s must be %s, not a %s", arg->name,
                       expected(arg), mbl_type_name(L, -1));
}

static int missing_argument(lua_State *L, const mb_op *op, const mb_op_arg *arg, int position)
{
    char list[400];
    const bool choice = arg->kind == MB_ARG_ENUM;
    return mbl_op_fail(L, op, MB_STATUS_ARGUMENT, arg->name,
                       "argument %d, '%s', is missing; give %s%s (%s)", position, arg->name,
                       choice ? "one of " : "", choice ? mb_op_choices(arg, list) : expected(arg),
                       arg->doc);
}

static void set_enum(lua_State *L, const mb_op *op, const mb_op_arg *arg, int *member)
{
    char list[400];
    if (lua_type(L, -1) != LUA_TSTRING)
        wrong_type(L, op, arg);
    const char *name = lua_tostring(L, -1);
    for (int i = 0; arg->choices[i]; i++) {
        if (strcmp(arg->choices[i], name) == 0) {
            *member = i;
            return;
        }
    }
    /* Element types have aliases. */
    mb_dtype dtype;
    if (mb_dtype_parse(name, &dtype))
        for (int i = 0; arg->choices[i]; i++)
            if (strcmp(arg->choices[i], mb_dtype_name(dtype)) == 0) {
                *member = i;
                return;
            }
    const char *nearest = mb_nearest(name, arg->choices);
    if (nearest)
        mbl_op_fail(L, op, MB_STATUS_ARGUMENT, arg->name,
                    "%s has no choice '%s'; did you mean '%s'?", arg->name, name, nearest);
    mbl_op_fail(L, op, MB_STATUS_ARGUMENT, arg->name, "%s has no choice '%s'; it has %s", arg->name,
                name, mb_op_choices(arg, list));
}

/* Reads the elements of a 1-D array as doubles into a buffer that stays on the stack. */
static void vector_from_array(lua_State *L, const mb_op *op, const mb_op_arg *arg,
                              mb_vector *member)
{
    const mb_array *array = mbl_check_array(L, -1);
    if (array->shape.rank != 1 || mb_dtype_kind(array->dtype) == MB_CLASS_COMPLEX)
        mbl_op_fail(
            L, op, MB_STATUS_SHAPE, arg->name,
            "%s must be a table, a number or a real array of one axis, not a %s array of %d",
            arg->name, mb_dtype_name(array->dtype), array->shape.rank);
    if (array->device->dry)
        mbl_op_fail(L, op, MB_STATUS_DRY_RUN, arg->name,
                    "%s needs values, which an array does not have in a dry run; give a table",
                    arg->name);
    int64_t count = array->shape.dims[0];
    double *values = lua_newuserdatauv(L, (size_t)(count > 0 ? count : 1) * sizeof *values, 0);
    double imag;
    if (count > 0 && mb_array_contiguous(array)) {
        size_t element = mb_dtype_bytes(array->dtype);
        char *raw = lua_newuserdatauv(L, (size_t)(count > 0 ? count : 1) * element, 0);
        mbl_check(L, mb_array_download(array, raw, (uint64_t)count * element));
        for (int64_t i = 0; i < count; i++)
            values[i] = mb_element_get(array->dtype, raw + (size_t)i * element, &imag);
        lua_pop(L, 1);
    } else {
        for (int64_t i = 0; i < count; i++)
            mbl_check(L, mb_array_item(array, &i, &values[i], &imag));
    }
    member->values = values;
    member->count = count;
}

/* Raises for a table with names where a list of numbers is needed. */
static void names_given(lua_State *L, const mb_op *op, const mb_op_arg *arg)
{
    if (arg->required)
        mbl_op_fail(L, op, MB_STATUS_ARGUMENT, arg->name,
                    "this table has names, and %s is a number or a list without a name, before the "
                    "options: %s(..., %s, {options})",
                    arg->name, op->name, arg->name);
    mbl_op_fail(L, op, MB_STATUS_ARGUMENT, arg->name,
                "%s must be a list of numbers; this table has names", arg->name);
}

/* If the argument may be a list of lists and the value at the top is one, replaces it by one flat
** list. All inner lists must have the same length. */
static void flatten(lua_State *L, const mb_op *op, const mb_op_arg *arg)
{
    const int lists = lua_absindex(L, -1);
    const lua_Unsigned count = lua_rawlen(L, lists);
    lua_Unsigned each = 0;
    lua_newtable(L);
    for (lua_Unsigned i = 0; i < count; i++) {
        const bool list = lua_rawgeti(L, lists, (lua_Integer)i + 1) == LUA_TTABLE;
        if (i == 0)
            each = list ? lua_rawlen(L, -1) : 0;
        if (!list || lua_rawlen(L, -1) != each)
            mbl_op_fail(L, op, MB_STATUS_ARGUMENT, arg->name,
                        "%s[%llu] is not a list of %llu numbers like the first", arg->name,
                        (unsigned long long)i + 1, (unsigned long long)each);
        for (lua_Unsigned k = 0; k < each; k++) {
            lua_rawgeti(L, -1, (lua_Integer)k + 1);
            lua_rawseti(L, lists + 1, (lua_Integer)(i * each + k) + 1);
        }
        lua_pop(L, 1);
    }
    lua_replace(L, lists);
}

/* Of a vector: as many as the longest that an operator takes. A __len may say anything. */
enum { MOST_NUMBERS = 1 << 24 };

static void set_vector(lua_State *L, const mb_op *op, const mb_op_arg *arg, mb_vector *member)
{
    int type = lua_type(L, -1);
    if (type == LUA_TTABLE && arg->rank_max == 2) {
        const bool nested = lua_rawgeti(L, -1, 1) == LUA_TTABLE;
        lua_pop(L, 1);
        if (nested)
            flatten(L, op, arg);
    }
    if (type == LUA_TUSERDATA && mbl_array_slot(L, -1)) {
        vector_from_array(L, op, arg, member);
        return;
    }
    if (type != LUA_TNUMBER && type != LUA_TTABLE)
        wrong_type(L, op, arg);
    int value = lua_absindex(L, -1);
    lua_Unsigned count = type == LUA_TNUMBER ? 1 : mbl_length(L, value);
    if (count > MOST_NUMBERS)
        mbl_op_fail(L, op, MB_STATUS_ARGUMENT, arg->name,
                    "%s has %llu numbers; give at most %d, or an array", arg->name,
                    (unsigned long long)count, MOST_NUMBERS);
    double *values = lua_newuserdatauv(L, (size_t)(count > 0 ? count : 1) * sizeof *values, 0);
    if (type == LUA_TNUMBER)
        values[0] = lua_tonumber(L, value);
    if (type == LUA_TTABLE)
        mbl_check_known(L, value);
    for (lua_Unsigned i = 0; type == LUA_TTABLE && i < count; i++) {
        lua_geti(L, value, (lua_Integer)i + 1);
        mbl_check_known(L, -1);
        if (lua_type(L, -1) != LUA_TNUMBER)
            mbl_op_fail(L, op, MB_STATUS_ARGUMENT, arg->name, "%s[%llu] is a %s, not a number",
                        arg->name, (unsigned long long)i + 1, mbl_type_name(L, -1));
        values[i] = lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
    if (count == 0 && type == LUA_TTABLE) {
        lua_pushnil(L);
        if (lua_next(L, value) != 0)
            names_given(L, op, arg);
    }
    member->values = values;
    member->count = (int64_t)count;
}

void mbl_set_param(lua_State *L, const mb_op *op, const mb_op_arg *arg, void *params)
{
    void *member = (char *)params + arg->offset;
    int isnum = 0;
    switch (arg->kind) {
    case MB_ARG_INT:
        *(int64_t *)member = lua_tointegerx(L, -1, &isnum);
        if (lua_type(L, -1) != LUA_TNUMBER)
            wrong_type(L, op, arg);
        if (!isnum)
            mbl_op_fail(L, op, MB_STATUS_ARGUMENT, arg->name, "%s must be an integer, not %g",
                        arg->name, lua_tonumber(L, -1));
        break;
    case MB_ARG_FLOAT:
        if (isnan(arg->initial) && lua_type(L, -1) == LUA_TSTRING &&
            strcmp(lua_tostring(L, -1), "auto") == 0)
            break;
        if (lua_type(L, -1) != LUA_TNUMBER)
            wrong_type(L, op, arg);
        *(double *)member = lua_tonumber(L, -1);
        if (isnan(*(double *)member) && isnan(arg->initial) && !arg->required) /* "auto" */
            mbl_op_fail(L, op, MB_STATUS_ARGUMENT, arg->name, "%s is not a number", arg->name);
        break;
    case MB_ARG_BOOL:
        if (lua_type(L, -1) != LUA_TBOOLEAN)
            wrong_type(L, op, arg);
        *(bool *)member = lua_toboolean(L, -1);
        break;
    case MB_ARG_ENUM: set_enum(L, op, arg, member); break;
    case MB_ARG_VECTOR: set_vector(L, op, arg, member); break;
    default: break;
    }
}

/* ---- the call ---- */

typedef struct op_request {
    const mb_operator *entry;
    const void *params;
    mb_array *arrays[MB_OP_MAX_ARRAYS]; /* on entry the inputs and given results, afterwards all */
    mb_device *device;
    const char *owner;
} op_request;

static mb_status run_request(void *user)
{
    op_request *r = user;
    mb_array *arrays[MB_OP_MAX_ARRAYS];
    memcpy(arrays, r->arrays, sizeof arrays);
    mb_status status = mb_op_run(r->entry, r->params, arrays, r->device, r->owner);
    if (status == MB_STATUS_OK)
        memcpy(r->arrays, arrays, sizeof arrays);
    return status;
}

/* The array on the top of the stack. */
static mb_array *array_argument(lua_State *L, const mb_op *op, const char *name)
{
    mb_array **slot = mbl_array_slot(L, -1);
    if (!slot)
        mbl_op_fail(L, op, MB_STATUS_ARGUMENT, name, "%s must be an array, not a %s", name,
                    mbl_type_name(L, -1));
    if (!*slot)
        mbl_op_fail(L, op, MB_STATUS_ARGUMENT, name,
                    "%s has been released; give an array that is in use", name);
    return *slot;
}

static bool takes_arrays(const mb_op *op)
{
    for (const mb_op_arg *arg = op->args; arg < mb_op_args_end(op); arg++)
        if (arg->required && (arg->kind == MB_ARG_IN || arg->kind == MB_ARG_INOUT))
            return true;
    return false;
}

/* Every key of the option table must be an optional argument, `out` or (without input arrays)
** `device`. */
static void check_call_options(lua_State *L, const mb_op *op, int options)
{
    if (lua_isnil(L, options))
        return;
    lua_pushnil(L);
    while (lua_next(L, options) != 0) {
        if (lua_type(L, -2) != LUA_TSTRING)
            mbl_op_fail(L, op, MB_STATUS_ARGUMENT, NULL,
                        "options are given by name; this table has a [%s]",
                        luaL_tolstring(L, -2, NULL));
        const char *key = lua_tostring(L, -2);
        const mb_op_arg *arg = mb_op_find_arg(op, key);
        bool known = strcmp(key, "out") == 0 || (strcmp(key, "device") == 0 && !takes_arrays(op)) ||
                     (arg && !arg->required && arg->kind != MB_ARG_OUT);
        if (!known)
            unknown_option(L, op, key);
        lua_pop(L, 1);
    }
}

/* Finds the result of this name in the value at index `out` (0: no value); pushes it, or nil. */
static mb_array *given_result(lua_State *L, const mb_op *op, const mb_op_arg *arg, int out,
                              bool first)
{
    if (out != 0 && lua_istable(L, out))
        lua_getfield(L, out, arg->name);
    else if (out != 0 && first)
        lua_pushvalue(L, out);
    else
        lua_pushnil(L);
    return lua_isnil(L, -1) ? NULL : array_argument(L, op, arg->name);
}

static void check_out(lua_State *L, const mb_op *op, int out)
{
    if (!lua_istable(L, out)) {
        lua_pushvalue(L, out);
        array_argument(L, op, "out");
        lua_pop(L, 1);
        return;
    }
    lua_pushnil(L);
    while (lua_next(L, out) != 0) {
        const mb_op_arg *arg = NULL;
        if (lua_type(L, -2) == LUA_TSTRING)
            arg = mb_op_find_arg(op, lua_tostring(L, -2));
        if (!arg || arg->kind != MB_ARG_OUT)
            mbl_op_fail(L, op, MB_STATUS_ARGUMENT, "out",
                        "out: there is no result '%s'; mb.help(\"%s\") lists the results",
                        luaL_tolstring(L, -2, NULL), op->name);
        lua_pop(L, 1);
    }
}

/* Arguments 1 to `options` are what the caller gave. */
static void check_arguments(lua_State *L, const mb_op *op, int options)
{
    const int required = options - 1;
    if (lua_gettop(L) > options)
        mbl_op_fail(L, op, MB_STATUS_ARGUMENT, NULL,
                    "%d argument%s and one table of options are needed, got %d", required,
                    required == 1 ? "" : "s", lua_gettop(L));
    lua_settop(L, options);
    luaL_checkstack(L, 2 * MB_OP_MAX_ARGS + 3 * MB_OP_MAX_ARRAYS, op->name);
    if (!lua_isnil(L, options) && !lua_istable(L, options))
        mbl_op_fail(L, op, MB_STATUS_ARGUMENT, NULL,
                    "argument %d must be a table of options, not a %s", options,
                    mbl_type_name(L, options));
    check_call_options(L, op, options);
}

/* A call in progress. The values of its arguments stay on the stack, which keeps their arrays and
** buffers alive. */
typedef struct op_call {
    op_request request;
    int options;                       /* stack index of the table of options, or of nil */
    int at[MB_OP_MAX_ARRAYS];          /* stack index of an input; 0: not given */
    mb_array **made[MB_OP_MAX_ARRAYS]; /* empty arrays for results not given */
} op_call;

static void parse_arguments(lua_State *L, op_call *c, void *params)
{
    const mb_op *op = c->request.entry->op;
    int position = 0, arrays = 0;
    for (const mb_op_arg *arg = op->args; arg < mb_op_args_end(op); arg++) {
        const int array = mb_op_is_array(arg) ? arrays++ : -1;
        if (arg->kind == MB_ARG_OUT)
            continue;
        if (arg->required) {
            lua_pushvalue(L, ++position);
            if (lua_isnil(L, -1))
                missing_argument(L, op, arg, position);
        } else if (!mbl_option(L, c->options, arg->name)) {
            continue;
        }
        if (array < 0) {
            mbl_set_param(L, op, arg, params);
        } else {
            c->request.arrays[array] = array_argument(L, op, arg->name);
            c->at[array] = lua_gettop(L);
        }
    }
}

/* The device of the first input, the `device` option, or that of the first given result. `out` is
** the stack index of the given results, or 0. */
static mb_device *device_of(lua_State *L, const op_call *c, int out)
{
    const mb_operator *entry = c->request.entry;
    for (int i = 0; i < entry->array_count; i++)
        if (c->request.arrays[i])
            return c->request.arrays[i]->device;
    const bool named = mbl_option(L, c->options, "device");
    lua_settop(L, lua_gettop(L) - named);
    const mb_array *given = NULL;
    bool first = true;
    for (int i = 0; !named && !given && i < entry->array_count; i++) {
        if (entry->arrays[i]->kind != MB_ARG_OUT)
            continue;
        given = given_result(L, entry->op, entry->arrays[i], out, first);
        first = false;
        lua_pop(L, 1);
    }
    return given ? given->device : mbl_option_device(L, c->options);
}

/* Pushes the results in the order of the descriptor: arrays that the call changes, given arrays and
** empty arrays to be filled. `out` is the stack index of the given results, or 0. Returns the
** number of results. */
static int push_results(lua_State *L, op_call *c, int out)
{
    const mb_operator *entry = c->request.entry;
    bool first = true;
    int count = 0;
    for (int i = 0; i < entry->array_count; i++) {
        const mb_op_arg *arg = entry->arrays[i];
        if (arg->kind == MB_ARG_IN)
            continue;
        count++;
        if (arg->kind == MB_ARG_INOUT) {
            if (c->at[i] > 0)
                lua_pushvalue(L, c->at[i]);
            else
                lua_pushnil(L);
            continue;
        }
        c->request.arrays[i] = given_result(L, entry->op, arg, out, first);
        first = false;
        if (!c->request.arrays[i]) {
            lua_pop(L, 1);
            c->made[i] = mbl_new_array(L);
        }
    }
    return count;
}

/* Moves the arrays that the driver made into the userdata, the last `results` stack values. */
static void fill_results(lua_State *L, const op_call *c, int results)
{
    uint64_t bytes = 0;
    for (int i = 0; i < c->request.entry->array_count; i++)
        if (c->made[i] && c->request.arrays[i]) {
            *c->made[i] = c->request.arrays[i];
            bytes += mb_pool_round(mb_array_bytes(*c->made[i]));
        }
    mbl_allocated(c->request.device, bytes);
    for (int i = lua_gettop(L) - results + 1; i <= lua_gettop(L); i++) {
        mb_array **slot = mbl_array_slot(L, i);
        if (slot && !*slot) { /* a result that these parameters do not have */
            lua_pushnil(L);
            lua_replace(L, i);
        }
    }
}

static int call_op(lua_State *L, const mb_operator *entry)
{
    const mb_op *op = entry->op;
    op_call call = {.request = {.entry = entry}, .options = entry->required + 1};
    _Alignas(max_align_t) char params[MB_OP_MAX_PARAMS];
    int out = 0;
    check_arguments(L, op, call.options);
    mb_op_defaults(op, params);
    parse_arguments(L, &call, params);
    if (mbl_option(L, call.options, "out")) {
        out = lua_gettop(L);
        check_out(L, op, out);
    }
    call.request.device = device_of(L, &call, out);
    const int results = push_results(L, &call, out);
    call.request.params = params;
    call.request.owner = mbl_owner(L);
    mbl_check(L, mbl_allocate(L, call.request.device, run_request, &call.request));
    fill_results(L, &call, results);
    return results;
}

/* run(name, ...) */
static int op_run(lua_State *L)
{
    const mb_operator *entry = mbl_check_op(L, 1);
    lua_remove(L, 1);
    return call_op(L, entry);
}

/* What function(name) returns. Upvalue 1: the operator. */
static int op_closure(lua_State *L)
{
    return call_op(L, lua_touserdata(L, lua_upvalueindex(1)));
}

/* closure(name): the operator as a function. */
static int op_function(lua_State *L)
{
    const mb_operator *entry = mbl_check_op(L, 1);
    lua_pushlightuserdata(L, (void *)entry);
    lua_pushcclosure(L, op_closure, 1);
    return 1;
}

int mbl_open_op(lua_State *L)
{
    static const luaL_Reg functions[] = {{"run", op_run}, {"closure", op_function}, {NULL, NULL}};
    luaL_newlib(L, functions);
    luaL_setfuncs(L, mbl_op_describe_functions, 0);
    luaL_setfuncs(L, mbl_op_estimate_functions, 0);
    return 1;
}
