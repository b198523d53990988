#include "device/lua_dry.h"
#include "device/dry/dry_backend.h"
#include "call/lua_error.h"
#include "call/lua_owner.h"
#include <stdio.h>
#include <stdlib.h>

#define MOST_LEVELS 32

static mbl_dry_level *levels[MOST_LEVELS];
static int depth;

static mb_device *dry_at(const mbl_dry_level *l, const mb_device *of)
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

mb_status mbl_dry_add(mbl_dry_level *l, mb_device *original, mb_device *of)
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
        char text[400];
        snprintf(text, sizeof text,
                 "memory on %s was requested while planning %s; plan both (mb.plan.peaks), or use "
                 "the device that is planned",
                 of->id, l->names);
        dry->pinned.refusal = mbl_intern(text);
        mb_pool_refuse(dry->pool, dry->pinned.refusal);
    }
    l->pairs[l->count++] = (mbl_dry_pair){of, dry, of->silent};
    of->silent = true;
    return MB_STATUS_OK;
}

mb_device *mbl_dry_active(lua_State *L, mb_device *device)
{
    mb_device *original = device;
    if (depth == 0 || (device->dry && !dry_at(levels[0], device)))
        return device;
    for (int d = 0; d < depth; d++) {
        mb_device *dry = dry_at(levels[d], device);
        if (!dry) { /* opened after the dry run began */
            if (!mbl_is_opened(original))
                return device;
            mbl_check(L, mbl_dry_add(levels[d], original, device));
            dry = dry_at(levels[d], device);
        }
        device = dry;
    }
    return device;
}

mb_device *mbl_dry_default(mb_device *device)
{
    for (int d = depth - 1; d >= 0; d--)
        if (levels[d]->initial) {
            if (device)
                levels[d]->initial = device;
            return levels[d]->initial;
        }
    return NULL;
}

bool mbl_dry_push(mbl_dry_level *level)
{
    if (depth == MOST_LEVELS)
        return false;
    levels[depth++] = level;
    return true;
}

mbl_dry_level *mbl_dry_innermost(void)
{
    return depth > 0 ? levels[depth - 1] : NULL;
}

void mbl_dry_pop(void)
{
    mbl_dry_level *l = levels[--depth];
    for (int i = 0; i < l->count; i++) {
        l->pairs[i].of->silent = l->pairs[i].was_silent;
        mb_device_close_dry(l->pairs[i].dry);
    }
    free(l);
}

bool mbl_dry_planning(void)
{
    for (int d = 0; d < depth; d++)
        if (levels[d]->planning)
            return true;
    return false;
}
