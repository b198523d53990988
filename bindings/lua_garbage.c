/*
** The list of all arrays and the garbage list, in Lua: core.garbage.
*/
#include "call/lua_error.h"
#include "call/lua_owner.h"
#include "call/lua_table.h"
#include "core/clock.h"
#include "device/lua_device.h"
#include "lua_modules.h"
#include "memory/garbage_list.h"
#include "memory/lua_array_box.h"
#include "memory/pool_point.h"
#include <lauxlib.h>
#include <stdlib.h>

/* arrays(): all arrays, oldest first: {id, device, dtype, shape, bytes, storage, owner, age,
** references}. */
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

static void push_row(lua_State *L, const array_row *row, const mb_tick_scale *scale)
{
    lua_createtable(L, 0, 10);
    lua_pushlightuserdata(L, (void *)(uintptr_t)row->id);
    lua_setfield(L, -2, "id");
    mbl_set_text(L, "device", row->array.device->id);
    mbl_set_text(L, "dtype", mb_dtype_name(row->array.dtype));
    mbl_set_extents(L, "shape", row->array.shape.rank, row->array.shape.dims);
    mbl_set_integer(L, "bytes", (int64_t)mb_array_bytes(&row->array));
    mbl_set_integer(L, "storage", (int64_t)row->storage_bytes);
    mbl_set_integer(L, "references", row->references);
    lua_pushlightuserdata(L, row->array.storage);
    lua_setfield(L, -2, "storage_id");
    mbl_set_text(L, "owner", row->owner ? row->owner : "C");
    mbl_set_number(L, "age", (double)(scale->last_ns - mb_ticks_ns(scale, row->born)) * 1e-9);
}

static int garbage_arrays(lua_State *L)
{
    size_t count = 0, filled = 0;
    mbl_pool_point(L); /* so that no finalizer changes the list below */
    for (mbl_array_box *box = mbl_lock_array_boxes(); box; box = box->next)
        count += box->array ? 1 : 0;
    mbl_unlock_array_boxes();
    array_row *rows = lua_newuserdatauv(L, (count > 0 ? count : 1) * sizeof *rows, 0);
    for (mbl_array_box *box = mbl_lock_array_boxes(); box && filled < count; box = box->next)
        if (box->array)
            rows[filled++] = (array_row){box,
                                         *box->array,
                                         mb_storage_owner(box->array->storage),
                                         mb_storage_born(box->array->storage),
                                         mb_pool_round(mb_storage_bytes(box->array->storage)),
                                         mb_storage_references(box->array->storage)};
    mbl_unlock_array_boxes();
    qsort(rows, filled, sizeof *rows, by_birth);
    const mb_tick_scale scale = mb_tick_scale_now();
    lua_createtable(L, (int)filled, 0);
    for (size_t i = 0; i < filled; i++) {
        push_row(L, &rows[i], &scale);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* id(array): its id in `arrays`. */
static int garbage_id(lua_State *L)
{
    lua_pushlightuserdata(L, mbl_check_array_box(L, 1));
    return 1;
}

/* free(array): releases it. Releasing it twice is an error that names both lines. */
static int garbage_free(lua_State *L)
{
    const mbl_array_box *box = mbl_check_array_box(L, 1);
    if (!box->array)
        return mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                        "the block was freed at %s and is freed again at %s",
                        box->freed ? box->freed : "an earlier line", mbl_owner(L));
    return mbl_array_release(L);
}

/* collect(): a pool point. */
static int garbage_collect(lua_State *L)
{
    mbl_pool_point(L);
    return 0;
}

/* hold(on): from now on only requests make pool points, each of its own device; or no longer. */
static int garbage_hold(lua_State *L)
{
    mbl_hold_points(lua_toboolean(L, 1) ? 1 : -1);
    return 0;
}

/* counts(): {points, collected, waiting, arrays}. */
static int garbage_counts(lua_State *L)
{
    lua_Integer arrays = 0;
    uint64_t waiting, collected;
    mbl_garbage_count(&waiting, &collected);
    for (mbl_array_box *box = mbl_lock_array_boxes(); box; box = box->next)
        arrays += box->array ? 1 : 0;
    mbl_unlock_array_boxes();
    lua_createtable(L, 0, 4);
    mbl_set_integer(L, "points", (int64_t)mbl_pool_points());
    mbl_set_integer(L, "collected", (int64_t)collected);
    mbl_set_integer(L, "waiting", (int64_t)waiting);
    mbl_set_integer(L, "arrays", arrays);
    return 1;
}

/* The last finalizer of a state, because its object was made first: no array of the state may stay
** on the list. */
static int state_ends(lua_State *L)
{
    (void)L;
    mbl_garbage_drain(NULL);
    return 0;
}

/* forget(device): releases every array on the device, even if something refers to it. */
static int garbage_forget(lua_State *L)
{
    mbl_forget_device(mbl_check_device(L, 1), mbl_owner(L));
    return 0;
}

int mbl_open_garbage(lua_State *L)
{
    static const luaL_Reg functions[] = {{"collect", garbage_collect}, {"counts", garbage_counts},
                                         {"arrays", garbage_arrays},   {"id", garbage_id},
                                         {"free", garbage_free},       {"forget", garbage_forget},
                                         {"hold", garbage_hold},       {NULL, NULL}};
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
