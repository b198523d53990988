/*
** The program's `print`.
*/
#ifndef MB_BINDINGS_LUA_PRINT_H
#define MB_BINDINGS_LUA_PRINT_H

#include <lua.h>
#include <stdbool.h>

void mbl_open_print(lua_State *L); /* sets the global `print` to one that fails */
bool mbl_output_lost(void);        /* has that `print` failed? */

#endif
