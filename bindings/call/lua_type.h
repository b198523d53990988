/*
** Types of values: the metatables of userdata, and how messages name a type.
*/
#ifndef MB_BINDINGS_LUA_TYPE_H
#define MB_BINDINGS_LUA_TYPE_H

#include <lauxlib.h>
#include <lua.h>

/* The metatable of a userdata type, with its methods under __index. Pushes nothing. */
void mbl_register_type(lua_State *L, const char *name, const luaL_Reg *metamethods,
                       const luaL_Reg *methods);
/* Works as luaL_testudata does, but finds the metatable by an address in the registry instead of
** by its name. Every allocation calls this function. */
void *mbl_test_userdata(lua_State *L, int index, const void *key);
/* The type of a value for messages: "number", "moonbeam.array", "no value". */
const char *mbl_type_name(lua_State *L, int index);

#endif
