/*
** Small values between Lua and HDF5: attributes, and scalar, string and list datasets. A Lua value
** becomes an mb_h5_value whose buffers are userdata and whose strings belong to Lua. All of them
** stay on the stack while the value is in use, so errors leak nothing.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_type.h"
#include "files/lua_h5.h"
#include <math.h>

static void push_number(lua_State *L, const mb_h5_value *value, int64_t i)
{
    const double number = value->numbers[i];
    if (value->integers && fabs(number) < 9.2e18)
        lua_pushinteger(L, (lua_Integer)number);
    else
        lua_pushnumber(L, number);
}

/* Pushes elements from *next on, as a scalar or as nested lists. */
static void push_part(lua_State *L, const mb_h5_value *value, int axis, int64_t *next)
{
    if (axis == value->rank) {
        if (value->text)
            lua_pushstring(L, value->strings[*next]);
        else
            push_number(L, value, *next);
        (*next)++;
        return;
    }
    luaL_checkstack(L, 4, "nested value");
    lua_createtable(L, (int)value->dims[axis], 0);
    for (int64_t i = 0; i < value->dims[axis] && value->count > 0; i++) {
        push_part(L, value, axis + 1, next);
        lua_rawseti(L, -2, i + 1);
    }
}

static void push_value(lua_State *L, const mb_h5_value *value)
{
    int64_t next = 0;
    if (!value)
        lua_pushnil(L);
    else
        push_part(L, value, 0, &next);
}

/* file:value(path): a scalar, string or short dataset as a Lua value. */
static int file_value(lua_State *L)
{
    const mb_h5_value *value;
    mb_h5 *file = mbl_check_h5(L, 1);
    mbl_check(L, mb_h5_value_read(file, mbl_check_string(L, 2, "path"), &value));
    push_value(L, value);
    return 1;
}

/* file:attribute(path, name): the value, or nil. */
static int file_attribute(lua_State *L)
{
    const mb_h5_value *value;
    mb_h5 *file = mbl_check_h5(L, 1);
    mbl_check(L, mb_h5_attribute_read(file, mbl_check_string(L, 2, "path"),
                                      mbl_check_string(L, 3, "name"), &value));
    push_value(L, value);
    return 1;
}

void mbl_push_h5_attributes(lua_State *L, mb_h5 *file, const char *path)
{
    char **names;
    int64_t count;
    const mb_h5_value *value;
    mbl_check(L, mb_h5_attribute_names(file, path, &names, &count));
    /* The file owns the names only until its next value call: copy them to Lua first. */
    lua_newtable(L);
    const int result = lua_gettop(L);
    lua_createtable(L, (int)count, 0);
    for (int64_t i = 0; i < count; i++) {
        lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, i + 1);
    }
    for (int64_t i = 0; i < count; i++) {
        lua_rawgeti(L, result + 1, i + 1);
        if (mb_h5_attribute_read(file, path, lua_tostring(L, -1), &value) == MB_STATUS_OK) {
            push_value(L, value);
            lua_rawset(L, result);
        } else {
            lua_pop(L, 1); /* values that have no Lua type, for example references, are left out */
        }
    }
    lua_settop(L, result);
}

static int file_attributes(lua_State *L)
{
    mb_h5 *file = mbl_check_h5(L, 1);
    mbl_push_h5_attributes(L, file, mbl_check_string(L, 2, "path"));
    return 1;
}

/* ---- from Lua ---- */

/* The value at `index`; pushes the objects that must stay on the stack. */
static mb_h5_value check_value(lua_State *L, int index, const char *arg)
{
    mb_h5_value value = {.count = 1};
    index = lua_absindex(L, index);
    if (lua_istable(L, index)) {
        value.rank = 1;
        value.count = value.dims[0] = (int64_t)mbl_length(L, index);
        lua_geti(L, index, 1);
        value.text = lua_type(L, -1) == LUA_TSTRING;
        lua_pop(L, 1);
    } else {
        value.text = lua_type(L, index) == LUA_TSTRING;
    }
    const size_t room = (size_t)value.count + 1;
    value.integers = !value.text;
    if (value.text)
        value.strings = lua_newuserdatauv(L, room * sizeof *value.strings, 0);
    else
        value.numbers = lua_newuserdatauv(L, room * sizeof *value.numbers, 0);
    for (int64_t i = 0; i < value.count; i++) {
        if (value.rank == 1)
            lua_geti(L, index, i + 1);
        else
            lua_pushvalue(L, index);
        const int type = lua_type(L, -1);
        if (value.text && type == LUA_TSTRING) {
            value.strings[i] = (char *)lua_tostring(L, -1); /* the table or the stack keeps it */
        } else if (!value.text && type == LUA_TNUMBER) {
            value.numbers[i] = lua_tonumber(L, -1);
            value.integers = value.integers && lua_isinteger(L, -1);
        } else if (!value.text && type == LUA_TBOOLEAN) {
            value.numbers[i] = lua_toboolean(L, -1);
        } else {
            mbl_fail(L, MB_STATUS_ARGUMENT, arg,
                     "%s must be a number, a string, an array, or a list of numbers or of strings; "
                     "got a %s%s",
                     arg, value.rank == 1 ? "list with a " : "", mbl_type_name(L, -1));
        }
        lua_pop(L, 1);
    }
    return value;
}

/* file:set_attribute(path, name, value) */
static int file_set_attribute(lua_State *L)
{
    mb_h5 *file = mbl_check_h5(L, 1);
    const char *path = mbl_check_string(L, 2, "path"), *name = mbl_check_string(L, 3, "name");
    lua_settop(L, 4);
    const mb_h5_value value = check_value(L, 4, "value");
    mbl_check(L, mb_h5_attribute_write(file, path, name, &value));
    return 0;
}

void mbl_write_h5_attributes(lua_State *L, mb_h5 *file, const char *path, int options)
{
    if (!mbl_option(L, options, "attributes"))
        return;
    const int table = lua_gettop(L);
    if (!lua_istable(L, table))
        mbl_fail(L, MB_STATUS_ARGUMENT, "attributes",
                 "attributes must be a table {name = value}, not a %s", mbl_type_name(L, table));
    lua_pushnil(L);
    while (lua_next(L, table) != 0) {
        if (lua_type(L, table + 1) != LUA_TSTRING)
            mbl_fail(L, MB_STATUS_ARGUMENT, "attributes",
                     "the names of attributes must be strings: {name = value}");
        const mb_h5_value value = check_value(L, table + 2, lua_tostring(L, table + 1));
        mbl_check(L, mb_h5_attribute_write(file, path, lua_tostring(L, table + 1), &value));
        lua_settop(L, table + 1);
    }
    lua_settop(L, table - 1);
}

void mbl_write_h5_value(lua_State *L, mb_h5 *file, const char *path, int index, int options)
{
    mb_range range = {0, 0, 1, false};
    mb_h5_dataset *dataset = NULL;
    const int top = lua_gettop(L);
    const mb_h5_value value = check_value(L, index, "value");
    const bool typed = mbl_option(L, options, "dtype");
    if (value.text || !typed) {
        if (typed)
            mbl_fail(L, MB_STATUS_ARGUMENT, "dtype", "strings have no dtype; leave it out");
        mbl_check(L, mb_h5_value_write(file, path, &value));
        lua_settop(L, top);
        return;
    }
    const mb_dtype dtype = mbl_check_dtype(L, -1, "dtype");
    const size_t bytes = mb_dtype_bytes(dtype);
    unsigned char *elements = lua_newuserdatauv(L, ((size_t)value.count + 1) * bytes, 0);
    for (int64_t i = 0; i < value.count; i++)
        mb_element_set(dtype, elements + (size_t)i * bytes, value.numbers[i], 0);
    range.count = value.count;
    mbl_check(L, mb_h5_dataset_create(file, path, dtype, value.rank, value.dims, NULL, &dataset));
    const mb_status status = mb_h5_dataset_write_host(dataset, &range, dtype, elements);
    mb_h5_dataset_destroy(dataset);
    mbl_check(L, status);
    lua_settop(L, top);
}

const luaL_Reg mbl_h5_value_methods[] = {
    {"value", file_value},
    {"attribute", file_attribute},
    {"attributes", file_attributes},
    {"set_attribute", file_set_attribute},
    {NULL, NULL},
};
