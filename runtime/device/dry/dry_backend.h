/*
** Dry devices, on which dry runs, plans and questions run. A dry device has the facts, the budget
** and the FFT plans of the device that it stands in for, a pool over addresses without memory, and
** the backend of this file: copies, fills, lanes, events and kernels do nothing and succeed, and
** reading data fails. A dry device can stand in for another dry device. Its creator owns it.
*/
#ifndef MB_DEVICE_DRY_DRY_BACKEND_H
#define MB_DEVICE_DRY_DRY_BACKEND_H

#include "device/device.h"

/* A dry device with an empty pool, with the same budget, or with `budget` when that is not 0. */
mb_status mb_device_open_dry(mb_device *device, uint64_t budget, mb_device **out);
/* A dry device in the present state of `device`: its pool is a clone with `room` (mb_pool_clone),
** so its blocks have the same addresses. */
mb_status mb_device_open_dry_copy(mb_device *device, uint64_t room, mb_device **out);
void mb_device_close_dry(mb_device *dry); /* NULL is fine */

#endif
