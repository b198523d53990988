/*
** The ledger: one row for every step while it is recording. A step is an operator run, an array
** made, a block released, a collection (all blocks that a pool point freed on a device), or pinned
** host memory taken or given back. Pinned bytes are not the pool's: live and peak of such a row are
** the device's pinned bytes.
**
** The process has one recording. Recordings nest: an inner one is a later part of the same rows.
** While nothing is recorded, a step only tests a flag. A dry run on clones of the pools
** (mb_pool_clone) and the real run give the same rows, because the same code notes them. Threads:
** notes take a lock; suppression and labels are per thread.
*/
#ifndef MB_MEMORY_LEDGER_H
#define MB_MEMORY_LEDGER_H

#include "device/device.h"
#include <stdatomic.h>

typedef enum mb_ledger_kind {
    MB_LEDGER_OPERATOR,
    MB_LEDGER_CREATE,
    MB_LEDGER_RELEASE,
    MB_LEDGER_COLLECT,
    MB_LEDGER_PIN,
} mb_ledger_kind;

/* Bytes are the pool's, rounded. */
typedef struct mb_ledger_row {
    mb_ledger_kind kind;
    char device[24];
    const char *label; /* operator, function that made the array, "release", "collect"; interned */
    const char *owner; /* source line, interned; may be NULL */
    const char
        *tag;      /* purpose of the step (mb_pool_tag), filled in by mb_ledger_note; may be NULL */
    int64_t keep;  /* growth of the live bytes: results made, or minus the bytes released */
    uint64_t temp; /* scratch without the FFT work areas */
    uint64_t work; /* FFT work areas, where they exceed the scratch */
    uint64_t live; /* after the step */
    uint64_t peak; /* highest live bytes during the step */
} mb_ledger_row;

extern atomic_int mb_ledger_recordings;

/* Will a step on this device be noted? */
static inline bool mb_ledger_on(const mb_device *device)
{
    return atomic_load_explicit(&mb_ledger_recordings, memory_order_relaxed) > 0 && !device->silent;
}

/* Returns the number of the first row that the recording will have. */
uint64_t mb_ledger_begin(void);
/* The number of rows so far. */
uint64_t mb_ledger_count(void);
/* Returns false when the row does not exist. */
bool mb_ledger_get(uint64_t index, mb_ledger_row *row);
/* The last recording to end drops the rows: read them first. */
void mb_ledger_end(void);

/* Notes a step, unless the thread has hushed the ledger. If memory runs out, the row is lost and
** mb_ledger_lost counts it. */
void mb_ledger_note(const mb_device *device, const mb_ledger_row *row);
uint64_t mb_ledger_lost(void);
/* Blocks made and released by this thread belong to a step that is noted as a whole: +1 and -1. */
void mb_ledger_hush(int change);
/* Sets the label of the arrays that the thread makes next; NULL: "array". */
void mb_ledger_label(const char *label);
const char *mb_ledger_current_label(void);

#endif
