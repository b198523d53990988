/*
** Storage: a reference-counted block of one device's pool, or of pinned host memory. Arrays and
** their views share it. Reference counts are atomic; the last release frees the block in the pool
** (safe for queued work, because a device has one compute stream and a block's next user is queued
** behind its last).
*/
#ifndef MB_MEMORY_STORAGE_H
#define MB_MEMORY_STORAGE_H

#include "memory/pool.h"

typedef struct mb_storage mb_storage;

mb_status mb_storage_create(mb_device *device, uint64_t bytes, const char *owner, mb_storage **out);
/* Of pinned memory of `pinned_for`, on whose account it is (memory/pinned.h), instead of the
** pool's; `device` is the host. Zeroed. */
mb_status mb_storage_create_pinned(mb_device *device, mb_device *pinned_for, uint64_t bytes,
                                   const char *owner, mb_storage **out);
mb_storage *mb_storage_retain(mb_storage *storage);
void mb_storage_release(mb_storage *storage); /* NULL is fine */

void *mb_storage_data(const mb_storage *storage);
uint64_t mb_storage_bytes(const mb_storage *storage); /* as requested */
mb_device *mb_storage_device(const mb_storage *storage);
const mb_block *mb_storage_block(const mb_storage *storage);
/* The device that the memory is pinned for; NULL: it is the pool's. */
mb_device *mb_storage_pinned_for(const mb_storage *storage);
int mb_storage_references(const mb_storage *storage);
const char *mb_storage_owner(const mb_storage *storage); /* as given to create; may be NULL */
uint64_t mb_storage_born_ns(const mb_storage *storage);  /* CLOCK_MONOTONIC */

/* For dry runs: the storage's copy, under the same block, on a dry device whose pool is a clone.
** For pinned storage, `dry_pinned_for` stands in for the device that it is pinned for. The first
** call makes the copy, later calls find it; each call returns a reference that the caller owns.
** `mb_storage_forget_dry_copy` forgets the link, not the copy. */
mb_status mb_storage_dry_copy(mb_storage *storage, mb_device *dry_device, mb_device *dry_pinned_for,
                              mb_storage **out);
void mb_storage_forget_dry_copy(mb_storage *storage);

#endif
