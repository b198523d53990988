/*
** Pinned host memory of a device, with its account: a limit, the live bytes and their peak. It is
** separate from the pool, which is memory of the device. On a dry device it is counted but not
** allocated. Threads: the account belongs to the thread that uses the device, the memory to its
** owner.
*/
#ifndef MB_MEMORY_PINNED_H
#define MB_MEMORY_PINNED_H

#include "core/status.h"

#define MB_PINNED_LIMIT (UINT64_C(1) << 30) /* unless set */

typedef struct mb_device mb_device;

typedef struct mb_pinned {
    uint64_t limit, live, peak;
    uint64_t refuse; /* how many requests to refuse as the system would (mb_pinned_refuse) */
    /* on a dry device whose memory is not planned: why every request fails; else NULL */
    const char *refusal;
} mb_pinned;

/* Returns zeroed memory. `owner` as for mb_pool_alloc. Fails with MB_STATUS_BUDGET beyond the
** limit, and if the system refuses the memory. A dry device gives each piece other addresses,
** without memory. */
mb_status mb_pinned_alloc(mb_device *device, uint64_t bytes, const char *owner, void **address);
void mb_pinned_free(mb_device *device, void *address, uint64_t bytes, const char *owner);
/* The same for the account alone; mb_device_unpin is for the memory. */
void mb_pinned_forget(mb_device *device, uint64_t bytes, const char *owner);

/* Failure injection for specs: the next n requests fail as if the system refused them. */
void mb_pinned_refuse(mb_device *device, uint64_t n);

#endif
