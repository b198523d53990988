/*
** The planner: an operator's scratch slots, laid out in one extent. An operator's `plan` declares
** every slot {name, bytes, first step, last step}; slots whose steps do not overlap may share
** bytes. The extent that results is what the driver allocates, and what the estimate reports: there
** is no other way for an operator to get memory. Failures inside a plan are sticky: declare slots
** without checking, the driver looks once at the end.
*/
#ifndef MB_MEMORY_PLANNER_H
#define MB_MEMORY_PLANNER_H

#include "device/fft.h"
#include "memory/pool.h"

#define MB_PLAN_MAX_SLOTS 16
#define MB_PLAN_MAX_FFTS 8

typedef struct mb_slot {
    const char *name; /* static text */
    uint64_t bytes;   /* as asked; placed at multiples of MB_POOL_UNIT */
    int first, last;  /* steps in which it is in use, inclusive */
    uint64_t offset;  /* in the extent; set by mb_planner_assign */
    bool fft;         /* an FFT's work area */
} mb_slot;

typedef struct mb_planner {
    mb_device *device;
    int slot_count;
    mb_slot slots[MB_PLAN_MAX_SLOTS];
    int fft_count;
    mb_fft_plan *ffts[MB_PLAN_MAX_FFTS]; /* held until mb_planner_finish */
    uint64_t extent;                     /* bytes, a multiple of MB_POOL_UNIT */
    mb_status status;
} mb_planner;

void mb_planner_begin(mb_planner *planner, mb_device *device);
/* Returns the slot's index: 0, 1, 2 ... in the order of declaration. */
int mb_planner_slot(mb_planner *planner, const char *name, uint64_t bytes, int first, int last);
/* Takes the FFT plan from the device's cache (making it if need be) and declares its work area as a
** slot of that name (of 0 bytes where none is needed, so that slot numbers do not depend on sizes).
** Returns the index of the FFT; the work slot's index goes to *work_slot. */
int mb_planner_fft(mb_planner *planner, const mb_fft_desc *desc, const char *name, int first,
                   int last, int *work_slot);
/* Places the slots; after this `extent` holds. */
mb_status mb_planner_assign(mb_planner *planner);
/* The FFT work areas' part of the extent: their sum, or the extent where they share bytes. After
** mb_planner_assign. */
uint64_t mb_planner_work(const mb_planner *planner);
/* Lets the FFT plans go. */
void mb_planner_finish(mb_planner *planner);

#endif
