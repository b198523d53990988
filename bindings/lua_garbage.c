/*
** The life of array userdata, and pool points.
**
** A Lua collector runs when it likes; pool memory must not depend on that. So a finalizer never
** frees: it moves the array to the garbage list, and the list is freed only at pool points, after a
** full collection:
**   - when the bytes made on a device since the last point exceed 256 MiB and what was live then,
**   - when a request does not fit the budget (idle FFT plans go too, and the request is retried),
**   - when the program asks (mb.collect).
** What is live at a pool point thus depends on the program alone. `release` and `<close>` free at
** once.
**
** Every array userdata is also on a list, so that a shadow device can be closed whoever still
** refers to its arrays. Both lists belong to the process and are guarded by one mutex, which is
** never held while Lua runs or arrays are freed.
*/
#include "lua_moonbeam.h"
#include <pthread.h>
#include <stdlib.h>

#define POINT_BYTES ((uint64_t)256 << 20)
#define MAX_COUNTERS 64

/* The userdata. `array` comes first: its address is the slot that mbl_new_array returns. */
typedef struct array_box {
    mb_array *array;
    struct array_box *next, **link; /* link is NULL when the box is not on the list */
} array_box;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static array_box *boxes;
static mb_array **garbage;
static size_t garbage_count, garbage_room;

/* Per device: bytes made since the last pool point, and what was live after it. Only arrays count,
** because scratch never becomes garbage. */
static struct counter {
    mb_device *device;
    uint64_t made, live;
} counters[MAX_COUNTERS];

static uint64_t points, collected; /* pool points passed, arrays freed at them: mb.pool.stats */

mb_array **mbl_new_array(lua_State *L)
{
    array_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->array = NULL;
    box->link = NULL;
    luaL_setmetatable(L, MBL_ARRAY);
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

int mbl_array_gc(lua_State *L)
{
    array_box *box = luaL_checkudata(L, 1, MBL_ARRAY);
    mb_array *unlisted = NULL;
    pthread_mutex_lock(&lock);
    if (box->link != NULL) {
        *box->link = box->next;
        if (box->next != NULL)
            box->next->link = box->link;
        box->link = NULL;
    }
    mb_array *array = empty_box(box);
    if (array != NULL) {
        if (garbage_count == garbage_room) {
            size_t room = garbage_room == 0 ? 64 : 2 * garbage_room;
            mb_array **list = realloc(garbage, room * sizeof *list);
            if (list != NULL) {
                garbage = list;
                garbage_room = room;
            }
        }
        if (garbage_count < garbage_room)
            garbage[garbage_count++] = array;
        else
            unlisted = array; /* out of host memory: better early than never */
    }
    pthread_mutex_unlock(&lock);
    mb_array_destroy(unlisted);
    return 0;
}

int mbl_array_release(lua_State *L)
{
    array_box *box = luaL_checkudata(L, 1, MBL_ARRAY);
    pthread_mutex_lock(&lock);
    mb_array *array = empty_box(box);
    pthread_mutex_unlock(&lock);
    mb_array_destroy(array);
    return 0;
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
    for (size_t i = 0; i < count; i++)
        mb_array_destroy(list[i]);
    free(list);
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

/* The device's counter, or NULL when there are too many devices (then only the budget makes pool
** points). */
static struct counter *counter_of(mb_device *device)
{
    int empty = -1;
    for (int i = 0; i < MAX_COUNTERS; i++) {
        if (counters[i].device == device)
            return &counters[i];
        if (counters[i].device == NULL && empty < 0)
            empty = i;
    }
    if (empty < 0)
        return NULL;
    counters[empty] = (struct counter){device, 0, 0};
    return &counters[empty];
}

void mbl_allocated(mb_device *device, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    struct counter *counter = counter_of(device);
    if (counter != NULL)
        counter->made += bytes;
    pthread_mutex_unlock(&lock);
}

static bool point_is_due(mb_device *device)
{
    pthread_mutex_lock(&lock);
    const struct counter *counter = counter_of(device);
    bool due = counter != NULL && counter->made > POINT_BYTES && counter->made > counter->live;
    pthread_mutex_unlock(&lock);
    return due;
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

mb_status mbl_allocate(lua_State *L, mb_device *device, mbl_request request, void *user)
{
    if (point_is_due(device))
        mbl_pool_point(L);
    mb_error_clear();
    mb_status status = request(user);
    if (status == MB_STATUS_BUDGET) {
        mb_error_clear();
        mbl_pool_point(L);
        mb_fft_cache_drop(device, 0);
        mb_error_clear();
        status = request(user);
    }
    return status;
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
    return mb_array_create(r->device, r->dtype, r->shape, r->owner, r->out);
}

mb_array *mbl_create_array(lua_State *L, mb_device *device, mb_dtype dtype, const mb_shape *shape)
{
    mb_array **slot = mbl_new_array(L);
    create_request request = {device, dtype, shape, mbl_owner(L), slot};
    mbl_check(L, mbl_allocate(L, device, create, &request));
    mbl_allocated(device, mb_pool_round(mb_array_bytes(*slot)));
    return *slot;
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

int mbl_open_garbage(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"collect", garbage_collect}, {"counts", garbage_counts}, {NULL, NULL}};
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
