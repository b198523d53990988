/*
** Dry devices: what dry runs, plans and questions run on. A dry device has the facts, the budget
** and the FFT plans of the device that it stands in for, a pool over a range of mere addresses, and
** the backend of this file: copies, fills, lanes, events and kernels do nothing and succeed, and
** reading data fails. A dry device can stand in for another dry device. Its caller owns it.
*/
#ifndef MB_DEVICE_DRY_DRY_BACKEND_H
#define MB_DEVICE_DRY_DRY_BACKEND_H

#include "device/device.h"

/* A dry device with an empty pool, of the same budget or of `budget` when that is not 0. */
mb_status mb_device_open_dry(mb_device *device, uint64_t budget, mb_device **out);
/* A dry device in the present state of `device`: its pool is a clone (mb_pool_clone, which has
** `room`), so blocks are where they are on the device. */
mb_status mb_device_open_dry_copy(mb_device *device, uint64_t room, mb_device **out);
void mb_device_close_dry(mb_device *dry); /* NULL is fine */

#endif
