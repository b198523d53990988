/*
** Storage: a reference-counted block of one device's pool. Arrays and their views share it.
** Reference counts are atomic; the last release frees the block in the pool (safe for queued work, because a device has
** one compute stream and a block's next user is queued behind its last).
*/
#ifndef MB_MEMORY_STORAGE_H
#define MB_MEMORY_STORAGE_H

#include "memory/pool.h"

typedef struct mb_storage mb_storage;

mb_status mb_storage_create(mb_device *device, uint64_t bytes, const char *owner, mb_storage **out);
mb_storage *mb_storage_retain(mb_storage *storage);
void mb_storage_release(mb_storage *storage); /* NULL is fine */

void *mb_storage_data(const mb_storage *storage);
uint64_t mb_storage_bytes(const mb_storage *storage); /* as requested */
mb_device *mb_storage_device(const mb_storage *storage);
const mb_block *mb_storage_block(const mb_storage *storage);
int mb_storage_references(const mb_storage *storage);
const char *mb_storage_owner(const mb_storage *storage); /* as given to create; may be NULL */
uint64_t mb_storage_born_ns(const mb_storage *storage);  /* CLOCK_MONOTONIC */

/* For dry runs: the storage's image on a shadow whose pool is a clone, under the same block. The first call makes it, later
** ones find it; each returns a reference of the caller's. `mb_storage_unmirror` forgets the link, not the image. */
mb_status mb_storage_mirror(mb_storage *storage, mb_device *shadow, mb_storage **out);
void mb_storage_unmirror(mb_storage *storage);

#endif
