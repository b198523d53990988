/*
** Requests for memory, with pool points. After a refusal a request makes a pool point, drops idle
** FFT plans and tries once more. The error reports what was tried.
*/
#ifndef MB_BINDINGS_LUA_ALLOCATE_H
#define MB_BINDINGS_LUA_ALLOCATE_H

#include "array/array.h"
#include <lua.h>

/* Runs a request for pool memory on `device`, after a pool point if one is due. If it fails with
** MB_STATUS_BUDGET, takes the steps above. `request` must undo its work when it fails. Finalizers
** may run, so the caller's resources must be on the Lua stack. */
typedef mb_status (*mbl_request)(void *user);
mb_status mbl_allocate(lua_State *L, mb_device *device, mbl_request request, void *user);
/* Makes an array and pushes it; raises on failure. */
mb_array *mbl_create_array(lua_State *L, mb_device *device, mb_dtype dtype, const mb_shape *shape);
/* The same for zeros on the host, in memory that is pinned for `pinned_for`. */
mb_array *mbl_create_pinned_array(lua_State *L, mb_device *host, mb_device *pinned_for,
                                  mb_dtype dtype, const mb_shape *shape);

#endif
