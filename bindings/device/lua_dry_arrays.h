/*
** The arrays of a dry run. Every array of a device is replaced by one on the dry device that stands
** for it, and put back afterwards. Programs see the same arrays, whichever way they refer to them.
*/
#ifndef MB_BINDINGS_LUA_DRY_ARRAYS_H
#define MB_BINDINGS_LUA_DRY_ARRAYS_H

#include "array/array.h"

/* Replaces the arrays on `device` by arrays on `dry`. An array can be replaced several times, one
** dry run inside another. */
mb_status mbl_dry_replace_arrays(mb_device *device, mb_device *dry);
/* Puts them back. */
void mbl_dry_restore_arrays(const mb_device *device);

#endif
