#include "memory/pool_point.h"
#include "memory/garbage_list.h"
#include "memory/lua_array_box.h"
#include <pthread.h>
#include <stdatomic.h>

#define POINT_BYTES ((uint64_t)256 << 20)
#define MAX_COUNTERS 64

/* Per device: the bytes made since the last pool point, at most the growth of the live bytes, and
** the bytes that were live after that point. Only arrays count, because scratch never becomes
** garbage. Devices are added and removed under the lock; allocations look up theirs without it. */
static struct counter {
    _Atomic(mb_device *) device;
    atomic_uint_fast64_t made, live;
} counters[MAX_COUNTERS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t points;
static int held; /* of the Lua thread */

static struct counter *find_counter(const mb_device *device)
{
    for (int i = 0; i < MAX_COUNTERS; i++)
        if (atomic_load_explicit(&counters[i].device, memory_order_acquire) == device)
            return &counters[i];
    return NULL;
}

/* NULL if there are too many devices; then only the budget causes pool points. */
static struct counter *make_counter(mb_device *device)
{
    struct counter *counter = find_counter(device);
    if (counter)
        return counter;
    pthread_mutex_lock(&lock);
    counter = find_counter(device);
    if (!counter && (counter = find_counter(NULL))) {
        counter->made = 0;
        counter->live = 0;
        counter->device = device;
    }
    pthread_mutex_unlock(&lock);
    return counter;
}

void mbl_allocated(mb_device *device, uint64_t bytes)
{
    struct counter *counter = make_counter(device);
    if (counter) /* of the Lua thread: no atomic addition */
        atomic_store_explicit(&counter->made,
                              atomic_load_explicit(&counter->made, memory_order_relaxed) + bytes,
                              memory_order_relaxed);
}

void mbl_copy_counter(const mb_device *from, mb_device *to)
{
    struct counter *a = find_counter(from), *b = make_counter(to);
    if (a && b) {
        b->made = atomic_load(&a->made);
        b->live = atomic_load(&a->live);
    }
}

void mbl_forget_device(const mb_device *device, const char *site)
{
    mbl_forget_arrays(device, site);
    pthread_mutex_lock(&lock);
    struct counter *counter = find_counter(device);
    if (counter)
        counter->device = NULL;
    pthread_mutex_unlock(&lock);
}

bool mbl_point_is_due(mb_device *device)
{
    struct counter *counter = find_counter(device);
    if (!counter || counter->made <= POINT_BYTES || counter->made <= counter->live)
        return false;
    /* How many of these bytes are still live? */
    const uint64_t live = mb_pool_live(device->pool), before = counter->live;
    const uint64_t grown = live > before ? live - before : 0;
    if (grown > POINT_BYTES && grown > before)
        return true;
    counter->made = grown;
    return false;
}

/* Counts a pool point of one device, or of all. */
static void count_point(const mb_device *device)
{
    pthread_mutex_lock(&lock);
    points++;
    for (int i = 0; i < MAX_COUNTERS; i++)
        if (counters[i].device && (!device || counters[i].device == device)) {
            counters[i].made = 0;
            counters[i].live = mb_pool_live(counters[i].device->pool);
        }
    pthread_mutex_unlock(&lock);
}

static void free_garbage(void)
{
    if (held)
        return;
    mbl_garbage_drain(NULL);
    count_point(NULL);
}

void mbl_pool_point(lua_State *L)
{
    lua_gc(L, LUA_GCCOLLECT);
    free_garbage();
}

void mbl_first_point(lua_State *L)
{
    if (mbl_any_array())
        lua_gc(L, LUA_GCCOLLECT);
    free_garbage();
}

void mbl_pool_point_of(lua_State *L, const mb_device *device)
{
    lua_gc(L, LUA_GCCOLLECT);
    mbl_garbage_drain(device);
    count_point(device);
}

void mbl_hold_points(int change)
{
    held += change;
}

uint64_t mbl_pool_points(void)
{
    pthread_mutex_lock(&lock);
    const uint64_t n = points;
    pthread_mutex_unlock(&lock);
    return n;
}
