/*
** Requests that take memory, with pool points, and the ladder of a request that is refused: a pool
** point, idle FFT plans dropped, and one more try. What it tried is told by the error
** (lua_budget.h).
*/
#ifndef MB_BINDINGS_LUA_ALLOCATE_H
#define MB_BINDINGS_LUA_ALLOCATE_H

#include "array/array.h"
#include <lua.h>

/* Runs a request that takes pool memory on `device`: a pool point before it when one is due, and
** the ladder when it fails with MB_STATUS_BUDGET. `request` must leave nothing behind when it
** fails. May run finalizers, so the caller's resources must be on the Lua stack. */
typedef mb_status (*mbl_request)(void *user);
mb_status mbl_allocate(lua_State *L, mb_device *device, mbl_request request, void *user);
/* Makes an array and pushes it; raises on failure. */
mb_array *mbl_create_array(lua_State *L, mb_device *device, mb_dtype dtype, const mb_shape *shape);
/* The same on the host, in memory that is pinned for `pinned_for`: zeros. */
mb_array *mbl_create_pinned_array(lua_State *L, mb_device *host, mb_device *pinned_for,
                                  mb_dtype dtype, const mb_shape *shape);

#endif
