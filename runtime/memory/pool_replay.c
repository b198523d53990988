/*
** Replays of traces: the same allocator runs on address ranges without memory. So the question
** whether a smaller pool would do is answered by trying, not by a formula.
*/
#include "memory/pool.h"
#include <stdlib.h>

/* The limits of a replay's pool: addresses, and memory that is committed on demand. */
typedef struct supply {
    uint64_t addresses, memory, committed;
} supply;

static mb_status reserve(void *self, uint64_t bytes, void **base)
{
    if (bytes > ((const supply *)self)->addresses)
        return mb_fail(MB_STATUS_MEMORY, NULL, "the replay's range is smaller");
    *base = (void *)(uintptr_t)0x10000000000;
    return MB_STATUS_OK;
}

static void unreserve(void *self, void *base, uint64_t bytes)
{
    (void)self, (void)base, (void)bytes;
}

static mb_status commit(void *self, void *base, uint64_t offset, uint64_t bytes)
{
    supply *s = self;
    (void)base, (void)offset;
    if (bytes > s->memory - s->committed)
        return mb_fail(MB_STATUS_MEMORY, NULL, "the replay's memory is smaller");
    s->committed += bytes;
    return MB_STATUS_OK;
}

static void decommit(void *self, void *base, uint64_t offset, uint64_t bytes)
{
    (void)base, (void)offset;
    ((supply *)self)->committed -= bytes;
}

typedef struct step {
    uint64_t bytes; /* 0: a free */
    mb_pool_end end;
    uint64_t made; /* free: the step that made the block */
} step;

/* Keeps allocations and the frees of the blocks that they made. Returns the number of steps. */
static uint64_t plan(const mb_pool_event *events, uint64_t count, step *steps, uint64_t *makers,
                     uint32_t nodes)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < nodes; i++)
        makers[i] = UINT64_MAX;
    for (uint64_t i = 0; i < count; i++) {
        const mb_pool_event *e = &events[i];
        if (e->action == MB_POOL_EVENT_ALLOC) {
            makers[e->node] = used;
            steps[used++] = (step){.bytes = e->bytes, .end = (mb_pool_end)e->end};
        } else if (e->action == MB_POOL_EVENT_FREE && makers[e->node] != UINT64_MAX) {
            steps[used++] = (step){.made = makers[e->node]};
            makers[e->node] = UINT64_MAX;
        }
    }
    return used;
}

/* Do the steps fit this number of bytes? `blocks` has room for one block per step. */
static mb_status fits(const step *steps, uint64_t count, uint64_t bytes, uint64_t granularity,
                      mb_block *blocks, bool *result)
{
    bool on_demand = granularity > 0;
    supply has = {.addresses = on_demand ? UINT64_MAX : bytes, .memory = bytes};
    const mb_pool_source source = {.self = &has,
                                   .reserve = reserve,
                                   .unreserve = unreserve,
                                   .commit = on_demand ? commit : NULL,
                                   .decommit = on_demand ? decommit : NULL,
                                   .granularity = granularity,
                                   .capacity = bytes};
    mb_pool *pool = NULL;
    MB_TRY(mb_pool_create(&source, bytes, &pool));
    mb_status status = MB_STATUS_OK;
    for (uint64_t i = 0; i < count && status == MB_STATUS_OK; i++)
        status = steps[i].bytes
                     ? mb_pool_alloc(pool, steps[i].bytes, steps[i].end, NULL, &blocks[i])
                     : mb_pool_free(pool, &blocks[steps[i].made]);
    mb_pool_destroy(pool);
    *result = status == MB_STATUS_OK;
    return status == MB_STATUS_BUDGET || status == MB_STATUS_MEMORY ? MB_STATUS_OK : status;
}

mb_status mb_pool_smallest(const mb_pool_event *events, uint64_t count, uint64_t granularity,
                           uint64_t *peak, uint64_t *smallest)
{
    uint32_t nodes = 1;
    for (uint64_t i = 0; i < count; i++)
        if (events[i].action != MB_POOL_EVENT_REFUSED && events[i].node >= nodes)
            nodes = events[i].node + 1;
    step *steps = malloc((count + 1) * sizeof *steps);
    mb_block *blocks = malloc((count + 1) * sizeof *blocks);
    uint64_t *makers = malloc(nodes * sizeof *makers);
    mb_status status =
        steps && blocks && makers
            ? MB_STATUS_OK
            : mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for the replay of a trace");
    *peak = *smallest = 0;
    if (status == MB_STATUS_OK) {
        uint64_t used = plan(events, count, steps, makers, nodes), live = 0, made = 0;
        for (uint64_t i = 0; i < used; i++) {
            live = steps[i].bytes ? live + steps[i].bytes : live - steps[steps[i].made].bytes;
            made += steps[i].bytes;
            if (live > *peak)
                *peak = live;
        }
        /* In units or granules: less than the peak never suffices; twice the sum of all blocks
        ** does. */
        uint64_t unit = granularity ? granularity : MB_POOL_UNIT;
        uint64_t low = (*peak + unit - 1) / unit, high = 2 * made / unit + 4;
        while (low < high && status == MB_STATUS_OK) {
            uint64_t middle = low + (high - low) / 2;
            bool enough = false;
            status = fits(steps, used, middle * unit, granularity, blocks, &enough);
            if (enough)
                high = middle;
            else
                low = middle + 1;
        }
        *smallest = used ? high * unit : 0;
    }
    free(steps);
    free(blocks);
    free(makers);
    return status;
}
