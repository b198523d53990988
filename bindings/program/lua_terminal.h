/*
** What the terminal is asked.
*/
#ifndef MB_BINDINGS_LUA_TERMINAL_H
#define MB_BINDINGS_LUA_TERMINAL_H

#include <lua.h>

/* Lua functions of mb.system: ask_terminal(query, seconds), terminal_pixels(). */
int mbl_ask_terminal(lua_State *L);
int mbl_terminal_pixels(lua_State *L);

#endif
