/*
** The garbage list: arrays whose Lua finalizers have run. The collector runs at unpredictable
** times, and pool memory must not depend on them. So a finalizer never frees an array but puts it
** on this list, and the arrays of the list are freed at pool points (pool_point.h). The list
** belongs to the process. It is guarded by a mutex, which is never held while arrays are freed.
*/
#ifndef MB_BINDINGS_GARBAGE_LIST_H
#define MB_BINDINGS_GARBAGE_LIST_H

#include "array/array.h"

/* Takes the array, which may be NULL. Frees it at once if the list cannot grow. */
void mbl_garbage_add(mb_array *array);
/* Frees the arrays that are on the list now: those of a device, or all (NULL). */
void mbl_garbage_drain(const mb_device *device);
/* Frees the list's arrays on the device. */
void mbl_garbage_forget(const mb_device *device);
/* How many arrays are on the list, and how many were freed from it so far. */
void mbl_garbage_count(uint64_t *waiting, uint64_t *collected);

#endif
