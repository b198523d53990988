/*
** Dry runs: which dry device stands for which device. During a dry run every device is replaced by
** a dry one in the same state. Programs see the same devices, whichever way they refer to them, but
** no work is done. Dry runs nest: the inner one replaces the dry devices of the outer one.
**
** A dry run that plans (plan.peak) names its devices. They grant requests up to a given room,
** whatever their budgets; the first one is the default device. On every other device arrays have
** shapes, requests for memory are refused, and the ledger notes nothing.
**
** Dry runs are begun and ended by one thread, in pairs.
*/
#ifndef MB_BINDINGS_LUA_DRY_H
#define MB_BINDINGS_LUA_DRY_H

#include "device/opened_devices.h"
#include <lua.h>

/* A device of the program and the dry device that stands for it. */
typedef struct mbl_dry_pair {
    mb_device *of, *dry; /* `of` stood for the device before; it may be dry itself */
    bool was_silent;
} mbl_dry_pair;

typedef struct mbl_dry_level {
    mbl_dry_pair pairs[MBL_MOST_DEVICES];
    int count;
    bool planning;
    bool others;                          /* devices that are not planned give memory too */
    mb_device *planned[MBL_MOST_DEVICES]; /* as programs know them */
    int planned_count;
    uint64_t room;      /* of each of them */
    mb_device *initial; /* the default device, as programs know it */
    char names[200];
} mbl_dry_level;

/* The device that stands for this one now; outside dry runs the device itself. */
mb_device *mbl_dry_active(lua_State *L, mb_device *device);
/* The device that a dry device of a dry run stands for; for any other device the device itself. */
mb_device *mbl_dry_original(mb_device *device);
/* The default device of the plan in progress, or NULL if there is no plan. Sets it unless NULL. */
mb_device *mbl_dry_default(mb_device *device);
/* The dry device by which the innermost dry run replaced this device; NULL: it did not. */
mb_device *mbl_dry_of(const mb_device *device);
/* Does the device stand for another one, in a dry run? */
bool mbl_is_dry_run_device(const mb_device *device);

/* Makes this level, from malloc, the innermost one and owns it. False if there are too many. */
bool mbl_dry_push(mbl_dry_level *level);
/* The innermost level; NULL outside dry runs. */
mbl_dry_level *mbl_dry_innermost(void);
/* Makes a dry device for `of`, which stands for `original` one level further out. */
mb_status mbl_dry_add(mbl_dry_level *level, mb_device *original, mb_device *of);
/* Closes the dry devices of the innermost level, whose arrays must be gone, and frees it. */
void mbl_dry_pop(void);
/* Is a plan in progress? */
bool mbl_dry_planning(void);

#endif
