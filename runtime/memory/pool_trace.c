/*
** The ring of pool events. To add one takes a clock reading and a copy; reading is rare and slow.
*/
#include "memory/pool_trace.h"
#include "core/clock.h"
#include <stdlib.h>

void mb_pool_trace_create(mb_pool_trace *trace)
{
    trace->ring = calloc(MB_POOL_TRACE_EVENTS, sizeof *trace->ring);
    trace->total = 0;
}

void mb_pool_trace_destroy(mb_pool_trace *trace)
{
    free(trace->ring);
    trace->ring = NULL;
}

uint64_t mb_pool_trace_add(mb_pool_trace *trace, const mb_pool_event *event)
{
    const uint64_t now = mb_now_ns();
    if (!trace->ring)
        return now;
    mb_pool_event *slot = &trace->ring[trace->total++ & (MB_POOL_TRACE_EVENTS - 1)];
    *slot = *event;
    slot->ns = now;
    return now;
}

const mb_pool_event *mb_pool_trace_find(const mb_pool_trace *trace, mb_pool_action action,
                                        uint32_t node, uint32_t generation)
{
    uint64_t kept = trace->total < MB_POOL_TRACE_EVENTS ? trace->total : MB_POOL_TRACE_EVENTS;
    for (uint64_t i = 1; trace->ring && i <= kept; i++) {
        const mb_pool_event *e = &trace->ring[(trace->total - i) & (MB_POOL_TRACE_EVENTS - 1)];
        if (e->action == action && e->node == node && e->generation == generation)
            return e;
    }
    return NULL;
}

uint64_t mb_pool_trace_copy(const mb_pool_trace *trace, mb_pool_event *out, uint64_t room)
{
    uint64_t kept = trace->total < MB_POOL_TRACE_EVENTS ? trace->total : MB_POOL_TRACE_EVENTS;
    if (!trace->ring)
        return 0;
    if (kept > room)
        kept = room;
    for (uint64_t i = 0; i < kept; i++)
        out[i] = trace->ring[(trace->total - kept + i) & (MB_POOL_TRACE_EVENTS - 1)];
    return kept;
}
