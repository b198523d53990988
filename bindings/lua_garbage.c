/*
** The life of array userdata, and pool points.
**
** A Lua collector runs when it likes; pool memory must not depend on that. So a finalizer never
** frees: it moves the array to the garbage list, and the list is freed only at pool points, after a
** full collection:
**   - when what is live on a device has grown since the last point by more than 256 MiB and by more
**     than was live then: arrays that a program releases itself are no reason to collect,
**   - when a request does not fit the budget (idle FFT plans go too, and the request is retried),
**   - when the program asks (mb.collect).
** What is live at a pool point thus depends on the program alone. `release` and `<close>` free at
** once.
**
** Every array userdata is also on a list, so that a dry device can be closed whoever still
** refers to its arrays. Both lists belong to the process and are guarded by one mutex, which is
** never held while Lua runs or arrays are freed.
*/
#define _GNU_SOURCE
#include "lua_moonbeam.h"
#include "device/ledger.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define POINT_BYTES ((uint64_t)256 << 20)
#define MAX_COUNTERS 64

/* An array that a dry run has replaced by its dry copy, which is in the box; `below` is what that
** array had replaced in its turn. */
typedef struct replaced {
    mb_array *array;
    struct replaced *below;
} replaced;

/* The userdata. `array` comes first: its address is the slot that mbl_new_array returns. */
typedef struct array_box {
    mb_array *array;
    replaced *saved;                /* during a dry run: the array whose dry copy is in `array` */
    const char *freed;              /* where it was released; NULL: it was not */
    struct array_box *next, **link; /* link is NULL when the box is not on the list */
} array_box;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static array_box *boxes;
static mb_array **garbage;
static size_t garbage_count, garbage_room;

/* Per device: bytes made since the last pool point (or fewer: no more than what is live has grown
** by), and what was live after it. Only arrays count, because scratch never becomes garbage.
** Devices come and go under the lock; every allocation looks its own up without it. */
static struct counter {
    _Atomic(mb_device *) device;
    atomic_uint_fast64_t made, live;
} counters[MAX_COUNTERS];

static uint64_t points, collected; /* pool points passed, arrays freed at them: mb.pool.stats */

const char mbl_array_key = 0;

mb_array **mbl_array_slot(lua_State *L, int index)
{
    return mbl_test_userdata(L, index, &mbl_array_key);
}

/* Raises for any other value. */
static array_box *check_box(lua_State *L, int index)
{
    mb_array **slot = mbl_array_slot(L, index);
    return slot != NULL ? (array_box *)slot : mbl_check_object(L, index, MBL_ARRAY);
}

mb_array **mbl_new_array(lua_State *L)
{
    array_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->array = NULL;
    box->saved = NULL;
    box->freed = NULL;
    box->link = NULL;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &mbl_array_key);
    lua_setmetatable(L, -2);
    pthread_mutex_lock(&lock);
    box->next = boxes;
    if (boxes != NULL)
        boxes->link = &box->next;
    box->link = &boxes;
    boxes = box;
    pthread_mutex_unlock(&lock);
    return &box->array;
}

/* Takes the array out of the box, which may be empty already. */
static mb_array *empty_box(array_box *box)
{
    mb_array *array = box->array;
    box->array = NULL;
    return array;
}

/* Under the lock. Gives the array back when there is no room for it. */
static mb_array *list_garbage(mb_array *array)
{
    if (garbage_count == garbage_room) {
        size_t room = garbage_room == 0 ? 64 : 2 * garbage_room;
        mb_array **list = realloc(garbage, room * sizeof *list);
        if (list == NULL)
            return array; /* out of host memory: better early than never */
        garbage = list;
        garbage_room = room;
    }
    garbage[garbage_count++] = array;
    return NULL;
}

/* Under the lock. */
static void unlist(array_box *box)
{
    if (box->link == NULL)
        return;
    *box->link = box->next;
    if (box->next != NULL)
        box->next->link = box->link;
    box->link = NULL;
}

int mbl_array_gc(lua_State *L)
{
    array_box *box = check_box(L, 1);
    mb_array *unlisted = NULL;
    pthread_mutex_lock(&lock);
    unlist(box);
    mb_array *array = empty_box(box);
    replaced *saved = box->saved;
    box->saved = NULL;
    if (array != NULL)
        unlisted = list_garbage(array);
    for (replaced *r = saved; r != NULL; r = r->below)
        r->array = list_garbage(r->array);
    pthread_mutex_unlock(&lock);
    mb_array_destroy(unlisted);
    while (saved != NULL) {
        replaced *below = saved->below;
        mb_array_destroy(saved->array);
        free(saved);
        saved = below;
    }
    return 0;
}

int mbl_array_release(lua_State *L)
{
    array_box *box = check_box(L, 1);
    pthread_mutex_lock(&lock);
    mb_array *array = empty_box(box);
    if (box->saved == NULL) /* nothing comes back to it; later, its neighbours would have to be */
        unlist(box);        /* fetched from memory again */
    pthread_mutex_unlock(&lock);
    if (array != NULL) {
        box->freed = mbl_owner(L);
        mb_pool_site(box->freed);
        mb_array_destroy(array);
        mb_pool_site(NULL);
    }
    return 0;
}

/* The order of finalizers depends on the collector's pace; addresses in the pool depend on the
** program alone, as does the age of what is not the pool's. */
static int by_device_and_address(const void *a, const void *b)
{
    const mb_array *x = *(mb_array *const *)a, *y = *(mb_array *const *)b;
    uintptr_t p = (uintptr_t)x->device, q = (uintptr_t)y->device;
    const bool pinned = mb_storage_pinned_for(x->storage) != NULL;
    if (p == q && pinned != (mb_storage_pinned_for(y->storage) != NULL))
        return pinned ? -1 : 1;
    if (p == q && pinned) {
        p = mb_storage_born_ns(x->storage);
        q = mb_storage_born_ns(y->storage);
    } else if (p == q) {
        p = (uintptr_t)mb_storage_data(x->storage);
        q = (uintptr_t)mb_storage_data(y->storage);
    }
    return p < q ? -1 : p > q;
}

void mbl_garbage_drain(void)
{
    pthread_mutex_lock(&lock);
    mb_array **list = garbage;
    size_t count = garbage_count;
    garbage = NULL;
    garbage_count = garbage_room = 0;
    collected += count;
    pthread_mutex_unlock(&lock);
    if (count > 1)
        qsort(list, count, sizeof *list, by_device_and_address);
    mb_pool_site("collect");
    mb_ledger_hush(1);
    for (size_t i = 0; i < count;) {
        mb_device *device = list[i]->device;
        uint64_t before = mb_pool_live(device->pool);
        while (i < count && list[i]->device == device) {
            const bool pinned = mb_storage_pinned_for(list[i]->storage) != NULL;
            mb_ledger_hush(pinned ? -1 : 0); /* pinned memory has rows of its own */
            mb_array_destroy(list[i++]);
            mb_ledger_hush(pinned ? 1 : 0);
        }
        uint64_t live = mb_pool_live(device->pool);
        mb_ledger_hush(-1);
        if (live != before) /* one row of the ledger for all that this drain freed on the device */
            mb_ledger_note(device, &(mb_ledger_row){.kind = MB_LEDGER_COLLECT,
                                                    .label = "collect",
                                                    .keep = -(int64_t)(before - live),
                                                    .live = live,
                                                    .peak = before});
        mb_ledger_hush(1);
    }
    mb_ledger_hush(-1);
    mb_pool_site(NULL);
    free(list);
}

/* Frees what userdata hold: those made by other finalizers, for which a closing state calls none.
** */
static int release_all(lua_State *L)
{
    (void)L;
    mb_array *array;
    do {
        array = NULL;
        pthread_mutex_lock(&lock);
        for (array_box *box = boxes; box != NULL && array == NULL; box = box->next)
            array = box->array != NULL ? empty_box(box) : NULL;
        pthread_mutex_unlock(&lock);
        mb_array_destroy(array);
    } while (array != NULL);
    return 0;
}

void mbl_release_at_close(lua_State *L)
{
    static const char key = 0;
    lua_newuserdatauv(L, 0, 0);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, release_all);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
}

void mbl_forget_device(mb_device *device)
{
    for (;;) {
        mb_array *array = NULL;
        pthread_mutex_lock(&lock);
        for (array_box *box = boxes; box != NULL && array == NULL; box = box->next)
            if (box->array != NULL && box->array->device == device)
                array = empty_box(box);
        for (size_t i = 0; i < garbage_count && array == NULL; i++)
            if (garbage[i]->device == device) {
                array = garbage[i];
                garbage[i] = garbage[--garbage_count];
            }
        for (int i = 0; i < MAX_COUNTERS; i++)
            if (counters[i].device == device)
                counters[i].device = NULL;
        pthread_mutex_unlock(&lock);
        if (array == NULL)
            return;
        mb_array_destroy(array);
    }
}

static struct counter *find_counter(mb_device *device)
{
    for (int i = 0; i < MAX_COUNTERS; i++)
        if (atomic_load_explicit(&counters[i].device, memory_order_acquire) == device)
            return &counters[i];
    return NULL;
}

/* Under the lock. NULL when there are too many devices (then only the budget makes pool points). */
static struct counter *make_counter(mb_device *device)
{
    struct counter *counter = find_counter(device);
    if (counter == NULL && (counter = find_counter(NULL)) != NULL) {
        counter->made = 0;
        counter->live = 0;
        counter->device = device;
    }
    return counter;
}

void mbl_allocated(mb_device *device, uint64_t bytes)
{
    struct counter *counter = find_counter(device);
    if (counter == NULL) {
        pthread_mutex_lock(&lock);
        counter = make_counter(device);
        pthread_mutex_unlock(&lock);
    }
    if (counter != NULL)
        atomic_fetch_add_explicit(&counter->made, bytes, memory_order_relaxed);
}

static bool point_is_due(mb_device *device)
{
    struct counter *counter = find_counter(device);
    if (counter == NULL || counter->made <= POINT_BYTES || counter->made <= counter->live)
        return false;
    /* So much was made; how much of it is still there? */
    const uint64_t live = mb_pool_live(device->pool), before = counter->live;
    const uint64_t grown = live > before ? live - before : 0;
    if (grown > POINT_BYTES && grown > before)
        return true;
    counter->made = grown;
    return false;
}

void mbl_pool_point(lua_State *L)
{
    lua_gc(L, LUA_GCCOLLECT);
    mbl_garbage_drain();
    pthread_mutex_lock(&lock);
    points++;
    for (int i = 0; i < MAX_COUNTERS; i++)
        if (counters[i].device != NULL) {
            mb_pool_stats stats;
            mb_pool_get_stats(counters[i].device->pool,
                              &stats); /* takes the pool's lock, nothing else */
            counters[i].made = 0;
            counters[i].live = stats.live;
        }
    pthread_mutex_unlock(&lock);
}

/* What the ladder did for the request that failed last, for its error (see mbl_describe_budget);
** no device: nothing. */
static _Thread_local struct {
    mb_device *device;
    const char *owner;
    uint64_t arrays, bytes;
    int plans;
} ladder;

mb_status mbl_allocate(lua_State *L, mb_device *device, mbl_request request, void *user)
{
    if (point_is_due(device))
        mbl_pool_point(L);
    ladder.device = NULL;
    mb_error_clear();
    mb_status status = request(user);
    if (status == MB_STATUS_BUDGET) {
        uint64_t live = mb_pool_live(device->pool), freed = collected;
        mb_error_clear();
        mbl_pool_point(L);
        ladder.plans = mb_fft_cache_drop(device, 0);
        ladder.arrays = collected - freed;
        ladder.bytes = live - mb_pool_live(device->pool);
        ladder.owner = mbl_owner(L);
        mb_error_clear();
        status = request(user);
        ladder.device = status == MB_STATUS_BUDGET ? device : NULL;
    }
    return status;
}

/*
** The anatomy of a budget error
*/

#define MOST_OWNERS 256 /* different owners that are told apart */
#define TOP_OWNERS 5

typedef struct owner_sum {
    const char *owner;
    uint64_t bytes, blocks;
} owner_sum;

typedef struct owner_list {
    owner_sum sums[MOST_OWNERS];
    int count;
} owner_list;

static void add_owner(void *user, const mb_pool_block *block)
{
    owner_list *list = user;
    int i = 0;
    while (i < list->count && list->sums[i].owner != block->owner)
        i++;
    if (i == MOST_OWNERS)
        i--; /* the rest together */
    else if (i == list->count)
        list->sums[list->count++] = (owner_sum){block->owner, 0, 0};
    list->sums[i].bytes += block->bytes;
    list->sums[i].blocks++;
}

static int by_bytes(const void *a, const void *b)
{
    const owner_sum *x = a, *y = b;
    return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static void set_count(lua_State *L, const char *key, uint64_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, key);
}

void mbl_describe_budget(lua_State *L)
{
    mb_device *device = ladder.device;
    mb_pool_stats s;
    ladder.device = NULL;
    if (device == NULL)
        return;
    mb_pool_get_stats(device->pool, &s);
    set_count(L, "live", s.live);
    set_count(L, "peak", s.live_peak);
    set_count(L, "free", s.free_bytes);
    set_count(L, "largest_hole", s.largest_hole);
    lua_pushstring(L, device->id);
    lua_setfield(L, -2, "device");
    lua_pushstring(L, ladder.owner);
    lua_setfield(L, -2, "owner");
    lua_createtable(L, 0, 3);
    set_count(L, "collected_arrays", ladder.arrays);
    set_count(L, "collected_bytes", ladder.bytes);
    set_count(L, "dropped_plans", (uint64_t)ladder.plans);
    lua_setfield(L, -2, "tried");
    owner_list *list = lua_newuserdatauv(L, sizeof *list, 0);
    list->count = 0;
    mb_pool_each(device->pool, add_owner, list);
    qsort(list->sums, (size_t)list->count, sizeof list->sums[0], by_bytes);
    lua_createtable(L, TOP_OWNERS, 0);
    for (int i = 0; i < list->count && i < TOP_OWNERS; i++) {
        lua_createtable(L, 0, 3);
        lua_pushstring(L, list->sums[i].owner != NULL ? list->sums[i].owner : "C");
        lua_setfield(L, -2, "owner");
        set_count(L, "bytes", list->sums[i].bytes);
        set_count(L, "blocks", list->sums[i].blocks);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -3, "owners");
    lua_pop(L, 1);
}

typedef struct create_request {
    mb_device *device;
    mb_dtype dtype;
    const mb_shape *shape;
    const char *owner;
    mb_array **out;
} create_request;

static mb_status create(void *user)
{
    create_request *r = user;
    mb_status status = mb_array_create(r->device, r->dtype, r->shape, r->owner, r->out);
    if (status == MB_STATUS_BUDGET) {
        char text[120], shape[100];
        snprintf(text, sizeof text, "%s %s", mb_dtype_name(r->dtype),
                 mb_shape_format(r->shape, shape, sizeof shape));
        mb_error_describe(text);
    }
    return status;
}

/* In the ledger an array is called after the function that made it: "zeros", "read". */
static void label_creation(lua_State *L, const mb_device *device)
{
    lua_Debug ar;
    if (mb_ledger_on(device) && lua_getstack(L, 0, &ar) && lua_getinfo(L, "n", &ar) &&
        ar.name != NULL)
        mb_ledger_label(mbl_intern(ar.name));
}

mb_array *mbl_create_array(lua_State *L, mb_device *device, mb_dtype dtype, const mb_shape *shape)
{
    mb_array **slot = mbl_new_array(L);
    create_request request = {device, dtype, shape, mbl_owner(L), slot};
    label_creation(L, device);
    mb_status status = mbl_allocate(L, device, create, &request);
    mb_ledger_label(NULL);
    mbl_check(L, status);
    mbl_allocated(device, mb_pool_round(mb_array_bytes(*slot)));
    return *slot;
}

mb_array *mbl_create_pinned_array(lua_State *L, mb_device *host, mb_device *pinned_for,
                                  mb_dtype dtype, const mb_shape *shape)
{
    mb_array **slot = mbl_new_array(L);
    const char *owner = mbl_owner(L);
    ladder.device =
        NULL; /* pinned memory has an account of its own, which no pool's figures explain */
    mb_error_clear();
    mb_status status = mb_array_create_pinned(host, pinned_for, dtype, shape, owner, slot);
    if (status == MB_STATUS_BUDGET) { /* the account may have garbage on it */
        mb_error_clear();
        mbl_pool_point(L);
        mb_pool_trim(host->pool);
        status = mb_array_create_pinned(host, pinned_for, dtype, shape, owner, slot);
    }
    mbl_check(L, status);
    return *slot;
}

/*
** Dry runs: every array of a device is replaced by its copy on the dry device, and put back
** afterwards. Programs thus see the arrays that they had, whichever way they refer to them.
*/

/* Under the lock: the dry copy of an array. */
static mb_status dry_copy(mb_array *array, mb_device *dry, mb_array **out)
{
    mb_array *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for an array's record");
    *copy = *array;
    copy->device = dry;
    const mb_device *pinned_for = mb_storage_pinned_for(array->storage);
    mb_status status = mb_storage_dry_copy(
        array->storage, dry, pinned_for != NULL ? mbl_dry_of(pinned_for) : NULL, &copy->storage);
    if (status != MB_STATUS_OK) {
        free(copy);
        return status;
    }
    *out = copy;
    return MB_STATUS_OK;
}

mb_status mbl_dry_replace_arrays(mb_device *device, mb_device *dry)
{
    mb_status status = MB_STATUS_OK;
    pthread_mutex_lock(&lock);
    for (array_box *box = boxes; box != NULL && status == MB_STATUS_OK; box = box->next) {
        mb_array *copy = NULL;
        if (box->array == NULL || box->array->device != device)
            continue;
        status = dry_copy(box->array, dry, &copy);
        replaced *saved = status == MB_STATUS_OK ? malloc(sizeof *saved) : NULL;
        if (saved != NULL) {
            *saved = (replaced){box->array, box->saved};
            box->saved = saved;
            box->array = copy;
        } else if (status == MB_STATUS_OK) {
            mb_array_destroy(copy);
            status = mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for an array's record");
        }
    }
    for (array_box *box = boxes; box != NULL; box = box->next)
        if (box->saved != NULL && box->saved->array->device == device)
            mb_storage_forget_dry_copy(box->saved->array->storage);
    struct counter *real = find_counter(device), *copy = make_counter(dry);
    if (real != NULL && copy != NULL) {
        copy->made = atomic_load(&real->made);
        copy->live = atomic_load(&real->live);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void mbl_dry_restore_arrays(mb_device *device)
{
    for (;;) {
        mb_array *copy = NULL;
        bool found = false;
        pthread_mutex_lock(&lock);
        for (array_box *box = boxes; box != NULL && !found; box = box->next)
            if (box->saved != NULL && box->saved->array->device == device) {
                replaced *saved = box->saved;
                found = true;
                copy = box->array;
                box->array = saved->array;
                box->saved = saved->below;
                free(saved);
            }
        pthread_mutex_unlock(&lock);
        if (!found)
            return;
        mb_array_destroy(copy);
    }
}

/* arrays(): the arrays there are, oldest first: {id, device, dtype, shape, bytes, storage, owner,
** age, references}. */
typedef struct array_row {
    const void *id;
    mb_array array;
    const char *owner;
    uint64_t born, storage_bytes;
    int references;
} array_row;

static int by_birth(const void *a, const void *b)
{
    const array_row *x = a, *y = b;
    if (x->born != y->born)
        return x->born < y->born ? -1 : 1;
    uint64_t p = mb_array_bytes(&x->array), q = mb_array_bytes(&y->array); /* views come last */
    return p > q ? -1 : p < q;
}

static int garbage_arrays(lua_State *L)
{
    size_t count = 0, filled = 0;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    mbl_pool_point(L); /* so that no finalizer changes the list below */
    pthread_mutex_lock(&lock);
    for (array_box *box = boxes; box != NULL; box = box->next)
        count += box->array != NULL;
    pthread_mutex_unlock(&lock);
    array_row *rows = lua_newuserdatauv(L, (count > 0 ? count : 1) * sizeof *rows, 0);
    pthread_mutex_lock(&lock);
    for (array_box *box = boxes; box != NULL && filled < count; box = box->next)
        if (box->array != NULL)
            rows[filled++] = (array_row){box,
                                         *box->array,
                                         mb_storage_owner(box->array->storage),
                                         mb_storage_born_ns(box->array->storage),
                                         mb_pool_round(mb_storage_bytes(box->array->storage)),
                                         mb_storage_references(box->array->storage)};
    pthread_mutex_unlock(&lock);
    qsort(rows, filled, sizeof *rows, by_birth);
    lua_createtable(L, (int)filled, 0);
    for (size_t i = 0; i < filled; i++) {
        lua_createtable(L, 0, 9);
        lua_pushlightuserdata(L, (void *)(uintptr_t)rows[i].id);
        lua_setfield(L, -2, "id");
        lua_pushstring(L, rows[i].array.device->id);
        lua_setfield(L, -2, "device");
        lua_pushstring(L, mb_dtype_name(rows[i].array.dtype));
        lua_setfield(L, -2, "dtype");
        mbl_push_shape(L, &rows[i].array.shape);
        lua_setfield(L, -2, "shape");
        set_count(L, "bytes", mb_array_bytes(&rows[i].array));
        set_count(L, "storage", rows[i].storage_bytes);
        set_count(L, "references", (uint64_t)rows[i].references);
        lua_pushlightuserdata(L, rows[i].array.storage);
        lua_setfield(L, -2, "storage_id");
        lua_pushstring(L, rows[i].owner != NULL ? rows[i].owner : "C");
        lua_setfield(L, -2, "owner");
        lua_pushnumber(L, now > rows[i].born ? (double)(now - rows[i].born) * 1e-9 : 0);
        lua_setfield(L, -2, "age");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* id(array): what `arrays` calls it. */
static int garbage_id(lua_State *L)
{
    lua_pushlightuserdata(L, check_box(L, 1));
    return 1;
}

/* free(array): as release, but an array that was released before is an error that names both
** sites. */
static int garbage_free(lua_State *L)
{
    array_box *box = check_box(L, 1);
    if (box->array == NULL)
        return mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                        "the block was freed at %s and is freed again at %s",
                        box->freed != NULL ? box->freed : "an earlier line", mbl_owner(L));
    return mbl_array_release(L);
}

/* collect(): a pool point. */
static int garbage_collect(lua_State *L)
{
    mbl_pool_point(L);
    return 0;
}

/* counts(): {points, collected, waiting, arrays}. */
static int garbage_counts(lua_State *L)
{
    lua_Integer arrays = 0;
    pthread_mutex_lock(&lock);
    for (array_box *box = boxes; box != NULL; box = box->next)
        arrays += box->array != NULL;
    lua_Integer values[] = {(lua_Integer)points, (lua_Integer)collected, (lua_Integer)garbage_count,
                            arrays};
    pthread_mutex_unlock(&lock);
    static const char *const names[] = {"points", "collected", "waiting", "arrays"};
    lua_createtable(L, 0, 4);
    for (int i = 0; i < 4; i++) {
        lua_pushinteger(L, values[i]);
        lua_setfield(L, -2, names[i]);
    }
    return 1;
}

/* The last finalizer of a state (made first, so finalized last): nothing of it may stay on the
** list. */
static int state_ends(lua_State *L)
{
    (void)L;
    mbl_garbage_drain();
    return 0;
}

/* forget(device): releases every array on the device, whoever refers to it. */
static int garbage_forget(lua_State *L)
{
    mb_device *device = mbl_check_device(L, 1);
    const char *site = mbl_owner(L);
    pthread_mutex_lock(&lock);
    for (array_box *box = boxes; box != NULL; box = box->next)
        if (box->array != NULL && box->array->device == device)
            box->freed = site;
    pthread_mutex_unlock(&lock);
    mb_pool_site(site);
    mbl_forget_device(device);
    mb_pool_site(NULL);
    return 0;
}

int mbl_open_garbage(lua_State *L)
{
    static const luaL_Reg functions[] = {{"collect", garbage_collect},
                                         {"counts", garbage_counts},
                                         {"arrays", garbage_arrays},
                                         {"id", garbage_id},
                                         {"free", garbage_free},
                                         {"forget", garbage_forget},
                                         {NULL, NULL}};
    if (luaL_newmetatable(L, "moonbeam.state")) {
        lua_pushcfunction(L, state_ends);
        lua_setfield(L, -2, "__gc");
        lua_newuserdatauv(L, 0, 0);
        lua_pushvalue(L, -2);
        lua_setmetatable(L, -2);
        lua_setfield(L, LUA_REGISTRYINDEX, "moonbeam.state.end");
    }
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}
