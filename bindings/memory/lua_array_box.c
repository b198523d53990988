#include "memory/lua_array_box.h"
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_owner.h"
#include "memory/garbage_list.h"
#include "memory/lua_tag.h"
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

const mbl_type mbl_array_type = {MBL_ARRAY, sizeof(mbl_array_box), MBL_KEY_ARRAY};

#define RELEASED "moonbeam.array.released" /* the name of a metatable */

/* Every array of every script takes this lock twice, nearly always alone, and holds it for a few
** instructions: half the atomic operations of a mutex. */
static atomic_flag busy = ATOMIC_FLAG_INIT;
static mbl_array_box *boxes;

static inline void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
        sched_yield();
}

static inline void unlock(void)
{
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

static mbl_array_box *test_box(lua_State *L, int index)
{
    mbl_array_box *box = mbl_test_userdata(L, index, &mbl_array_type);
    return box ? box : luaL_testudata(L, index, RELEASED);
}

mb_array **mbl_array_slot(lua_State *L, int index)
{
    mbl_array_box *box = test_box(L, index);
    return box ? &box->array : NULL;
}

mbl_array_box *mbl_check_array_box(lua_State *L, int index)
{
    mbl_array_box *box = test_box(L, index);
    return box ? box : mbl_check_object(L, index, MBL_ARRAY);
}

mb_array *mbl_check_array(lua_State *L, int index)
{
    mb_array **slot = mbl_array_slot(L, index);
    if (!slot)
        mbl_fail(L, MB_STATUS_ARGUMENT, "array", "expected an array, not a %s",
                 mbl_type_name(L, index));
    if (!*slot)
        mbl_fail(L, MB_STATUS_ARGUMENT, "array",
                 "the array has been released; release it after its last use");
    return *slot;
}

mb_array **mbl_new_array(lua_State *L)
{
    mbl_array_box *box = mbl_new_userdata(L, &mbl_array_type);
    box->array = NULL;
    box->saved = NULL;
    box->freed = NULL;
    box->tag = box->owner = NULL;
    box->listed = true;
    box->link = &boxes;
    lock();
    box->next = boxes;
    if (boxes)
        boxes->link = &box->next;
    boxes = box;
    unlock();
    return &box->array;
}

mb_array **mbl_new_view(lua_State *L)
{
    static atomic_uint_least64_t views;
    mb_array **slot = mbl_new_array(L);
    const char *tag = mbl_tag(L);
    if (tag) {
        mbl_array_box *box = mbl_check_array_box(L, -1);
        box->owner = mbl_owner(L);
        box->sequence = atomic_fetch_add(&views, 1);
        box->tag = tag;
    }
    return slot;
}

/* Takes the array out of the box, which may be empty already. */
static mb_array *empty_box(mbl_array_box *box)
{
    mb_array *array = box->array;
    box->array = NULL;
    return array;
}

/* Under the lock. */
static void unlist(mbl_array_box *box)
{
    if (!box->listed)
        return;
    *box->link = box->next;
    if (box->next)
        box->next->link = box->link;
    box->listed = false;
}

int mbl_array_gc(lua_State *L)
{
    mbl_array_box *box = mbl_check_array_box(L, 1);
    box->mark = NULL;
    if (!box->listed)
        return 0;
    lock();
    unlist(box);
    mb_array *array = empty_box(box);
    mbl_replaced *saved = box->saved;
    box->saved = NULL;
    unlock();
    mbl_garbage_add(array);
    while (saved) {
        mbl_replaced *below = saved->below;
        mbl_garbage_add(saved->array);
        free(saved);
        saved = below;
    }
    return 0;
}

void mbl_complete_array_type(lua_State *L)
{
    luaL_newmetatable(L, RELEASED);
    luaL_getmetatable(L, MBL_ARRAY);
    for (lua_pushnil(L); lua_next(L, -2) != 0;) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -5);
    }
    lua_pop(L, 1);
    lua_pushnil(L);
    lua_setfield(L, -2, "__gc");
    lua_rawseti(L, LUA_REGISTRYINDEX, MBL_KEY_RELEASED_ARRAY);
}

/* For the box at index 1, to which no array comes back: nothing of it has to be finalized. The
** collector passes it faster without a finalizer, which will not clear the mark. */
static void end_life(lua_State *L, mbl_array_box *box)
{
    if (lua_rawgeti(L, LUA_REGISTRYINDEX, MBL_KEY_RELEASED_ARRAY) != LUA_TTABLE)
        return;
    lua_setmetatable(L, 1);
    box->mark = NULL;
}

int mbl_array_release(lua_State *L)
{
    mbl_array_box *box = mbl_check_array_box(L, 1);
    lock();
    mb_array *array = empty_box(box);
    const bool ends = !box->saved;
    if (ends)        /* nothing comes back to it; later, its neighbors would have to be */
        unlist(box); /* fetched from memory again */
    unlock();
    if (array) {
        box->freed = mbl_owner(L);
        mb_pool_site(box->freed);
        const char *tag = mbl_tag(L);
        if (tag)
            mb_pool_tag(tag);
        mb_array_destroy(array);
        if (tag)
            mb_pool_tag(NULL);
        mb_pool_site(NULL);
        if (ends)
            end_life(L, box);
    }
    return 0;
}

mbl_array_box *mbl_lock_array_boxes(void)
{
    lock();
    return boxes;
}

void mbl_unlock_array_boxes(void)
{
    unlock();
}

bool mbl_any_array(void)
{
    lock();
    const mbl_array_box *box = boxes;
    while (box && !box->array && !box->saved)
        box = box->next;
    unlock();
    return box != NULL;
}

/* Frees the arrays that userdata hold on the device, or on all devices if it is NULL. */
static void release_all(const mb_device *device, const char *site)
{
    mb_array *array;
    do {
        array = NULL;
        lock();
        for (mbl_array_box *box = boxes; box && !array; box = box->next)
            if (box->array && (!device || box->array->device == device)) {
                box->freed = site ? site : box->freed;
                array = empty_box(box);
                if (!box->saved)
                    unlist(box);
            }
        unlock();
        mb_array_destroy(array);
    } while (array);
}

void mbl_forget_arrays(const mb_device *device, const char *site)
{
    mb_pool_site(site);
    release_all(device, site);
    mbl_garbage_forget(device);
    mb_pool_site(NULL);
}

/* Finalizers may make arrays while the state closes; those arrays' own finalizers are not
** called. */
static int state_closes(lua_State *L)
{
    (void)L;
    release_all(NULL, NULL);
    return 0;
}

void mbl_release_at_close(lua_State *L)
{
    static const char key = 0;
    lua_newuserdatauv(L, 0, 0);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, state_closes);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
}
