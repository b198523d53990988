/*
** Pinned host memory of a device, with its account: a limit, what is live, the highest it was. It
** is apart from the pool, which is memory of the device. On a dry device it is counted and there is
** none. Threads: the account belongs to the thread that uses the device; the memory to whoever has
** it.
*/
#ifndef MB_MEMORY_PINNED_H
#define MB_MEMORY_PINNED_H

#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MB_PINNED_LIMIT (UINT64_C(1) << 30) /* unless set */

typedef struct mb_device mb_device;

typedef struct mb_pinned {
    uint64_t limit, live, peak;
    uint64_t refuse; /* so many requests are refused as the system would: see mb_pinned_refuse */
    /* of a dry device whose memory is not planned: why every request fails; else NULL */
    const char *refusal;
} mb_pinned;

/* Zeroed memory. `owner` as for mb_pool_alloc. Fails with MB_STATUS_BUDGET beyond the limit, and
** where the system refuses it. The addresses of a dry device are different for different
** pieces, and nothing is behind them. */
mb_status mb_pinned_alloc(mb_device *device, uint64_t bytes, const char *owner, void **address);
void mb_pinned_free(mb_device *device, void *address, uint64_t bytes, const char *owner);

/* Failure injection for specs: the next n times that memory is to be pinned, the system refuses. */
void mb_pinned_refuse(mb_device *device, uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
