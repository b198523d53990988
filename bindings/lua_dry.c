/*
** Dry runs. While a dry run goes on, a dry device in the same state stands in for every device, and
** a dry array for every array: programs see the devices and the arrays that they had, whichever way
** they refer to them, and nothing is done for real. Dry runs nest: the dry devices of the inner run
** stand in for those of the outer run.
**
** A dry run that plans (plan.peak) names its devices. They give what fits the room that it is
** given, whatever their budgets; the first is the default one. Every other device looks on: its
** arrays have shapes, and it refuses memory. Nothing of it gets into a ledger.
**
** Dry runs are begun and ended by one thread, in pairs.
*/
#include "lua_moonbeam.h"
#include "device/dry/dry_backend.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LEVELS 32

typedef struct pair {
    mb_device *of, *dry;
    bool was_silent;
} pair;

typedef struct level {
    pair pairs[MBL_MOST_DEVICES];
    int count;
    bool planning,
        others; /* others: devices that are not planned give memory, too, as they do now */
    mb_device *planned[MBL_MOST_DEVICES]; /* the originals */
    int planned_count;
    uint64_t room;      /* of each of them */
    mb_device *initial; /* the default device: an original */
    char names[200];
} level;

static level *levels[MOST_LEVELS];
static int depth;

static mb_device *dry_at(const level *l, const mb_device *of)
{
    for (int i = 0; i < l->count; i++)
        if (l->pairs[i].of == of)
            return l->pairs[i].dry;
    return NULL;
}

mb_device *mbl_dry_original(mb_device *device)
{
    for (int d = depth - 1; d >= 0; d--)
        for (int i = 0; i < levels[d]->count; i++)
            if (levels[d]->pairs[i].dry == device)
                device = levels[d]->pairs[i].of;
    return device;
}

bool mbl_is_dry_run_device(const mb_device *device)
{
    for (int d = 0; d < depth; d++)
        for (int i = 0; i < levels[d]->count; i++)
            if (levels[d]->pairs[i].dry == device)
                return true;
    return false;
}

mb_device *mbl_dry_of(const mb_device *device)
{
    return depth > 0 ? dry_at(levels[depth - 1], device) : NULL;
}

/* `of` is what stands for the device one level further out. */
static mb_status open_dry(level *l, mb_device *original, mb_device *of)
{
    bool planned = false;
    for (int i = 0; i < l->planned_count; i++)
        planned = planned || l->planned[i] == original;
    if (l->count == MBL_MOST_DEVICES)
        return mb_fail(MB_STATUS_ARGUMENT, NULL, "a dry run has at most %d devices",
                       MBL_MOST_DEVICES);
    mb_device *dry = NULL;
    MB_TRY(mb_device_open_dry_copy(of, planned ? l->room : MB_POOL_SAME, &dry));
    dry->silent = l->planning;
    if (l->planning)
        dry->pinned.peak = dry->pinned.live;
    if (l->planning && !planned && !l->others) {
        char text[300];
        snprintf(text, sizeof text,
                 "memory on %s was asked for while planning %s; plan both (mb.plan.peaks), or use "
                 "the device that is planned",
                 of->id, l->names);
        dry->pinned.refusal = mbl_intern(text);
        mb_pool_refuse(dry->pool, dry->pinned.refusal);
    }
    l->pairs[l->count++] = (pair){of, dry, of->silent};
    of->silent = true;
    return MB_STATUS_OK;
}

mb_device *mbl_dry_active(lua_State *L, mb_device *device)
{
    mb_device *original = device;
    if (depth == 0 || (device->dry && dry_at(levels[0], device) == NULL))
        return device;
    for (int d = 0; d < depth; d++) {
        mb_device *dry = dry_at(levels[d], device);
        if (dry == NULL) { /* opened since the dry run began */
            if (!mbl_is_opened(original))
                return device;
            mb_error_clear();
            mbl_check(L, open_dry(levels[d], original, device));
            dry = dry_at(levels[d], device);
        }
        device = dry;
    }
    return device;
}

mb_device *mbl_dry_default(mb_device *device)
{
    for (int d = depth - 1; d >= 0; d--)
        if (levels[d]->initial != NULL) {
            if (device != NULL)
                levels[d]->initial = device;
            return levels[d]->initial;
        }
    return NULL;
}

/* Ends the innermost dry run. Arrays of one device may be pinned for another, so all arrays go
** before the first device does. */
static void end_level(void)
{
    level *l = levels[depth - 1];
    for (int i = 0; i < l->count; i++) {
        mbl_dry_restore_arrays(l->pairs[i].of);
        mbl_forget_device(l->pairs[i].dry);
    }
    depth--;
    for (int i = 0; i < l->count; i++) {
        l->pairs[i].of->silent = l->pairs[i].was_silent;
        mb_device_close_dry(l->pairs[i].dry);
    }
    free(l);
}

/* The devices at `index`, a list, as those that are planned. */
static void read_planned(lua_State *L, int index, level *l)
{
    size_t used = 0;
    for (lua_Integer i = 1; i <= (lua_Integer)lua_rawlen(L, index); i++) {
        lua_rawgeti(L, index, i);
        mb_device *device = mbl_dry_original(mbl_check_device(L, -1));
        lua_pop(L, 1);
        if (l->planned_count == MBL_MOST_DEVICES)
            mbl_fail(L, MB_STATUS_ARGUMENT, "device", "too many devices are planned at a time");
        l->planned[l->planned_count++] = device;
        if (used < sizeof l->names)
            used += (size_t)snprintf(l->names + used, sizeof l->names - used, "%s%s",
                                     i > 1 ? ", " : "", device->id);
    }
    l->planning = l->planned_count > 0;
    l->initial = l->planning && !l->others ? l->planned[0] : NULL;
}

/* Dry devices for all devices, and dry arrays for theirs. */
static mb_status begin_level(lua_State *L, level *l)
{
    mb_device *list[2 * MBL_MOST_DEVICES], *active[2 * MBL_MOST_DEVICES];
    int count = mbl_opened_devices(list);
    for (int i = 0; i < l->planned_count; i++) /* a dry device may be planned, too */
        if (!mbl_is_opened(l->planned[i]))
            list[count++] = l->planned[i];
    for (int i = 0; i < count; i++)
        active[i] = mbl_dry_active(L, list[i]);
    levels[depth++] = l;
    for (int i = 0; i < count; i++)
        if (dry_at(l, active[i]) == NULL)
            MB_TRY(open_dry(l, list[i], active[i]));
    for (int i = 0; i < l->count; i++)
        MB_TRY(mbl_dry_replace_arrays(l->pairs[i].of, l->pairs[i].dry));
    return MB_STATUS_OK;
}

/* dry_begin([devices [, room [, others]]]): until the matching dry_end() nothing is done for
** real. With devices, they are planned: each has `room` bytes beyond what is live (nil: what can
** be addressed). `others`: all other devices, and which one is the default, stay as they are.
** Begins with a pool point, as a recording does. */
static int dry_begin(lua_State *L)
{
    lua_settop(L, 3);
    if (depth == MOST_LEVELS)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "more than %d dry runs are inside each other",
                 MOST_LEVELS);
    level *scratch = lua_newuserdatauv(L, sizeof *scratch, 0);
    memset(scratch, 0, sizeof *scratch);
    scratch->room = lua_isnil(L, 2) ? MB_POOL_UNLIMITED : (uint64_t)mbl_check_integer(L, 2, "room");
    scratch->others = lua_toboolean(L, 3);
    if (lua_istable(L, 1))
        read_planned(L, 1, scratch);
    mbl_pool_point(L);
    level *l = malloc(sizeof *l);
    mb_error_clear();
    if (l == NULL)
        mbl_fail(L, MB_STATUS_MEMORY, NULL, "no host memory for a dry run's records");
    *l = *scratch;
    const int before = depth;
    mb_status status = begin_level(L, l);
    if (status != MB_STATUS_OK) {
        if (depth > before)
            end_level();
        mbl_check(L, status);
    }
    return 0;
}

static int dry_end(lua_State *L)
{
    (void)L;
    if (depth > 0)
        end_level();
    return 0;
}

/* dry(): is a dry run going on? */
static int dry_now(lua_State *L)
{
    lua_pushboolean(L, depth > 0);
    return 1;
}

/* planning(): is something being planned? */
static int dry_planning(lua_State *L)
{
    bool found = false;
    for (int d = 0; d < depth; d++)
        found = found || levels[d]->planning;
    lua_pushboolean(L, found);
    return 1;
}

const luaL_Reg mbl_dry_functions[] = {{"dry_begin", dry_begin},
                                      {"dry_end", dry_end},
                                      {"dry", dry_now},
                                      {"planning", dry_planning},
                                      {NULL, NULL}};
