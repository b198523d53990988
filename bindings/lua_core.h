/*
** The C half of the module, which main.c preloads.
*/
#ifndef MB_BINDINGS_LUA_CORE_H
#define MB_BINDINGS_LUA_CORE_H

#include <lua.h>

#define MB_VERSION "0.1.0"

int luaopen_moonbeam_core(lua_State *L);

#endif
