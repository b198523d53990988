/*
** The garbage list: arrays that Lua finalizers have given up. A collector runs when it likes; pool
** memory must not depend on it. So a finalizer never frees: it puts the array on this list, and the
** list is drained at pool points (pool_point.h). The list belongs to the process. One mutex guards
** it, which is never held while arrays are freed.
*/
#ifndef MB_BINDINGS_GARBAGE_LIST_H
#define MB_BINDINGS_GARBAGE_LIST_H

#include "array/array.h"

/* Takes the array, which may be NULL. Frees it at once where the list has no room for it and host
** memory is short. */
void mbl_garbage_add(mb_array *array);
/* Frees what is on the list now. */
void mbl_garbage_drain(void);
/* Frees the list's arrays on the device. */
void mbl_garbage_forget(const mb_device *device);
/* Arrays that wait, and arrays that were freed here so far. */
void mbl_garbage_count(uint64_t *waiting, uint64_t *collected);

#endif
