/*
** The pool's trace: a ring of its latest events, always on. It belongs to one pool and is guarded
** by that pool's lock. Owners are pointers to interned texts, so an event is a plain copy.
*/
#ifndef MB_MEMORY_POOL_TRACE_H
#define MB_MEMORY_POOL_TRACE_H

#include "memory/pool.h"

#define MB_POOL_TRACE_EVENTS 16384u /* a power of two */

typedef struct mb_pool_trace {
    mb_pool_event *ring; /* NULL: it could not be allocated, and nothing is traced */
    uint64_t total;      /* events since the beginning */
} mb_pool_trace;

void mb_pool_trace_create(mb_pool_trace *trace);
void mb_pool_trace_destroy(mb_pool_trace *trace);
/* Adds the event with the present time; returns the time. */
uint64_t mb_pool_trace_add(mb_pool_trace *trace, const mb_pool_event *event);
/* The latest event of this kind for this generation of the node, or NULL. */
const mb_pool_event *mb_pool_trace_find(const mb_pool_trace *trace, mb_pool_action action,
                                        uint32_t node, uint32_t generation);
/* Copies the latest events, oldest first, at most `room`; returns how many. */
uint64_t mb_pool_trace_copy(const mb_pool_trace *trace, mb_pool_event *out, uint64_t room);

#endif
