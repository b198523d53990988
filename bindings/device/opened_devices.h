/*
** The devices that this process has opened through Lua, in order. They stay open.
*/
#ifndef MB_BINDINGS_OPENED_DEVICES_H
#define MB_BINDINGS_OPENED_DEVICES_H

#include "device/device.h"

#define MBL_MOST_DEVICES 256

void mbl_add_opened(mb_device *device);
/* Device number i, from 0; NULL after the last one. */
mb_device *mbl_opened_device(int i);
bool mbl_is_opened(const mb_device *device);

#endif
