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

void mbl_push_shape(lua_State *L, const mb_shape *shape)
{
    lua_createtable(L, shape->rank, 0);
    for (int axis = 0; axis < shape->rank; axis++) {
        lua_pushinteger(L, shape->dims[axis]);
        lua_rawseti(L, -2, axis + 1);
    }
}

void mbl_push_printable(lua_State *L, const char *text, size_t length, bool lines)
{
    luaL_Buffer b;
    char *out = luaL_buffinitsize(L, &b, MB_TEXT_GROWTH * length + 1);
    luaL_pushresultsize(&b, mb_text_printable(text, length, lines, out));
}
