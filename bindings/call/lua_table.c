#include "call/lua_table.h"
#include "core/text.h"

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
    lua_pushstring(L, text ? text : "");
    lua_setfield(L, -2, key);
}

void mbl_set_string(lua_State *L, const char *key, const char *text)
{
    lua_pushstring(L, text);
    lua_setfield(L, -2, key);
}

void mbl_set_boolean(lua_State *L, const char *key, bool value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, key);
}

void mbl_set_extents(lua_State *L, const char *key, int rank, const int64_t *extents)
{
    mbl_push_extents(L, rank, extents);
    lua_setfield(L, -2, key);
}

void mbl_push_extents(lua_State *L, int rank, const int64_t *extents)
{
    lua_createtable(L, rank, 0);
    for (int axis = 0; axis < rank; axis++) {
        lua_pushinteger(L, extents[axis]);
        lua_rawseti(L, -2, axis + 1);
    }
}

void mbl_push_names(lua_State *L, const char *const *names)
{
    lua_newtable(L);
    for (int i = 0; names && names[i]; i++) {
        lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

void mbl_push_printable(lua_State *L, const char *text, size_t length, bool lines)
{
    luaL_Buffer b;
    char *out = luaL_buffinitsize(L, &b, MB_TEXT_GROWTH * length + 1);
    luaL_pushresultsize(&b, mb_text_printable(text, length, lines, out));
}
