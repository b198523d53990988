#include "call/lua_unknown.h"
#include "call/lua_error.h"
#include "call/lua_table.h"
#include "call/lua_type.h"
#include "lua_modules.h"
#include <string.h>

static const char message[] =
    "a value of an array was read in a dry run, where arrays have no data; if it decides what is "
    "done next, write mb.bound(BOUND, function() return VALUE end): the dry run uses the bound";

/* Their addresses are the keys of the placeholders in the registry. */
static const char keys[2] = {0};
static lua_Integer handed_out;

void mbl_fail_unknown(lua_State *L)
{
    mbl_fail(L, MB_STATUS_DRY_RUN, NULL, "%s", message);
}

void mbl_check_known(lua_State *L, int index)
{
    if (lua_istable(L, index) && strcmp(mbl_type_name(L, index), "moonbeam.internal.unknown") == 0)
        mbl_fail_unknown(L);
}

void mbl_push_unknown(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &keys[handed_out++ % 2]) == LUA_TNIL)
        mbl_fail_unknown(L);
}

/* set(one, other): sets the two placeholders, which are returned in turn. */
static int unknown_set(lua_State *L)
{
    lua_settop(L, 2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &keys[1]);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &keys[0]);
    return 0;
}

/* count([n]): how many placeholders were returned; sets the count if n is given. */
static int unknown_count(lua_State *L)
{
    handed_out = luaL_optinteger(L, 1, handed_out);
    lua_pushinteger(L, handed_out);
    return 1;
}

int mbl_open_unknown(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"set", unknown_set}, {"count", unknown_count}, {NULL, NULL}};
    luaL_newlib(L, functions);
    mbl_set_text(L, "message", message);
    return 1;
}
