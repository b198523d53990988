/*
** Reference-counted blocks.
*/
#include "memory/storage.h"
#include "device/device.h"
#include <stdatomic.h>
#include <stdlib.h>

struct mb_storage {
    atomic_int references;
    mb_device *device;
    mb_block block;
    uint64_t bytes;
};

mb_status mb_storage_create(mb_device *device, uint64_t bytes, const char *owner, mb_storage **out) {
    mb_storage *storage = calloc(1, sizeof *storage);
    if (!storage)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for an array's record");
    mb_status status = mb_pool_alloc(device->pool, bytes, MB_POOL_ARRAY, owner, &storage->block);
    if (status != MB_STATUS_OK) {
        free(storage);
        return status;
    }
    atomic_init(&storage->references, 1);
    storage->device = device;
    storage->bytes = bytes;
    *out = storage;
    return MB_STATUS_OK;
}

mb_storage *mb_storage_retain(mb_storage *storage) {
    atomic_fetch_add(&storage->references, 1);
    return storage;
}

void mb_storage_release(mb_storage *storage) {
    if (!storage || atomic_fetch_sub(&storage->references, 1) != 1)
        return;
    mb_pool_free(storage->device->pool, &storage->block);
    free(storage);
}

void *mb_storage_data(const mb_storage *storage) {
    return storage->block.address;
}

uint64_t mb_storage_bytes(const mb_storage *storage) {
    return storage->bytes;
}

mb_device *mb_storage_device(const mb_storage *storage) {
    return storage->device;
}

int mb_storage_references(const mb_storage *storage) {
    return atomic_load(&storage->references);
}
