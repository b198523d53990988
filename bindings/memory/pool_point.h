/*
** Pool points: a full Lua collection, after which the arrays on the garbage list are freed. A pool
** point is made
**   - when the live bytes of a device have grown since the last point by more than 256 MiB and by
**     more than were live then (arrays that a program releases itself do not count),
**   - when a request does not fit the budget (lua_allocate.h),
**   - when the program requests it (mb.collect), and when a recording or a dry run begins (of dry
**     runs in a row, the first).
** So the live bytes at a pool point depend only on the program. A pool point of the first two kinds
** frees the garbage of its device alone. While several devices work on blocks there are no others:
** what is live on a device then depends on its own blocks, not on those of other devices.
*/
#ifndef MB_BINDINGS_POOL_POINT_H
#define MB_BINDINGS_POOL_POINT_H

#include "device/device.h"
#include <lua.h>

/* A pool point of all devices. While they are held it only collects. */
void mbl_pool_point(lua_State *L);
/* The same for what begins with a point: where no array exists, there is nothing to collect. */
void mbl_first_point(lua_State *L);
/* A pool point of one device. */
void mbl_pool_point_of(lua_State *L, const mb_device *device);
/* Holds pool points of all devices (1), and ends that (-1). */
void mbl_hold_points(int change);
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
