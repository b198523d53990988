/*
** Dry runs: which dry device stands for which device. While a dry run goes on, every device is
** replaced by a dry one in the same state: programs see the devices that they had, whichever way
** they refer to them, and nothing is done for real. Dry runs nest: the inner one replaces the dry
** devices of the outer one.
**
** A dry run that plans (plan.peak) names its devices. They give what fits the room that it is
** given, whatever their budgets; the first is the default one. Every other device looks on: its
** arrays have shapes, and it refuses memory. Nothing of it gets into a ledger.
**
** Dry runs are begun and ended by one thread, in pairs.
*/
#ifndef MB_BINDINGS_LUA_DRY_H
#define MB_BINDINGS_LUA_DRY_H

#include "device/opened_devices.h"
#include <lua.h>

/* What a program calls a device. */
typedef struct mbl_dry_pair {
    mb_device *of, *dry; /* `of` is what stood for the device before; it may be dry itself */
    bool was_silent;
} mbl_dry_pair;

typedef struct mbl_dry_level {
    mbl_dry_pair pairs[MBL_MOST_DEVICES];
    int count;
    bool planning;
    bool others; /* devices that are not planned give memory, too, as they do now */
    mb_device *planned[MBL_MOST_DEVICES]; /* as programs know them */
    int planned_count;
    uint64_t room;      /* of each of them */
    mb_device *initial; /* the default device, as programs know it */
    char names[200];
} mbl_dry_level;

/* What stands for the device now; the device itself outside dry runs. */
mb_device *mbl_dry_active(lua_State *L, mb_device *device);
/* What the dry device of a dry run stands for; any other device itself. */
mb_device *mbl_dry_original(mb_device *device);
/* The default device of what is being planned, or NULL where nothing is. Sets it unless NULL. */
mb_device *mbl_dry_default(mb_device *device);
/* In the innermost dry run: the dry device of what stood for a device around it; NULL: none. */
mb_device *mbl_dry_of(const mb_device *device);
/* Does the device stand for another one, in a dry run? */
bool mbl_is_dry_run_device(const mb_device *device);

/* Takes the level, which is from malloc, as the innermost one. False where there are too many. */
bool mbl_dry_push(mbl_dry_level *level);
/* The innermost level; NULL outside dry runs. */
mbl_dry_level *mbl_dry_innermost(void);
/* A dry device for `of`, which stands for `original` one level further out. */
mb_status mbl_dry_add(mbl_dry_level *level, mb_device *original, mb_device *of);
/* Closes the dry devices of the innermost level, whose arrays must be gone, and frees it. */
void mbl_dry_pop(void);
/* Is something being planned? */
bool mbl_dry_planning(void);

#endif
