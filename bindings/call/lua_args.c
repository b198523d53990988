#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_type.h"
#include "call/lua_unknown.h"
#include "core/nearest.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mbl_unknown_option(lua_State *L, const char *key, const char *const *names, const char *what)
{
    char list[400] = "";
    size_t used = 0;
    const char *nearest = mb_nearest(key, names);
    if (nearest) {
        mb_fail(MB_STATUS_ARGUMENT, key, "unknown option '%s'; did you mean '%s'?", key, nearest);
        mb_error_name_op(what);
        mbl_raise(L);
    }
    for (int i = 0; names[i] && used + strlen(names[i]) + 3 < sizeof list; i++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", names[i]);
    mb_fail(MB_STATUS_ARGUMENT, key, "unknown option '%s'; the options are %s", key,
            used > 0 ? list : "none");
    mb_error_name_op(what);
    mbl_raise(L);
}

/* The place in `names` of the key at -2. */
static int option_place(lua_State *L, const char *const *names, const char *what)
{
    if (lua_type(L, -2) != LUA_TSTRING)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                 "options of %s are given by name; this table has a [%s]", what,
                 luaL_tolstring(L, -2, NULL));
    const char *key = lua_tostring(L, -2);
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], key) == 0)
            return i;
    mbl_unknown_option(L, key, names, what);
}

/* Is there an option table? Raises for what is neither that nor nil or none. */
static bool has_options(lua_State *L, int index, const char *const *names)
{
    const int type = lua_type(L, index);
    if (type != LUA_TTABLE && type > LUA_TNIL)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                 "options must be a table such as {%s = ...}, not a %s",
                 names[0] ? names[0] : "name", mbl_type_name(L, index));
    return type == LUA_TTABLE;
}

void mbl_check_options(lua_State *L, int index, const char *const *names, const char *what)
{
    index = lua_absindex(L, index);
    if (!has_options(L, index, names))
        return;
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1))
        option_place(L, names, what);
}

int mbl_take_options(lua_State *L, int index, const char *const *names, const char *what)
{
    const int first = lua_gettop(L) + 1;
    int count = 0;
    while (names[count])
        count++;
    lua_settop(L, first - 1 + count);
    if (!has_options(L, index, names))
        return first;
    for (lua_pushnil(L); lua_next(L, index) != 0;)
        lua_replace(L, first + option_place(L, names, what));
    if (lua_getmetatable(L, index)) { /* what is not given may be inherited */
        lua_pop(L, 1);
        for (int i = 0; i < count; i++) {
            lua_getfield(L, index, names[i]);
            lua_replace(L, first + i);
        }
    }
    return first;
}

bool mbl_option(lua_State *L, int index, const char *name)
{
    if (!lua_istable(L, index))
        return false;
    if (lua_getfield(L, index, name) != LUA_TNIL)
        return true;
    lua_pop(L, 1);
    return false;
}

lua_Unsigned mbl_length(lua_State *L, int index)
{
    int is_integer = 0;
    lua_len(L, index);
    const lua_Integer length = lua_tointegerx(L, -1, &is_integer);
    lua_pop(L, 1);
    if (!is_integer)
        mbl_fail(
            L, MB_STATUS_ARGUMENT, NULL,
            "the length of a list must be an integer; this one's __len returns something else");
    if (length < 0 || length > INT_MAX)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                 "the length of a list is %lld; it must be from 0 to %d", (long long)length,
                 INT_MAX);
    return (lua_Unsigned)length;
}

bool mbl_option_flag(lua_State *L, int index, const char *name)
{
    const bool given = mbl_option(L, index, name), on = given && lua_toboolean(L, -1);
    lua_pop(L, given);
    return on;
}

int64_t mbl_option_integer(lua_State *L, int index, const char *name, int64_t initial)
{
    if (!mbl_option(L, index, name))
        return initial;
    int64_t value = mbl_check_integer(L, -1, name);
    lua_pop(L, 1);
    return value;
}

double mbl_option_number(lua_State *L, int index, const char *name, double initial)
{
    if (!mbl_option(L, index, name))
        return initial;
    double value = mbl_check_number(L, -1, name);
    lua_pop(L, 1);
    return value;
}

mb_dtype mbl_option_dtype(lua_State *L, int index, mb_dtype initial)
{
    if (!mbl_option(L, index, "dtype"))
        return initial;
    mb_dtype dtype = mbl_check_dtype(L, -1, "dtype");
    lua_pop(L, 1);
    return dtype;
}

/* Raises: the argument must be `what`, but it is missing or something else. */
_Noreturn static void refuse(lua_State *L, int index, const char *arg, const char *what)
{
    mbl_check_known(L, index);
    if (lua_isnoneornil(L, index))
        mbl_fail(L, MB_STATUS_ARGUMENT, arg, "%s is missing; give %s", arg, what);
    mbl_fail(L, MB_STATUS_ARGUMENT, arg, "%s must be %s, not a %s", arg, what,
             mbl_type_name(L, index));
}

int64_t mbl_check_integer(lua_State *L, int index, const char *arg)
{
    int isnum = 0;
    if (lua_type(L, index) != LUA_TNUMBER)
        refuse(L, index, arg, "an integer");
    const lua_Integer value = lua_tointegerx(L, index, &isnum);
    if (!isnum)
        mbl_fail(L, MB_STATUS_ARGUMENT, arg, "%s must be an integer, not %g", arg,
                 lua_tonumber(L, index));
    return value;
}

double mbl_check_number(lua_State *L, int index, const char *arg)
{
    if (lua_type(L, index) != LUA_TNUMBER)
        refuse(L, index, arg, "a number");
    return lua_tonumber(L, index);
}

void mbl_check_binary(lua_State *L, int index, const char *arg)
{
    if (lua_type(L, index) != LUA_TSTRING)
        refuse(L, index, arg, "a string");
}

const char *mbl_check_string(lua_State *L, int index, const char *arg)
{
    mbl_check_binary(L, index, arg);
    size_t length;
    const char *text = lua_tolstring(L, index, &length);
    if (strlen(text) != length)
        mbl_fail(L, MB_STATUS_ARGUMENT, arg, "%s has a byte 0 after '%s'; it must be a text", arg,
                 text);
    return text;
}

void *mbl_check_object(lua_State *L, int index, const char *kind)
{
    void *object = luaL_testudata(L, index, kind);
    if (!object)
        mbl_fail(L, MB_STATUS_ARGUMENT, "self",
                 "self must be a %s, not a %s; call methods with a colon, as in object:method()",
                 kind, mbl_type_name(L, index));
    return object;
}

/* "8G" -> 8e9. Negative if the text is not a number of bytes. */
static double parse_bytes(const char *text)
{
    static const char letters[] = "KMGT";
    char *end;
    double value = strtod(text, &end);
    if (end == text)
        return -1;
    while (*end == ' ')
        end++;
    const char *letter = *end != '\0' ? strchr(letters, *end == 'k' ? 'K' : *end) : NULL;
    if (letter) {
        end++;
        double step = *end == 'i' ? 1024 : 1000;
        end += *end == 'i';
        for (const char *l = letters; l <= letter; l++)
            value *= step;
    }
    end += *end == 'B';
    return *end == '\0' ? value : -1;
}

#define MOST_BYTES INT64_C(9200000000000000000)

uint64_t mbl_check_bytes(lua_State *L, int index, const char *arg)
{
    double value = -1;
    int is_integer = 0;
    const lua_Integer bytes = lua_tointegerx(L, index, &is_integer);
    if (is_integer && bytes >= 0 && bytes < MOST_BYTES)
        return (uint64_t)bytes;
    if (lua_type(L, index) == LUA_TNUMBER)
        value = lua_tonumber(L, index);
    else if (lua_type(L, index) == LUA_TSTRING)
        value = parse_bytes(lua_tostring(L, index));
    if (value > 0 && value < 1)
        mbl_fail(L, MB_STATUS_ARGUMENT, arg,
                 "%s is %.4g, less than a byte; it is a number of bytes such as 8000000, \"8M\" or "
                 "\"2Gi\", not a part of the memory",
                 arg, value);
    if (!(value >= 0) || value >= (double)MOST_BYTES)
        mbl_fail(
            L, MB_STATUS_ARGUMENT, arg,
            "%s must be a number of bytes such as 8000000, \"8M\", \"1.5G\" or \"2Gi\", not %s",
            arg, lua_isstring(L, index) ? luaL_tolstring(L, index, NULL) : mbl_type_name(L, index));
    return (uint64_t)(value + 0.5);
}

static int64_t check_extent(lua_State *L, int index, const char *arg)
{
    int64_t extent = mbl_check_integer(L, index, arg);
    if (extent < 0)
        mbl_fail(L, MB_STATUS_SHAPE, arg,
                 "%s has a negative extent, %lld; extents must be 0 or more", arg,
                 (long long)extent);
    return extent;
}

mb_shape mbl_check_shape(lua_State *L, int index, const char *arg)
{
    mb_shape shape = {0, {0}};
    if (lua_type(L, index) == LUA_TNUMBER) {
        shape.rank = 1;
        shape.dims[0] = check_extent(L, index, arg);
        return shape;
    }
    if (!lua_istable(L, index))
        refuse(L, index, arg, "a table of extents such as {64, 512, 512}");
    index = lua_absindex(L, index);
    lua_Unsigned rank = mbl_length(L, index);
    if (rank > MB_MAX_RANK)
        mbl_fail(L, MB_STATUS_SHAPE, arg, "%s has %llu axes; at most %d are possible", arg,
                 (unsigned long long)rank, MB_MAX_RANK);
    shape.rank = (int)rank;
    for (int axis = 0; axis < shape.rank; axis++) {
        lua_geti(L, index, axis + 1);
        shape.dims[axis] = check_extent(L, -1, arg);
        lua_pop(L, 1);
    }
    return shape;
}

mb_dtype mbl_check_dtype(lua_State *L, int index, const char *arg)
{
    mb_dtype dtype;
    const char *name = mbl_check_string(L, index, arg);
    if (!mb_dtype_parse(name, &dtype))
        mbl_fail(L, MB_STATUS_DTYPE, arg,
                 "%s '%s' is not an element type; the types are u8, u16, i32, f16, f32, f64, c64 "
                 "and c128",
                 arg, name);
    return dtype;
}

int64_t mbl_opt_integer(lua_State *L, int index, const char *arg, int64_t initial)
{
    return lua_isnoneornil(L, index) ? initial : mbl_check_integer(L, index, arg);
}

double mbl_opt_number(lua_State *L, int index, const char *arg, double initial)
{
    return lua_isnoneornil(L, index) ? initial : mbl_check_number(L, index, arg);
}

mb_dtype mbl_opt_dtype(lua_State *L, int index, mb_dtype initial)
{
    return lua_isnoneornil(L, index) ? initial : mbl_check_dtype(L, index, "dtype");
}
