/*
** Storage: a reference-counted block of one device's pool, or of pinned host memory. Arrays and
** their views share it. Reference counts are atomic. The last release frees the block in the pool.
** This is safe for queued work, because a device has one compute stream, on which the next user of
** a block is queued after the last one.
*/
#ifndef MB_MEMORY_STORAGE_H
#define MB_MEMORY_STORAGE_H

#include "memory/pool.h"

typedef struct mb_storage mb_storage;

mb_status mb_storage_create(mb_device *device, uint64_t bytes, const char *owner, mb_storage **out);
/* Makes zeroed storage in pinned memory of `pinned_for`, on that device's account
** (device/pinned.h), instead of the pool; `device` is the host. */
mb_status mb_storage_create_pinned(mb_device *device, mb_device *pinned_for, uint64_t bytes,
                                   const char *owner, mb_storage **out);
mb_storage *mb_storage_retain(mb_storage *storage);
void mb_storage_release(mb_storage *storage); /* NULL is fine */

/* Memory of MB_STORAGE_ROOM bytes that lives as long as the storage: for the record of the array
** that is made with it, which needs no allocation of its own. */
#define MB_STORAGE_ROOM 256
void *mb_storage_room(mb_storage *storage);

void *mb_storage_data(const mb_storage *storage);
uint64_t mb_storage_bytes(const mb_storage *storage); /* as requested */
const mb_block *mb_storage_block(const mb_storage *storage);
/* The device that the memory is pinned for; NULL for a block of the pool. */
mb_device *mb_storage_pinned_for(const mb_storage *storage);
int mb_storage_references(const mb_storage *storage);
const char *mb_storage_owner(const mb_storage *storage); /* as given to create; may be NULL */
uint64_t mb_storage_born(const mb_storage *storage);     /* ticks (core/clock.h) */

/* For dry runs: the storage's copy, with the same block, on a dry device whose pool is a clone. For
** pinned storage, `dry_pinned_for` stands in for the device that it is pinned for. The first call
** makes the copy, later calls return the same one; the caller owns each returned reference.
** `mb_storage_forget_dry_copy` drops the link, not the copy. */
mb_status mb_storage_dry_copy(mb_storage *storage, mb_device *dry_device, mb_device *dry_pinned_for,
                              mb_storage **out);
void mb_storage_forget_dry_copy(mb_storage *storage);

#endif
