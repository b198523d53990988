#include "call/lua_type.h"
#include <stddef.h>

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

void *mbl_test_userdata(lua_State *L, int index, const void *key)
{
    void *value = lua_touserdata(L, index);
    if (!value || !lua_getmetatable(L, index))
        return NULL;
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    const int same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same ? value : NULL;
}

const char *mbl_type_name(lua_State *L, int index)
{
    int type = luaL_getmetafield(L, index, "__name");
    if (type == LUA_TSTRING) {
        const char *name = lua_tostring(L, -1);
        lua_pop(L, 1); /* the metatable keeps it */
        return name;
    }
    if (type != LUA_TNIL)
        lua_pop(L, 1);
    return luaL_typename(L, index);
}
