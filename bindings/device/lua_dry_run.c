#include "call/lua_args.h"
#include "call/lua_error.h"
#include "device/lua_device.h"
#include "device/lua_dry.h"
#include "device/lua_dry_arrays.h"
#include "lua_modules.h"
#include "memory/pool_point.h"
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int in_a_row; /* of the Lua thread */

/* Ends the innermost dry run. Arrays of one device may be pinned for another, so all arrays are
** destroyed before the first device is closed. */
static void end_level(void)
{
    const mbl_dry_level *l = mbl_dry_innermost();
    for (int i = 0; i < l->count; i++) {
        mbl_dry_restore_arrays(l->pairs[i].of);
        mbl_forget_device(l->pairs[i].dry, NULL);
    }
    mbl_dry_pop();
}

/* Reads the list at `index`: the devices that are planned. A recorded dry run is no plan: its
** devices are only without a limit. */
static void read_planned(lua_State *L, int index, bool recorded, mbl_dry_level *l)
{
    size_t used = 0;
    for (lua_Integer i = 1; i <= (lua_Integer)lua_rawlen(L, index); i++) {
        lua_rawgeti(L, index, i);
        mb_device *device = mbl_dry_original(mbl_check_device(L, -1));
        lua_pop(L, 1);
        if (l->planned_count == MBL_MOST_DEVICES)
            mbl_fail(L, MB_STATUS_ARGUMENT, "device", "at most %d devices can be planned together",
                     MBL_MOST_DEVICES);
        l->planned[l->planned_count++] = device;
        if (used < sizeof l->names)
            used += (size_t)snprintf(l->names + used, sizeof l->names - used, "%s%s",
                                     i > 1 ? ", " : "", device->id);
    }
    l->planning = l->planned_count > 0 && !recorded;
    l->initial = l->planning && !l->others ? l->planned[0] : NULL;
}

/* Makes dry devices for all devices, and dry arrays for their arrays. Takes the level. */
static mb_status begin_level(lua_State *L, mbl_dry_level *l)
{
    mb_device *list[2 * MBL_MOST_DEVICES], *active[2 * MBL_MOST_DEVICES];
    int count = 0;
    for (; mbl_opened_device(count); count++)
        list[count] = mbl_opened_device(count);
    for (int i = 0; i < l->planned_count; i++) /* a dry device may be planned, too */
        if (!mbl_is_opened(l->planned[i]))
            list[count++] = l->planned[i];
    for (int i = 0; i < count; i++)
        active[i] = mbl_dry_active(L, list[i]);
    if (!mbl_dry_push(l)) {
        free(l);
        return mb_fail(MB_STATUS_ARGUMENT, NULL, "too many dry runs are inside each other");
    }
    mb_status status = MB_STATUS_OK;
    for (int i = 0; i < count && status == MB_STATUS_OK; i++)
        if (!mbl_dry_of(active[i]))
            status = mbl_dry_add(l, list[i], active[i]);
    for (int i = 0; i < l->count && status == MB_STATUS_OK; i++) {
        status = mbl_dry_replace_arrays(l->pairs[i].of, l->pairs[i].dry);
        mbl_copy_counter(l->pairs[i].of, l->pairs[i].dry);
    }
    if (status != MB_STATUS_OK)
        end_level();
    return status;
}

/* begin([devices [, room [, others [, recorded]]]]): until the matching finish() no work is done. With a list of
** devices, these are planned: each has `room` bytes beyond its live bytes (nil: all that can be
** addressed). `others`: all other devices give memory too, and the default device stays the same.
** `recorded`: ledgers have its steps, as without a list.
** Begins with a pool point, as a recording does, unless it is one of several in a row. */
static int dry_begin(lua_State *L)
{
    lua_settop(L, 4);
    mbl_dry_level *scratch = lua_newuserdatauv(L, sizeof *scratch, 0);
    memset(scratch, 0, sizeof *scratch);
    scratch->room = lua_isnil(L, 2) ? MB_POOL_UNLIMITED : (uint64_t)mbl_check_integer(L, 2, "room");
    scratch->others = lua_toboolean(L, 3);
    if (lua_istable(L, 1))
        read_planned(L, 1, lua_toboolean(L, 4), scratch);
    if (in_a_row == 0 || mbl_dry_innermost())
        mbl_first_point(L);
    mbl_dry_level *l = malloc(sizeof *l);
    if (!l)
        mbl_fail(L, MB_STATUS_MEMORY, NULL, "no host memory for a dry run's records");
    *l = *scratch;
    mbl_check(L, begin_level(L, l));
    return 0;
}

/* finish(): ends the innermost dry run. */
static int dry_finish(lua_State *L)
{
    (void)L;
    if (mbl_dry_innermost())
        end_level();
    return 0;
}

/* row(on): from now on (after a pool point) dry runs begin without one, for nothing is garbage but
** what they leave; or no longer. Rows may be inside each other. */
static int dry_row(lua_State *L)
{
    const bool on = lua_toboolean(L, 1);
    if (on && in_a_row == 0)
        mbl_first_point(L);
    in_a_row += on ? 1 : -1;
    return 0;
}

/* on(): is a dry run in progress? */
static int dry_on(lua_State *L)
{
    lua_pushboolean(L, mbl_dry_innermost() != NULL);
    return 1;
}

/* planning(): is a plan in progress? */
static int dry_planning(lua_State *L)
{
    lua_pushboolean(L, mbl_dry_planning());
    return 1;
}

int mbl_open_dry(lua_State *L)
{
    static const luaL_Reg functions[] = {{"begin", dry_begin},       {"finish", dry_finish},
                                         {"row", dry_row},           {"on", dry_on},
                                         {"planning", dry_planning}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
