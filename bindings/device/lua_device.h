/*
** Devices in Lua: userdata "moonbeam.device".
*/
#ifndef MB_BINDINGS_LUA_DEVICE_H
#define MB_BINDINGS_LUA_DEVICE_H

#include "device/device.h"
#include <lua.h>

#define MBL_DEVICE "moonbeam.device"

/* The device at `index`: a userdata, or an id such as "cuda:0". */
mb_device *mbl_check_device(lua_State *L, int index);
/* The open device of a userdata; NULL for any other value. */
mb_device *mbl_test_device(lua_State *L, int index);
mb_device *mbl_default_device(lua_State *L);
/* The device at `index`, or the default one when it is nil or none. */
mb_device *mbl_opt_device(lua_State *L, int index);
/* The `device` member of the option table at `index` (nil or no table: the default device). */
mb_device *mbl_option_device(lua_State *L, int index);
void mbl_push_device(lua_State *L, mb_device *device);
/* Pushes the basis of a planned device's figures as text; nil for a real device. */
void mbl_push_basis(lua_State *L, const mb_device *device);

#endif
