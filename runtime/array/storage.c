/*
** Reference-counted blocks.
*/
#include "array/storage.h"
#include "core/clock.h"
#include "device/device.h"
#include "device/ledger.h"
#include <stdatomic.h>
#include <stdlib.h>

struct mb_storage {
    atomic_int references;
    mb_device *device;
    mb_device *pinned_for; /* NULL: the block belongs to the pool */
    mb_block block;
    uint64_t bytes;
    const char *owner;
    mb_storage *dry; /* its counterpart while a dry run is being set up */
};

/* A record without a block, with its room behind it. malloc has a cache per thread in glibc, calloc
** has none; and members that are set one by one take a third of the time of an initializer, which
** fills the record with zeros first. */
static mb_storage *new_storage(mb_device *device, mb_device *pinned_for, uint64_t bytes,
                               const char *owner)
{
    mb_storage *storage = malloc(sizeof *storage + MB_STORAGE_ROOM);
    if (!storage) {
        mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for an array's record");
        return NULL;
    }
    atomic_init(&storage->references, 1);
    storage->device = device;
    storage->pinned_for = pinned_for;
    storage->bytes = bytes;
    storage->owner = owner;
    storage->dry = NULL;
    return storage;
}

void *mb_storage_room(mb_storage *storage)
{
    return storage + 1;
}

mb_status mb_storage_create(mb_device *device, uint64_t bytes, const char *owner, mb_storage **out)
{
    MB_TRY(mb_device_alive(device));
    mb_storage *storage = new_storage(device, NULL, bytes, owner);
    if (!storage)
        return MB_STATUS_MEMORY;
    mb_status status = mb_pool_alloc(device->pool, bytes, MB_POOL_ARRAY, owner, &storage->block);
    if (status != MB_STATUS_OK) {
        free(storage);
        return status;
    }
    if (mb_ledger_on(device)) {
        uint64_t live = mb_pool_live(device->pool);
        mb_ledger_note(device, &(mb_ledger_row){.kind = MB_LEDGER_CREATE,
                                                .label = mb_ledger_current_label(),
                                                .owner = owner,
                                                .keep = (int64_t)storage->block.bytes,
                                                .live = live,
                                                .peak = live});
    }
    *out = storage;
    return MB_STATUS_OK;
}

mb_status mb_storage_create_pinned(mb_device *device, mb_device *pinned_for, uint64_t bytes,
                                   const char *owner, mb_storage **out)
{
    mb_storage *storage = new_storage(device, pinned_for, bytes, owner);
    if (!storage)
        return MB_STATUS_MEMORY;
    storage->block = (mb_block){.bytes = bytes, .born = mb_ticks()};
    mb_status status = bytes > 0
                           ? mb_pinned_alloc(pinned_for, bytes, owner, &storage->block.address)
                           : MB_STATUS_OK;
    if (status != MB_STATUS_OK) {
        free(storage);
        return status;
    }
    *out = storage;
    return MB_STATUS_OK;
}

mb_storage *mb_storage_retain(mb_storage *storage)
{
    atomic_fetch_add(&storage->references, 1);
    return storage;
}

void mb_storage_release(mb_storage *storage)
{
    /* Whoever has the only reference needs no atomic subtraction: nobody else can take another. */
    if (!storage || (atomic_load_explicit(&storage->references, memory_order_acquire) != 1 &&
                     atomic_fetch_sub(&storage->references, 1) != 1))
        return;
    mb_device *device = storage->device;
    int64_t bytes = (int64_t)storage->block.bytes;
    if (storage->pinned_for) {
        if (bytes)
            mb_pinned_free(storage->pinned_for, storage->block.address, (uint64_t)bytes,
                           mb_pool_current_site());
        free(storage);
        return;
    }
    mb_pool_free(device->pool, &storage->block);
    if (bytes && mb_ledger_on(device)) {
        uint64_t live = mb_pool_live(device->pool);
        mb_ledger_note(device, &(mb_ledger_row){.kind = MB_LEDGER_RELEASE,
                                                .label = "release",
                                                .owner = mb_pool_current_site(),
                                                .keep = -bytes,
                                                .live = live,
                                                .peak = live + (uint64_t)bytes});
    }
    free(storage);
}

mb_status mb_storage_dry_copy(mb_storage *storage, mb_device *dry_device, mb_device *dry_pinned_for,
                              mb_storage **out)
{
    if (!storage->dry) {
        mb_storage *dry = new_storage(dry_device, dry_pinned_for, storage->bytes, storage->owner);
        if (!dry)
            return MB_STATUS_MEMORY;
        atomic_init(&dry->references, 0);
        dry->block = storage->block;
        storage->dry = dry;
    }
    *out = mb_storage_retain(storage->dry);
    return MB_STATUS_OK;
}

void mb_storage_forget_dry_copy(mb_storage *storage)
{
    storage->dry = NULL;
}

const char *mb_storage_owner(const mb_storage *storage)
{
    return storage->owner;
}

uint64_t mb_storage_born(const mb_storage *storage)
{
    return storage->block.born;
}

void *mb_storage_data(const mb_storage *storage)
{
    return storage->block.address;
}

uint64_t mb_storage_bytes(const mb_storage *storage)
{
    return storage->bytes;
}

const mb_block *mb_storage_block(const mb_storage *storage)
{
    return &storage->block;
}

mb_device *mb_storage_pinned_for(const mb_storage *storage)
{
    return storage->pinned_for;
}

int mb_storage_references(const mb_storage *storage)
{
    return atomic_load(&storage->references);
}
