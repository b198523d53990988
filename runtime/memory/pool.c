/*
** The pool's allocator. Nodes describe the address range from low to high without gaps: low region
** (arrays and their holes), the central gap (one node, always there, possibly empty), high region
** (scratch and its holes). A hole touching the gap is part of the gap. Holes of each region are
** binned by size (pool_bins.h). Node indices are stable; a node's generation changes when it is
** freed, so a stale handle is recognized.
*/
#include "core/clock.h"
#include "memory/pool_internal.h"
#include <stdlib.h>
#include <string.h>

#define OWN_CLASS_SCAN                                                                             \
    8 /* blocks of the request's own class that are examined before the next class is used */

uint64_t mb_pool_round(uint64_t bytes)
{
    uint64_t padded;
    if (!mb_add_u64(bytes, MB_POOL_UNIT - 1, &padded))
        return UINT64_MAX;
    return padded / MB_POOL_UNIT * MB_POOL_UNIT;
}

/* ---- nodes and bins ---- */

static mb_status nodes_reserve(mb_pool *pool, uint32_t extra)
{
    if (pool->node_count + extra <= pool->node_room)
        return MB_STATUS_OK;
    uint32_t room = pool->node_room ? pool->node_room * 2 : 256;
    node *nodes = realloc(pool->nodes, room * sizeof *nodes);
    if (!nodes)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no memory for the pool's own records");
    pool->nodes = nodes;
    pool->node_room = room;
    return MB_STATUS_OK;
}

/* Never fails after nodes_reserve. The caller sets all but the generation and the bin's links. */
static uint32_t node_take(mb_pool *pool)
{
    uint32_t index = pool->unused;
    if (index != NONE) {
        pool->unused = pool->nodes[index].bin_after;
    } else {
        index = pool->node_count++;
        pool->nodes[index].generation = 0;
    }
    pool->nodes[index].bin_before = pool->nodes[index].bin_after = NONE;
    return index;
}

static void node_drop(mb_pool *pool, uint32_t index)
{
    node *n = &pool->nodes[index];
    n->state = NODE_UNUSED;
    n->generation++;
    n->bin_after = pool->unused;
    pool->unused = index;
}

/* Makes two nodes neighbors; NONE is an end of the range. */
static void join(mb_pool *pool, uint32_t before, uint32_t after)
{
    if (before != NONE)
        pool->nodes[before].after = after;
    else
        pool->first = after;
    if (after != NONE)
        pool->nodes[after].before = before;
}

static void link_between(mb_pool *pool, uint32_t before, uint32_t index, uint32_t after)
{
    join(pool, before, index);
    join(pool, index, after);
}

static void bin_insert(mb_pool *pool, uint32_t index)
{
    node *nodes = pool->nodes, *n = &nodes[index];
    hole_bins *holes = &pool->holes[n->region];
    const unsigned bin = mb_bin_of(n->units);
    const uint32_t head = holes->heads[bin];
    n->bin_before = NONE;
    n->bin_after = head;
    if (head != NONE)
        nodes[head].bin_before = index;
    holes->heads[bin] = index;
    holes->words[bin / 64] |= UINT64_C(1) << (bin % 64);
}

static void bin_remove(mb_pool *pool, uint32_t index)
{
    node *nodes = pool->nodes, *n = &nodes[index];
    const uint32_t before = n->bin_before, after = n->bin_after;
    if (before != NONE) {
        nodes[before].bin_after = after;
    } else {
        hole_bins *holes = &pool->holes[n->region];
        const unsigned bin = mb_bin_of(n->units);
        holes->heads[bin] = after;
        if (after == NONE)
            holes->words[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
    }
    if (after != NONE)
        nodes[after].bin_before = before;
    n->bin_before = n->bin_after = NONE;
}

/* The hole of a region that fits best among the candidates, or NONE when no hole fits. */
static uint32_t bin_find(const mb_pool *pool, int region, uint32_t units)
{
    const node *nodes = pool->nodes;
    const hole_bins *holes = &pool->holes[region];
    const unsigned own = mb_bin_of(units);
    uint32_t best = NONE, index = holes->heads[own];
    for (int seen = 0; index != NONE && seen < OWN_CLASS_SCAN;
         index = nodes[index].bin_after, seen++)
        if (nodes[index].units >= units && (best == NONE || nodes[index].units < nodes[best].units))
            best = index;
    if (best != NONE)
        return best;
    const unsigned bin = mb_bin_next(holes->words, own + 1);
    if (bin < MB_BIN_COUNT)
        return holes->heads[bin];
    for (; index != NONE;
         index = nodes[index].bin_after) /* last: the rest of the request's class */
        if (nodes[index].units >= units)
            return index;
    return NONE;
}

/* ---- reach ---- */

/* Where the gap lies says how far the ends reach now. Called when a block was carved from it. */
static inline void note_reach(mb_pool *pool)
{
    const node *gap = &pool->nodes[pool->gap];
    const uint64_t low = (uint64_t)gap->offset * MB_POOL_UNIT;
    const uint64_t high = (uint64_t)(pool->total_units - gap->offset - gap->units) * MB_POOL_UNIT;
    if (low > pool->stats.reach[MB_POOL_ARRAY])
        pool->stats.reach[MB_POOL_ARRAY] = low;
    if (high > pool->stats.reach[MB_POOL_SCRATCH])
        pool->stats.reach[MB_POOL_SCRATCH] = high;
}

static void reset_reach(mb_pool *pool)
{
    pool->stats.reach[MB_POOL_ARRAY] = pool->stats.reach[MB_POOL_SCRATCH] = 0;
    note_reach(pool);
}

void mb_pool_reset_reach(mb_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    reset_reach(pool);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- commitment ---- */

/* Granules: all that the first `low` and the last `high` bytes of the range touch. */
typedef struct ends {
    uint64_t low, high; /* granules below `low`, and those from `high` on */
} ends;

static ends no_ends(const mb_pool *pool)
{
    return (ends){0, pool->granules};
}

/* Gives back the committed memory of holes, apart from that of `kept`. */
static uint64_t trim_locked(mb_pool *pool, ends kept)
{
    if (!pool->source.decommit)
        return 0;
    uint64_t given_back = 0, size = pool->source.granularity;
    for (uint32_t i = pool->first; i != NONE; i = pool->nodes[i].after) {
        const node *n = &pool->nodes[i];
        if (n->state != NODE_HOLE && n->state != NODE_GAP)
            continue;
        uint64_t begin = (uint64_t)n->offset * MB_POOL_UNIT,
                 end = begin + (uint64_t)n->units * MB_POOL_UNIT;
        uint64_t granule = (begin + size - 1) / size, last = end / size;
        granule = granule > kept.low ? granule : kept.low;
        last = last < kept.high ? last : kept.high;
        while (granule < last) {
            if (!pool->committed[granule]) {
                granule++;
                continue;
            }
            uint64_t run = granule;
            while (run < last && pool->committed[run])
                pool->committed[run++] = 0;
            UNPOISON(pool, pool->base + granule * size,
                     (run - granule) * size); /* for what is mapped here next */
            pool->source.decommit(pool->source.self, pool->base, granule * size,
                                  (run - granule) * size);
            given_back += (run - granule) * size;
            granule = run;
        }
    }
    pool->stats.committed -= given_back;
    return given_back;
}

static mb_status commit_once(mb_pool *pool, uint64_t first, uint64_t last)
{
    uint64_t size = pool->source.granularity;
    for (uint64_t granule = first; granule < last;) {
        if (pool->committed[granule]) {
            granule++;
            continue;
        }
        uint64_t run = granule;
        while (run < last && !pool->committed[run])
            run++;
        if (pool->refuse_commits && pool->refuse_commits--)
            return mb_fail(MB_STATUS_MEMORY, NULL,
                           "the system refused %llu bytes: injected for a test",
                           (unsigned long long)((run - granule) * size));
        MB_TRY(pool->source.commit(pool->source.self, pool->base, granule * size,
                                   (run - granule) * size));
        memset(pool->committed + granule, 1, run - granule);
        pool->stats.committed += (run - granule) * size;
        granule = run;
    }
    return MB_STATUS_OK;
}

static uint64_t missing_granules(const mb_pool *pool, uint64_t first, uint64_t last)
{
    uint64_t missing = 0;
    for (uint64_t g = first; g < last; g++)
        missing += !pool->committed[g];
    return missing;
}

static mb_status commit_locked(mb_pool *pool, uint64_t begin, uint64_t bytes)
{
    if (!pool->source.commit)
        return MB_STATUS_OK;
    const uint64_t size = pool->source.granularity, end = begin + bytes;
    uint64_t first = begin / size;
    while (first * size < end && pool->committed[first])
        first++;
    if (first * size >= end)
        return MB_STATUS_OK;
    const uint64_t last = (end + size - 1) / size;
    const uint64_t missing = missing_granules(pool, first, last);
    if (pool->stats.committed + missing * size > pool->stats.budget)
        trim_locked(pool, no_ends(pool)); /* before the process exceeds its budget */
    mb_status status = commit_once(pool, first, last);
    if (status == MB_STATUS_MEMORY && trim_locked(pool, no_ends(pool)))
        status = commit_once(pool, first, last);
    return status;
}

static mb_status commit_ends_once(mb_pool *pool, ends wanted)
{
    MB_TRY(commit_once(pool, 0, wanted.low));
    return commit_once(pool, wanted.high, pool->granules);
}

static mb_status commit_ends(mb_pool *pool, uint64_t low, uint64_t high)
{
    if (!pool->source.commit)
        return MB_STATUS_OK;
    const uint64_t size = pool->source.granularity;
    ends wanted = {(low + size - 1) / size, (pool->stats.reserved - high) / size};
    if (wanted.high < wanted.low)
        wanted.high = wanted.low;
    const uint64_t missing =
        missing_granules(pool, 0, wanted.low) + missing_granules(pool, wanted.high, pool->granules);
    if (missing && pool->stats.committed + missing * size > pool->stats.budget)
        trim_locked(pool, wanted);
    mb_status status = commit_ends_once(pool, wanted);
    if (status == MB_STATUS_MEMORY && trim_locked(pool, wanted))
        status = commit_ends_once(pool, wanted);
    return status;
}

/* ---- creation ---- */

mb_status mb_pool_create(const mb_pool_source *source, uint64_t budget, mb_pool **out)
{
    mb_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no memory for the pool's own records");
    mb_ticks_begin();
    pool->source = *source;
    pool->unused = pool->first = NONE;
    for (int r = 0; r < REGIONS; r++)
        for (int b = 0; b < MB_BIN_COUNT; b++)
            pool->holes[r].heads[b] = NONE;
    uint64_t size = source->granularity > MB_POOL_UNIT ? source->granularity : MB_POOL_UNIT;
    pool->source.granularity = size;
    uint64_t wanted = mb_bytes_mul(2, budget > source->capacity ? budget : source->capacity);
    uint64_t most = (uint64_t)(UINT32_MAX - 1) * MB_POOL_UNIT / size * size;
    mb_status status = MB_STATUS_OK;
    uint64_t range = wanted > most ? most : (wanted + size - 1) / size * size;
    if (range < size)
        range = size;
    const uint64_t least = budget < size   ? size
                           : budget > most ? most
                                           : (budget + size - 1) / size * size;
    void *base = NULL;
    for (;;) { /* address space can be limited: halve the range, down to the budget */
        status = source->reserve(source->self, range, &base);
        if (status == MB_STATUS_OK || range <= least)
            break;
        range = range / 2 < least ? least : range / 2 / size * size;
    }
    if (status != MB_STATUS_OK)
        goto fail;
    pool->base = base;
    pool->total_units = (uint32_t)(range / MB_POOL_UNIT);
    pool->granules = range / size;
    pool->committed = calloc(pool->granules, 1);
    if (!pool->committed) {
        status = mb_fail(MB_STATUS_MEMORY, NULL, "no memory for the pool's own records");
        goto fail_range;
    }
    status = nodes_reserve(pool, 1);
    if (status != MB_STATUS_OK)
        goto fail_range;
    pool->gap = node_take(pool);
    pool->nodes[pool->gap] = (node){
        .units = pool->total_units, .state = NODE_GAP, .bin_before = NONE, .bin_after = NONE};
    link_between(pool, NONE, pool->gap, NONE);
    pool->stats.budget = budget;
    pool->stats.reserved = range;
    pthread_mutex_init(&pool->lock, NULL);
    mb_pool_trace_create(&pool->trace);
    mb_pool_list(pool);
    *out = pool;
    return MB_STATUS_OK;
fail_range:
    source->unreserve(source->self, base, range);
fail:
    free(pool->nodes);
    free(pool->committed);
    free(pool);
    return status;
}

/* Sets the budget of a clone with this room. Its address range grows at the gap, which is possible
** while no block lies behind the gap. */
static void set_room(mb_pool *clone, uint64_t room)
{
    const uint64_t most = (uint64_t)(UINT32_MAX - 1) * MB_POOL_UNIT;
    clone->unlimited = room == MB_POOL_UNLIMITED;
    uint64_t budget = mb_bytes_add(clone->stats.live, room);
    budget = budget < most ? budget : most;
    if (budget > clone->stats.reserved / 2 && clone->nodes[clone->gap].after == NONE) {
        uint64_t wanted = budget > most / 2 ? most : 2 * budget;
        uint32_t units = (uint32_t)(wanted / MB_POOL_UNIT);
        if (units > clone->total_units) {
            clone->nodes[clone->gap].units += units - clone->total_units;
            clone->total_units = units;
            clone->stats.reserved = (uint64_t)units * MB_POOL_UNIT;
        }
    }
    clone->stats.budget = budget < clone->stats.reserved ? budget : clone->stats.reserved;
}

mb_status mb_pool_clone(mb_pool *pool, const mb_pool_source *source, uint64_t room, mb_pool **out)
{
    mb_pool *clone = malloc(sizeof *clone);
    if (!clone)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no memory for the pool's own records");
    pthread_mutex_lock(&pool->lock);
    *clone = *pool;
    clone->nodes = malloc(pool->node_room * sizeof *clone->nodes);
    if (clone->nodes)
        memcpy(clone->nodes, pool->nodes, pool->node_count * sizeof *clone->nodes);
    pthread_mutex_unlock(&pool->lock);
    if (!clone->nodes) {
        free(clone);
        return mb_fail(MB_STATUS_MEMORY, NULL, "no memory for the pool's own records");
    }
    clone->source = *source;
    clone->source.granularity = pool->source.granularity;
    clone->source.capacity = pool->source.capacity;
    clone->source.commit = NULL;
    clone->source.decommit = NULL;
    clone->committed = NULL;
    clone->granules = 0;
    clone->stats.committed = 0;
    memset(clone->scopes, 0, sizeof clone->scopes);
    clone->scope_top = 0;
    clone->broken_guards = 0;
    clone->fail_countdown = clone->refuse_commits = 0;
    clone->refusal = NULL;
    clone->stats.live_peak = clone->stats.live;
    if (room != MB_POOL_SAME)
        set_room(clone, room);
    reset_reach(clone);
    pthread_mutex_init(&clone->lock, NULL);
    mb_pool_trace_create(&clone->trace);
    mb_pool_list(clone);
    *out = clone;
    return MB_STATUS_OK;
}

uint64_t mb_pool_destroy(mb_pool *pool)
{
    if (!pool)
        return 0;
    mb_pool_unlist(pool);
    uint64_t left = pool->stats.blocks;
    if (pool->source.decommit) {
        uint64_t size = pool->source.granularity;
        for (uint64_t g = 0; g < pool->granules;) {
            uint64_t run = g;
            while (run < pool->granules && pool->committed[run])
                run++;
            if (run > g) {
                UNPOISON(pool, pool->base + g * size, (run - g) * size);
                pool->source.decommit(pool->source.self, pool->base, g * size, (run - g) * size);
            }
            g = run + 1;
        }
    }
    pool->source.unreserve(pool->source.self, pool->base, pool->stats.reserved);
    pthread_mutex_destroy(&pool->lock);
    mb_pool_trace_destroy(&pool->trace);
    free(pool->nodes);
    free(pool->committed);
    free(pool);
    return left;
}

/* ---- allocation ---- */

static uint64_t largest_hole_units(mb_pool *pool)
{
    uint64_t most = pool->nodes[pool->gap].units;
    for (int region = 0; region < REGIONS; region++) {
        unsigned bin = mb_bin_last(pool->holes[region].words);
        if (bin == MB_BIN_COUNT)
            continue;
        for (uint32_t i = pool->holes[region].heads[bin]; i != NONE; i = pool->nodes[i].bin_after)
            if (pool->nodes[i].units > most)
                most = pool->nodes[i].units;
    }
    return most;
}

static uint64_t largest_request(mb_pool *pool)
{
    uint64_t hole = largest_hole_units(pool) * MB_POOL_UNIT;
    uint64_t left =
        pool->stats.budget > pool->stats.live ? pool->stats.budget - pool->stats.live : 0;
    left = left / MB_POOL_UNIT * MB_POOL_UNIT;
    return hole < left ? hole : left;
}

static void set_enough(const mb_pool *pool, uint64_t enough)
{
    mb_error_budget()->enough_bytes = enough;
    mb_error_budget()->total_bytes = pool->source.capacity;
}

/* Records that the request does not fit: the budget, or the address range. */
static mb_status fail_budget(mb_pool *pool, uint64_t rounded)
{
    char need[32], live[32], budget[32], hole[32];
    const uint64_t limit = pool->stats.budget, enough = mb_bytes_add(pool->stats.live, rounded);
    pool->stats.failures++;
    mb_bytes_format_like(rounded, limit, need, sizeof need);
    mb_bytes_format_like(pool->stats.live, limit, live, sizeof live);
    mb_bytes_format(limit, budget, sizeof budget);
    if (enough <= limit) {
        mb_fail_bytes(
            MB_STATUS_BUDGET, rounded, limit,
            "%s fit the budget of %s, but no free range of addresses is that large: the largest "
            "has %s",
            need, budget, mb_bytes_format_like(largest_request(pool), limit, hole, sizeof hole));
        mb_error_remedy("release arrays that lie between the free ranges");
    } else if (pool->unlimited) {
        mb_fail_bytes(MB_STATUS_BUDGET, rounded, limit,
                      "%s and the %s already live exceed the %s of addresses that a plan has", need,
                      live, budget);
        set_enough(pool, enough);
    } else {
        mb_fail_bytes(MB_STATUS_BUDGET, rounded, limit, "%s do not fit: %s live of a budget of %s",
                      need, live, budget);
        set_enough(pool, enough);
    }
    return MB_STATUS_BUDGET;
}

/* The system or driver refused memory that the budget allows: turns that error, which is on
** record, into a budget failure. */
static mb_status fail_refused(mb_pool *pool, uint64_t rounded)
{
    char need[32], live[32], budget[32];
    mb_fail_bytes(MB_STATUS_BUDGET, rounded, pool->stats.budget,
                  "%s fit the budget (%s of %s are live), but the device does not have that much "
                  "memory free: %s",
                  mb_bytes_format_like(rounded, pool->stats.budget, need, sizeof need),
                  mb_bytes_format_like(pool->stats.live, pool->stats.budget, live, sizeof live),
                  mb_bytes_format(pool->stats.budget, budget, sizeof budget),
                  mb_error_last()->text);
    mb_error_remedy("end other programs that use this memory, or set a smaller budget, so that "
                    "work is done in smaller chunks");
    return MB_STATUS_BUDGET;
}

/* Takes `units` out of a hole or of the gap, at its low or its high side, as a new live node. */
static uint32_t carve(mb_pool *pool, uint32_t from, uint32_t units, bool high_side)
{
    node *source = &pool->nodes[from];
    if (source->state == NODE_HOLE) {
        bin_remove(pool, from);
        if (source->units == units)
            return from;
    }
    uint32_t index = node_take(pool); /* room was reserved, so `source` stays valid */
    node *taken = &pool->nodes[index];
    taken->units = units;
    source->units -= units;
    if (high_side) {
        taken->offset = source->offset + source->units;
        link_between(pool, from, index, source->after);
    } else {
        taken->offset = source->offset;
        source->offset += units;
        link_between(pool, source->before, index, from);
    }
    if (source->state == NODE_HOLE) {
        taken->region = source->region;
        bin_insert(pool, from);
    } else {
        taken->region = high_side ? HIGH : LOW;
    }
    return index;
}

static void merge_into(mb_pool *pool, uint32_t keep, uint32_t gone)
{
    node *k = &pool->nodes[keep], *g = &pool->nodes[gone];
    if (g->offset < k->offset)
        k->offset = g->offset;
    k->units += g->units;
    join(pool, g->before, g->after);
    node_drop(pool, gone);
}

/* Turns a live node into a hole, merged with its neighbors. */
static void release_node(mb_pool *pool, uint32_t index)
{
    node *nodes = pool->nodes, *n = &nodes[index];
    const uint32_t before = n->before, after = n->after;
    n->state = NODE_HOLE;
    n->generation++;
    n->owner = NULL;
    if (before != NONE && nodes[before].state == NODE_HOLE) {
        bin_remove(pool, before);
        merge_into(pool, index, before);
    }
    if (after != NONE && nodes[after].state == NODE_HOLE) {
        bin_remove(pool, after);
        merge_into(pool, index, after);
    }
    if (n->before == pool->gap || n->after == pool->gap)
        merge_into(pool, pool->gap, index);
    else
        bin_insert(pool, index);
}

/* Returns the time, in ticks. */
static inline uint64_t trace(mb_pool *pool, mb_pool_action action, uint32_t index, uint32_t thread,
                             const char *owner)
{
    const node *n = &pool->nodes[index];
    const uint64_t now = mb_ticks();
    *mb_pool_trace_next(&pool->trace) = (mb_pool_event){.ns = now,
                                                        .offset = node_offset(n),
                                                        .bytes = node_bytes(n),
                                                        .live = pool->stats.live,
                                                        .owner = owner,
                                                        .tag = n->tag,
                                                        .node = index,
                                                        .generation = n->generation,
                                                        .thread = thread,
                                                        .end = n->end,
                                                        .action = (uint8_t)action};
    return now;
}

static mb_status alloc_locked(mb_pool *pool, uint64_t bytes, mb_pool_end end, const char *owner,
                              mb_block *out)
{
    uint64_t rounded = mb_pool_round(bytes);
    if (pool->refusal)
        return mb_fail(MB_STATUS_ARGUMENT, "device", "%s", pool->refusal);
    if (pool->fail_countdown && --pool->fail_countdown == 0) {
        pool->stats.failures++;
        return mb_fail_bytes(MB_STATUS_MEMORY, rounded, 0,
                             "allocation failure injected for a test");
    }
    if (rounded > pool->stats.budget || pool->stats.live > pool->stats.budget - rounded)
        return fail_budget(pool, rounded);
    uint64_t span = rounded / MB_POOL_UNIT + (pool->debug & MB_POOL_GUARDS ? 2 : 0);
    if (span > pool->total_units)
        return fail_budget(pool, rounded);
    MB_TRY(nodes_reserve(pool, 1));
    uint32_t units = (uint32_t)span;
    int own = end == MB_POOL_ARRAY ? LOW : HIGH, other = own == LOW ? HIGH : LOW;
    bool high_side = own == HIGH;
    uint32_t from = bin_find(pool, own, units);
    if (from == NONE && pool->nodes[pool->gap].units >= units)
        from = pool->gap;
    if (from == NONE) {
        from = bin_find(pool, other, units);
        if (from == NONE)
            return fail_budget(pool, rounded);
        pool->stats.cross_end++;
    }
    uint32_t index = carve(pool, from, units, high_side);
    node *n = &pool->nodes[index];
    n->state = NODE_LIVE;
    n->end = (uint8_t)end;
    n->guarded = pool->debug & MB_POOL_GUARDS ? 1 : 0;
    n->requested = bytes;
    n->pitch_waste = 0;
    n->owner = owner;
    n->tag = mb_pool_current_tag();
    n->thread = mb_pool_thread();
    n->sequence = pool->stats.allocs;
    mb_status status =
        commit_locked(pool, (uint64_t)n->offset * MB_POOL_UNIT, (uint64_t)units * MB_POOL_UNIT);
    if (status == MB_STATUS_OK && pool->debug)
        status = mb_pool_debug_begin(pool, n);
    if (status != MB_STATUS_OK) {
        release_node(pool, index);
        pool->stats.failures++;
        return status == MB_STATUS_MEMORY ? fail_refused(pool, rounded) : status;
    }
    out->address = pool->base + node_offset(n);
    out->bytes = rounded;
    out->node = index;
    out->generation = n->generation;
    POISON(pool, pool->base + (uint64_t)n->offset * MB_POOL_UNIT, (uint64_t)units * MB_POOL_UNIT);
    UNPOISON(pool, out->address, bytes);
    pool->stats.live += rounded;
    pool->stats.live_end[end] += rounded;
    pool->stats.requested += bytes;
    pool->stats.blocks++;
    pool->stats.allocs++;
    if (pool->stats.live > pool->stats.live_peak)
        pool->stats.live_peak = pool->stats.live;
    if (from == pool->gap)
        note_reach(pool);
    mb_pool_scopes_note(pool, n->thread, (int64_t)rounded);
    out->born = n->born = trace(pool, MB_POOL_EVENT_ALLOC, index, n->thread, owner);
    return MB_STATUS_OK;
}

static void trace_refused(mb_pool *pool, uint64_t bytes, mb_pool_end end, const char *owner)
{
    *mb_pool_trace_next(&pool->trace) = (mb_pool_event){.ns = mb_ticks(),
                                                        .bytes = mb_pool_round(bytes),
                                                        .live = pool->stats.live,
                                                        .owner = owner,
                                                        .tag = mb_pool_current_tag(),
                                                        .node = NONE,
                                                        .thread = mb_pool_thread(),
                                                        .end = (uint8_t)end,
                                                        .action = MB_POOL_EVENT_REFUSED};
}

mb_status mb_pool_alloc(mb_pool *pool, uint64_t bytes, mb_pool_end end, const char *owner,
                        mb_block *out)
{
    *out = (mb_block){.node = NONE};
    if (!bytes)
        return MB_STATUS_OK;
    pthread_mutex_lock(&pool->lock);
    mb_status status = alloc_locked(pool, bytes, end, owner, out);
    if (status != MB_STATUS_OK)
        trace_refused(pool, bytes, end, owner);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

mb_status mb_pool_fits(mb_pool *pool, uint64_t bytes, const char *owner)
{
    mb_status status = MB_STATUS_OK;
    pthread_mutex_lock(&pool->lock);
    const uint64_t room =
        pool->stats.budget > pool->stats.live ? pool->stats.budget - pool->stats.live : 0;
    if (bytes > room) {
        status = pool->refusal ? mb_fail(MB_STATUS_ARGUMENT, "device", "%s", pool->refusal)
                               : fail_budget(pool, bytes);
        trace_refused(pool, bytes, MB_POOL_ARRAY, owner);
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

void mb_pool_refuse(mb_pool *pool, const char *text)
{
    pthread_mutex_lock(&pool->lock);
    pool->refusal = text;
    pthread_mutex_unlock(&pool->lock);
}

mb_status mb_pool_free(mb_pool *pool, mb_block *block)
{
    if (!block->address && block->node == NONE)
        return MB_STATUS_OK;
    pthread_mutex_lock(&pool->lock);
    const node *n = node_of(pool, block);
    if (!n) {
        pthread_mutex_unlock(&pool->lock);
        return mb_pool_fail_free(pool, block);
    }
    if (pool->debug || n->guarded)
        mb_pool_debug_end(pool, n);
    POISON(pool, pool->base + (uint64_t)n->offset * MB_POOL_UNIT,
           (uint64_t)n->units * MB_POOL_UNIT);
    uint64_t rounded = node_bytes(n);
    pool->stats.live -= rounded;
    pool->stats.live_end[n->end] -= rounded;
    pool->stats.requested -= n->requested;
    pool->stats.pitch_waste -= n->pitch_waste;
    pool->stats.blocks--;
    pool->stats.frees++;
    mb_pool_scopes_note(pool, n->thread, -(int64_t)rounded);
    trace(pool, MB_POOL_EVENT_FREE, block->node, mb_pool_thread(), mb_pool_current_site());
    release_node(pool, block->node);
    *block = (mb_block){.node = NONE};
    pthread_mutex_unlock(&pool->lock);
    return MB_STATUS_OK;
}

void mb_pool_note_pitch(mb_pool *pool, const mb_block *block, uint64_t waste)
{
    pthread_mutex_lock(&pool->lock);
    if (node_of(pool, block)) {
        node *n = &pool->nodes[block->node];
        pool->stats.pitch_waste += waste - n->pitch_waste;
        n->pitch_waste = waste;
    }
    pthread_mutex_unlock(&pool->lock);
}

/* ---- settings and figures ---- */

mb_status mb_pool_set_budget(mb_pool *pool, uint64_t budget)
{
    char live[32], asked[32], reserved[32];
    mb_status status = MB_STATUS_OK;
    pthread_mutex_lock(&pool->lock);
    if (budget < pool->stats.live)
        status =
            mb_fail_bytes(MB_STATUS_ARGUMENT, pool->stats.live, budget,
                          "a budget of %s is less than the %s that are live; release arrays first",
                          mb_bytes_format(budget, asked, sizeof asked),
                          mb_bytes_format_like(pool->stats.live, budget, live, sizeof live));
    else if (budget > pool->stats.reserved)
        status = mb_fail_bytes(
            MB_STATUS_ARGUMENT, budget, pool->stats.reserved,
            "a budget of %s exceeds the pool's address range of %s, which is twice the memory "
            "of the device, or less under a limit (ulimit -v)",
            mb_bytes_format(budget, asked, sizeof asked),
            mb_bytes_format_like(pool->stats.reserved, budget, reserved, sizeof reserved));
    else
        pool->stats.budget = budget;
    pthread_mutex_unlock(&pool->lock);
    return status;
}

mb_status mb_pool_activate(mb_pool *pool, uint64_t low, uint64_t high)
{
    const uint64_t bytes = mb_bytes_add(mb_pool_round(low), mb_pool_round(high));
    mb_status status = MB_STATUS_OK;
    pthread_mutex_lock(&pool->lock);
    if (bytes > pool->stats.budget) {
        char asked[32], budget[32];
        status =
            mb_fail_bytes(MB_STATUS_BUDGET, bytes, pool->stats.budget, "%s exceed the budget of %s",
                          mb_bytes_format_like(bytes, pool->stats.budget, asked, sizeof asked),
                          mb_bytes_format(pool->stats.budget, budget, sizeof budget));
        set_enough(pool, bytes);
    } else {
        status = commit_ends(pool, low, high);
        if (status == MB_STATUS_MEMORY)
            status = fail_refused(pool, bytes);
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

uint64_t mb_pool_trim(mb_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t bytes = trim_locked(pool, no_ends(pool));
    pthread_mutex_unlock(&pool->lock);
    return bytes;
}

void mb_pool_get_stats(mb_pool *pool, mb_pool_stats *stats)
{
    pthread_mutex_lock(&pool->lock);
    *stats = pool->stats;
    stats->largest_hole = largest_request(pool);
    stats->free_bytes = stats->budget > stats->live ? stats->budget - stats->live : 0;
    stats->events = pool->trace.total;
    pthread_mutex_unlock(&pool->lock);
}

uint64_t mb_pool_live(mb_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t live = pool->stats.live;
    pthread_mutex_unlock(&pool->lock);
    return live;
}

uint64_t mb_pool_events(mb_pool *pool, mb_pool_event *out, uint64_t room)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t count = mb_pool_trace_copy(&pool->trace, out, room);
    pthread_mutex_unlock(&pool->lock);
    return count;
}

uint64_t mb_pool_offset(const mb_pool *pool, const mb_block *block)
{
    return (uint64_t)((char *)block->address - pool->base);
}

void mb_pool_each(mb_pool *pool, mb_pool_visit visit, void *user)
{
    pthread_mutex_lock(&pool->lock);
    const mb_tick_scale scale = mb_tick_scale_now();
    for (uint32_t i = pool->first; i != NONE; i = pool->nodes[i].after) {
        const node *n = &pool->nodes[i];
        if (n->state == NODE_LIVE)
            visit(user, &(mb_pool_block){.offset = node_offset(n),
                                         .bytes = node_bytes(n),
                                         .requested = n->requested,
                                         .pitch_waste = n->pitch_waste,
                                         .sequence = n->sequence,
                                         .born_ns = mb_ticks_ns(&scale, n->born),
                                         .end = (mb_pool_end)n->end,
                                         .thread = n->thread,
                                         .owner = n->owner,
                                         .tag = n->tag});
    }
    pthread_mutex_unlock(&pool->lock);
}
