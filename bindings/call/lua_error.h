/*
** Error objects: how a runtime failure becomes a Lua error.
**
** The order of work in every binding function: parse all arguments (may raise), make the result
** userdata (may raise), call the runtime into them, and only then raise what it reported.
*/
#ifndef MB_BINDINGS_LUA_ERROR_H
#define MB_BINDINGS_LUA_ERROR_H

#include "core/status.h"
#include <lauxlib.h>
#include <lua.h>

#define MBL_ERROR "moonbeam.error"

/* Raises the thread's error record as an error object {code, message, op, arg, need, limit, where}.
** Call it directly after the runtime call that failed. `where` is the Lua line of the nearest Lua
** caller outside the module's own Lua half. It returns int so that `return mbl_raise(L)` reads as
** in Lua's own API. */
_Noreturn int mbl_raise(lua_State *L);
/* The same for a status: does nothing when it is MB_STATUS_OK. */
void mbl_check(lua_State *L, mb_status status);
/* Raises an error with this message. `arg` may be NULL. The operation is the name of the running C
** function. */
_Noreturn int mbl_fail(lua_State *L, mb_status code, const char *arg, const char *format, ...)
    MB_PRINTF(4, 5);
/* Pushes the record as an error object, for functions that return nil, err. */
void mbl_push_error(lua_State *L);
/* Composes the message of the budget error on the top of the stack from its other fields: the
** problem, then the remedy. */
void mbl_compose_budget(lua_State *L);
/* Registers the metatable "moonbeam.error". */
void mbl_register_error(lua_State *L);

#endif
