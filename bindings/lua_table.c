/*
** What binding functions hand out: members of the table on top of the stack, and the metatables of
** userdata.
*/
#include "lua_moonbeam.h"

void mbl_set_integer(lua_State *L, const char *key, int64_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, key);
}

void mbl_set_number(lua_State *L, const char *key, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

void mbl_set_text(lua_State *L, const char *key, const char *text)
{
    lua_pushstring(L, text != NULL ? text : "");
    lua_setfield(L, -2, key);
}

void mbl_register_type(lua_State *L, const char *name, const luaL_Reg *metamethods,
                       const luaL_Reg *methods)
{
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, metamethods, 0);
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
