/*
** Types of values: the metatables of userdata, and how messages name a type.
*/
#ifndef MB_BINDINGS_LUA_TYPE_H
#define MB_BINDINGS_LUA_TYPE_H

#include <lauxlib.h>
#include <lua.h>

/* Raises: `what` ("an array") has no `key`. The message names the nearest of `properties`
** (NULL-terminated, or NULL) and of the names in the table of methods at index `methods`. */
int mbl_unknown_key(lua_State *L, const char *what, const char *key, int methods,
                    const char *const *properties);
/* The metatable of a userdata type, with its methods under __index; a name that is no method is an
** error. Pushes nothing. */
void mbl_register_type(lua_State *L, const char *name, const luaL_Reg *metamethods,
                       const luaL_Reg *methods);
/* Works as luaL_testudata does, but finds the metatable by an address in the registry instead of
** by its name. Every allocation calls this function. */
void *mbl_test_userdata(lua_State *L, int index, const void *key);
/* The type of a value for messages: "number", "moonbeam.array", "no value". */
const char *mbl_type_name(lua_State *L, int index);

#endif
