/*
** Values that a dry run does not have (moonbeam/internal/unknown.lua): placeholders, and how many
** of them were returned.
*/
#ifndef MB_BINDINGS_LUA_UNKNOWN_H
#define MB_BINDINGS_LUA_UNKNOWN_H

#include <lua.h>

/* Raises the error that says how to supply a bound. */
_Noreturn void mbl_fail_unknown(lua_State *L);
/* Raises that error if the value at `index` is a placeholder. */
void mbl_check_known(lua_State *L, int index);
/* Pushes a placeholder. */
void mbl_push_unknown(lua_State *L);

#endif
