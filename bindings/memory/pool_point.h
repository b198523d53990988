/*
** Pool points: a full Lua collection, after which the arrays on the garbage list are freed. A pool
** point is made
**   - when the live bytes of a device have grown since the last point by more than 256 MiB and by
**     more than were live then (arrays that a program releases itself do not count),
**   - when a request does not fit the budget (lua_allocate.h),
**   - when the program requests it (mb.collect), and when a recording begins.
** So the live bytes at a pool point depend only on the program.
*/
#ifndef MB_BINDINGS_POOL_POINT_H
#define MB_BINDINGS_POOL_POINT_H

#include "device/device.h"
#include <lua.h>

void mbl_pool_point(lua_State *L);
/* The number of pool points so far. */
uint64_t mbl_pool_points(void);
/* Is a pool point due before the next request on the device? */
bool mbl_point_is_due(mb_device *device);
/* Counts bytes of arrays that were made. */
void mbl_allocated(mb_device *device, uint64_t bytes);
/* `to` continues the count of `from`. */
void mbl_copy_counter(const mb_device *from, mb_device *to);
/* Before a device is closed: releases every array on it, even if userdata refer to it. `site`: the
** line that requested this, or NULL. */
void mbl_forget_device(const mb_device *device, const char *site);

#endif
