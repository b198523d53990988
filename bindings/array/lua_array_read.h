/*
** Reading arrays.
*/
#ifndef MB_BINDINGS_LUA_ARRAY_READ_H
#define MB_BINDINGS_LUA_ARRAY_READ_H

#include <lauxlib.h>

/* Methods of arrays. */
extern const luaL_Reg mbl_array_read_methods[];

#endif
