/*
** What to do about errors of Lua itself that mix up fields and methods.
*/
#ifndef MB_BINDINGS_LUA_ADVICE_H
#define MB_BINDINGS_LUA_ADVICE_H

#include <lua.h>
#include <stdbool.h>

/* Pushes a message of Lua with what to do, and returns true; false, and pushes nothing, where there
** is nothing to say. */
bool mbl_push_advice(lua_State *L, const char *message);

#endif
