/*
** The pool's trace: a ring of its latest events, always on. It belongs to one pool and is guarded
** by that pool's lock. Owners are pointers to interned texts, so an event is a plain copy. The time
** of an event is in ticks (core/clock.h) until it is read for the first time, then in nanoseconds.
*/
#ifndef MB_MEMORY_POOL_TRACE_H
#define MB_MEMORY_POOL_TRACE_H

#include "memory/pool.h"

#define MB_POOL_TRACE_EVENTS 16384u /* a power of two */

typedef struct mb_pool_trace {
    mb_pool_event *ring; /* NULL: it could not be allocated, and nothing is traced */
    uint64_t total;      /* events since the beginning */
    uint64_t dated;      /* the first of them, which have nanoseconds */
    uint64_t latest_ns;  /* the time of the last of those */
    mb_pool_event spare; /* where events are written if there is no ring */
} mb_pool_trace;

void mb_pool_trace_create(mb_pool_trace *trace);
void mb_pool_trace_destroy(mb_pool_trace *trace);
/* The place of the next event: all its members are to be set. */
static inline mb_pool_event *mb_pool_trace_next(mb_pool_trace *trace)
{
    return trace->ring ? &trace->ring[trace->total++ & (MB_POOL_TRACE_EVENTS - 1)] : &trace->spare;
}
/* The latest event of this kind for this generation of the node, or NULL. */
const mb_pool_event *mb_pool_trace_find(const mb_pool_trace *trace, mb_pool_action action,
                                        uint32_t node, uint32_t generation);
/* Copies the latest events, oldest first, at most `room`; returns how many. */
uint64_t mb_pool_trace_copy(mb_pool_trace *trace, mb_pool_event *out, uint64_t room);

#endif
