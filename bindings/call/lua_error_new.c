/*
** The Lua functions that make error objects: core.error.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_table.h"
#include "core/nearest.h"
#include "lua_modules.h"
#include <stdio.h>
#include <string.h>

/* printable(text [, lines]): text of files and names, made safe for a terminal; with `lines`, line
** ends are kept. */
static int error_printable(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    mbl_push_printable(L, text, length, lua_toboolean(L, 2));
    return 1;
}

static mb_status code_of(lua_State *L, int index)
{
    const char *name = mbl_check_string(L, index, "code");
    char names[400] = "";
    size_t used = 0;
    for (int code = MB_STATUS_OK + 1; code < MB_STATUS_COUNT; code++) {
        const char *known = mb_status_name((mb_status)code);
        if (strcmp(known, name) == 0)
            return (mb_status)code;
        used +=
            (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", known);
    }
    mbl_fail(L, MB_STATUS_ARGUMENT, "code", "code is '%s'; it must be one of %s", name, names);
    return MB_STATUS_INTERNAL;
}

/* The text of a message. A value in it may have a byte 0, which is shown. */
static const char *check_message(lua_State *L, int index)
{
    size_t length;
    const char *text = lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, &length) : NULL;
    if (!text)
        return mbl_check_string(L, index, "message");
    if (length == 0)
        mbl_fail(L, MB_STATUS_ARGUMENT, "message", "message is empty; it must say what is wrong");
    if (strlen(text) != length) {
        mbl_push_printable(L, text, length, true);
        lua_replace(L, index);
    }
    return lua_tostring(L, index);
}

/* error.new(code, message [, {op =, arg =}]): an error object for the Lua half to return or
** raise. */
static int error_new(lua_State *L)
{
    static const char *const names[] = {"op", "arg", NULL};
    mb_status code = code_of(L, 1);
    const char *message = check_message(L, 2);
    const char *op = NULL, *arg = NULL;
    mbl_check_options(L, 3, names, "error");
    lua_settop(L, 3);
    if (mbl_option(L, 3, "op"))
        op = lua_tostring(L, -1);
    if (mbl_option(L, 3, "arg"))
        arg = lua_tostring(L, -1);
    mb_fail(code, arg, "%s", message);
    if (op != NULL)
        mb_error_name_op(op);
    mbl_push_error(L);
    return 1;
}

static int error_raise(lua_State *L)
{
    error_new(L);
    return lua_error(L);
}

/* enough(err, bytes, what): makes the budget error say that `bytes` are enough for `what`. */
static int error_enough(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkinteger(L, 2);
    luaL_checkstring(L, 3);
    lua_settop(L, 3);
    luaL_argcheck(L, lua_getfield(L, 1, "problem") == LUA_TSTRING, 1, "not a budget error");
    lua_settop(L, 3);
    lua_setfield(L, 1, "enough_for");
    lua_setfield(L, 1, "enough");
    mbl_compose_budget(L);
    return 1;
}

/* nearest(name, list): the most similar name of a list, or nil. */
static int error_nearest(lua_State *L)
{
    const char *names[512];
    const char *name = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    int count = 0;
    for (lua_Unsigned i = 1; i <= lua_rawlen(L, 2) && count < 511; i++) {
        if (lua_rawgeti(L, 2, (lua_Integer)i) == LUA_TSTRING)
            names[count++] = lua_tostring(L, -1); /* the list keeps it */
        lua_pop(L, 1);
    }
    names[count] = NULL;
    lua_pushstring(L, mb_nearest(name, names)); /* nil for NULL */
    return 1;
}

int mbl_open_error(lua_State *L)
{
    static const luaL_Reg functions[] = {{"new", error_new},         {"raise", error_raise},
                                         {"nearest", error_nearest}, {"printable", error_printable},
                                         {"enough", error_enough},   {NULL, NULL}};
    mbl_register_error(L);
    luaL_newlib(L, functions);
    return 1;
}
