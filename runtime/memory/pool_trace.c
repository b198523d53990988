/*
** The ring of pool events. An event is written in place; reading is rare and slow.
*/
#include "memory/pool_trace.h"
#include "core/clock.h"
#include <stdlib.h>

void mb_pool_trace_create(mb_pool_trace *trace)
{
    trace->ring = calloc(MB_POOL_TRACE_EVENTS, sizeof *trace->ring);
    trace->total = trace->dated = trace->latest_ns = 0;
}

void mb_pool_trace_destroy(mb_pool_trace *trace)
{
    free(trace->ring);
    trace->ring = NULL;
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

/* Gives the events that were not read before their nanoseconds, which they keep. Ticks of two
** threads may be out of order; times are not. */
static void date(mb_pool_trace *trace, uint64_t kept)
{
    const mb_tick_scale scale = mb_tick_scale_now();
    const uint64_t oldest = trace->total - kept;
    for (uint64_t i = trace->dated > oldest ? trace->dated : oldest; i < trace->total; i++) {
        mb_pool_event *event = &trace->ring[i & (MB_POOL_TRACE_EVENTS - 1)];
        event->ns = mb_ticks_ns(&scale, event->ns);
        if (event->ns < trace->latest_ns)
            event->ns = trace->latest_ns;
        trace->latest_ns = event->ns;
    }
    trace->dated = trace->total;
}

uint64_t mb_pool_trace_copy(mb_pool_trace *trace, mb_pool_event *out, uint64_t room)
{
    uint64_t kept = trace->total < MB_POOL_TRACE_EVENTS ? trace->total : MB_POOL_TRACE_EVENTS;
    if (!trace->ring)
        return 0;
    date(trace, kept);
    if (kept > room)
        kept = room;
    for (uint64_t i = 0; i < kept; i++)
        out[i] = trace->ring[(trace->total - kept + i) & (MB_POOL_TRACE_EVENTS - 1)];
    return kept;
}
