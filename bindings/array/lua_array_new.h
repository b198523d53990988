/*
** Making arrays.
*/
#ifndef MB_BINDINGS_LUA_ARRAY_NEW_H
#define MB_BINDINGS_LUA_ARRAY_NEW_H

#include <lauxlib.h>

/* Parts of the "array" table. */
extern const luaL_Reg mbl_array_new_functions[];

#endif
