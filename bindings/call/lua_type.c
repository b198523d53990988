#include "call/lua_type.h"
#include "call/lua_error.h"
#include "core/nearest.h"
#include <stddef.h>
#include <string.h>

enum { MOST_NAMES = 128 };

/* Where the names of a thing are listed: the subject of mb.help, or NULL. */
static const char *subject_of(const char *what)
{
    static const char *const SUBJECTS[][2] = {{"an array", "array"},
                                              {"a device", "device"},
                                              {"an HDF5 file", "h5"},
                                              {"an HDF5 dataset", "h5"}};
    for (size_t i = 0; i < sizeof SUBJECTS / sizeof SUBJECTS[0]; i++)
        if (strcmp(SUBJECTS[i][0], what) == 0)
            return SUBJECTS[i][1];
    return NULL;
}

int mbl_unknown_key(lua_State *L, const char *what, const char *key, int methods,
                    const char *const *properties)
{
    const char *names[MOST_NAMES + 1];
    int count = 0;
    methods = lua_absindex(L, methods);
    for (; properties && properties[count] && count < MOST_NAMES; count++)
        names[count] = properties[count];
    lua_pushnil(L);
    while (count < MOST_NAMES && lua_next(L, methods) != 0) {
        lua_pop(L, 1);
        if (lua_type(L, -1) == LUA_TSTRING)
            names[count++] = lua_tostring(L, -1);
    }
    names[count] = NULL;
    const char *nearest = mb_nearest(key, names);
    const char *subject = nearest ? NULL : subject_of(what);
    if (subject)
        return mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                        "%s has no '%s'; mb.help(\"%s\") lists what it has", what, key, subject);
    return mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "%s has no '%s'%s%s%s", what, key,
                    nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* __index of a table of methods, called for a name that is not a method. Upvalue 1: "a carrier". */
static int unknown_method(lua_State *L)
{
    return mbl_unknown_key(L, lua_tostring(L, lua_upvalueindex(1)), luaL_tolstring(L, 2, NULL), 1,
                           NULL);
}

void mbl_register_type(lua_State *L, const char *name, const luaL_Reg *metamethods,
                       const luaL_Reg *methods)
{
    const char *noun = strrchr(name, '.');
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, metamethods, 0);
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_createtable(L, 0, 1);
    lua_pushfstring(L, "a %s", noun ? noun + 1 : name);
    lua_pushcclosure(L, unknown_method, 1);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

void *mbl_test_userdata(lua_State *L, int index, const mbl_type *type)
{
    const mbl_type **mark = lua_touserdata(L, index);
    if (mark && lua_rawlen(L, index) == type->bytes && *mark == type)
        return mark;
    return mark ? luaL_testudata(L, index, type->name) : NULL;
}

void mbl_new_metatable(lua_State *L, const mbl_type *type)
{
    luaL_newmetatable(L, type->name);
    lua_pushvalue(L, -1);
    lua_rawseti(L, LUA_REGISTRYINDEX, type->key);
}

void *mbl_new_userdata(lua_State *L, const mbl_type *type)
{
    const mbl_type **mark = lua_newuserdatauv(L, type->bytes, 0);
    *mark = type;
    lua_rawgeti(L, LUA_REGISTRYINDEX, type->key);
    lua_setmetatable(L, -2);
    return mark;
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
    return lua_isnoneornil(L, index) ? "missing value" : luaL_typename(L, index);
}
