#include "memory/garbage_list.h"
#include "device/ledger.h"
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mb_array **garbage;
static size_t count, room;
static uint64_t freed;

void mbl_garbage_add(mb_array *array)
{
    if (!array)
        return;
    pthread_mutex_lock(&lock);
    if (count == room) {
        const size_t more = room ? 2 * room : 64;
        mb_array **list = realloc(garbage, more * sizeof *list);
        if (list) {
            garbage = list;
            room = more;
        }
    }
    if (count < room) {
        garbage[count++] = array;
        array = NULL;
    }
    pthread_mutex_unlock(&lock);
    mb_array_destroy(array); /* no room on the list: better to free it too early than never */
}

/* The order of finalizers depends on the collector's pace, so the list is sorted by properties that
** depend only on the program: the address in the pool, or else the age. */
static int by_device_and_address(const void *a, const void *b)
{
    const mb_array *x = *(mb_array *const *)a, *y = *(mb_array *const *)b;
    uintptr_t p = (uintptr_t)x->device, q = (uintptr_t)y->device;
    const bool pinned = mb_storage_pinned_for(x->storage);
    if (p == q && pinned != (mb_storage_pinned_for(y->storage) != NULL))
        return pinned ? -1 : 1;
    if (p == q && pinned) {
        p = mb_storage_born(x->storage);
        q = mb_storage_born(y->storage);
    } else if (p == q) {
        p = (uintptr_t)mb_storage_data(x->storage);
        q = (uintptr_t)mb_storage_data(y->storage);
    }
    return p < q ? -1 : p > q;
}

/* Frees the first arrays of the list, which are on one device; returns how many. The ledger gets
** one row for all of them; pinned memory has rows of its own. */
static size_t drain_device(mb_array **list, size_t n)
{
    mb_device *device = list[0]->device;
    const uint64_t before = mb_pool_live(device->pool);
    size_t i = 0;
    for (; i < n && list[i]->device == device; i++) {
        const bool pinned = mb_storage_pinned_for(list[i]->storage);
        mb_ledger_hush(pinned ? 0 : 1);
        mb_array_destroy(list[i]);
        mb_ledger_hush(pinned ? 0 : -1);
    }
    const uint64_t live = mb_pool_live(device->pool);
    if (live != before)
        mb_ledger_note(device, &(mb_ledger_row){.kind = MB_LEDGER_COLLECT,
                                                .label = "collect",
                                                .keep = -(int64_t)(before - live),
                                                .live = live,
                                                .peak = before});
    return i;
}

/* Takes the arrays of a device, or all, off the list. Those that stay keep their order. Returns how
** many there are; *list is to be freed. */
static size_t take(const mb_device *device, mb_array ***list)
{
    size_t n = 0, left = 0;
    pthread_mutex_lock(&lock);
    *list = count > 0 ? malloc(count * sizeof **list) : NULL;
    for (size_t i = 0; i < count && *list; i++)
        if (!device || garbage[i]->device == device)
            (*list)[n++] = garbage[i];
        else
            garbage[left++] = garbage[i];
    if (*list)
        count = left;
    freed += n;
    pthread_mutex_unlock(&lock);
    return n;
}

void mbl_garbage_drain(const mb_device *device)
{
    mb_array **list;
    const size_t n = take(device, &list);
    if (n > 1)
        qsort(list, n, sizeof *list, by_device_and_address);
    mb_pool_site("collect");
    for (size_t i = 0; i < n;)
        i += drain_device(list + i, n - i);
    mb_pool_site(NULL);
    free(list);
}

void mbl_garbage_forget(const mb_device *device)
{
    for (;;) {
        mb_array *array = NULL;
        pthread_mutex_lock(&lock);
        for (size_t i = 0; i < count && !array; i++)
            if (garbage[i]->device == device) {
                array = garbage[i];
                garbage[i] = garbage[--count];
            }
        pthread_mutex_unlock(&lock);
        if (!array)
            return;
        mb_array_destroy(array);
    }
}

void mbl_garbage_count(uint64_t *waiting, uint64_t *collected)
{
    pthread_mutex_lock(&lock);
    *waiting = count;
    *collected = freed;
    pthread_mutex_unlock(&lock);
}
