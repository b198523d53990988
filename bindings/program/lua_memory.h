/*
** The memory of the program's Lua state: malloc, with a stock of small free blocks in front.
*/
#ifndef MB_BINDINGS_LUA_MEMORY_H
#define MB_BINDINGS_LUA_MEMORY_H

#include <lua.h>

/* Gives a new state its allocator. At most one state at a time. */
void mbm_use_small_blocks(lua_State *L);
/* After the state was closed: gives the stock back. */
void mbm_drop_small_blocks(void);

#endif
