/*
** Pool points: a full Lua collection, after which the garbage list is freed. They come
**   - when what is live on a device has grown since the last point by more than 256 MiB and by more
**     than was live then: arrays that a program releases itself are no reason to collect,
**   - when a request does not fit the budget (lua_allocate.h),
**   - when the program asks (mb.collect), and where a recording begins.
** What is live at a pool point thus depends on the program alone.
*/
#ifndef MB_BINDINGS_POOL_POINT_H
#define MB_BINDINGS_POOL_POINT_H

#include "device/device.h"
#include <lua.h>

void mbl_pool_point(lua_State *L);
/* How many there were. */
uint64_t mbl_pool_points(void);
/* Is one due before the next request on the device? */
bool mbl_point_is_due(mb_device *device);
/* Tells the pool points how many bytes of arrays were made. */
void mbl_allocated(mb_device *device, uint64_t bytes);
/* `to` goes on counting where `from` is. */
void mbl_copy_counter(const mb_device *from, mb_device *to);
/* Before a device goes away: releases every array on it, whoever refers to it. `site`: the line
** that asked for it, or NULL. */
void mbl_forget_device(const mb_device *device, const char *site);

#endif
