/*
** Detection of mistakes: guard words and fill patterns (debug mode), errors for invalid frees, and
** the consistency check of specs.
**
** Guards are a unit of MB_POOL_GUARD_BYTE before and after each block. Patterns: a new block is
** filled with MB_POOL_NEW_BYTE, so that values computed from unwritten memory are NaN; a freed
** block is filled with MB_POOL_FREED_BYTE. Both are written by the source's `fill`, in the order of
** queued work.
**
** The pools of the process are in a list, so that an error can name the pool that a foreign block
** belongs to. The list's lock is taken before a pool's lock, never while one is held.
*/
#include "memory/pool_internal.h"
#include <string.h>

/* ---- guards and patterns ---- */

static char *guard_before(const mb_pool *pool, const node *n)
{
    return pool->base + (uint64_t)n->offset * MB_POOL_UNIT;
}

static char *guard_after(const mb_pool *pool, const node *n)
{
    return guard_before(pool, n) + (uint64_t)(n->units - 1) * MB_POOL_UNIT;
}

static mb_status fill(mb_pool *pool, char *address, int byte, uint64_t bytes)
{
    UNPOISON(pool, address, bytes);
    return pool->source.fill(pool->source.self, address, byte, bytes);
}

mb_status mb_pool_debug_begin(mb_pool *pool, const node *n)
{
    if (!pool->source.fill)
        /* addresses only: guards take room, but have no memory to write to */
        return MB_STATUS_OK;
    if (n->guarded) {
        MB_TRY(fill(pool, guard_before(pool, n), MB_POOL_GUARD_BYTE, MB_POOL_UNIT));
        MB_TRY(fill(pool, guard_after(pool, n), MB_POOL_GUARD_BYTE, MB_POOL_UNIT));
    }
    if (pool->debug & MB_POOL_PATTERNS)
        return fill(pool, pool->base + node_offset(n), MB_POOL_NEW_BYTE, node_bytes(n));
    return MB_STATUS_OK;
}

/* The first damaged byte of a guard, or false. */
static bool guard_is_damaged(mb_pool *pool, const node *n, bool after, mb_pool_damage *found)
{
    unsigned char bytes[MB_POOL_UNIT];
    char *at = after ? guard_after(pool, n) : guard_before(pool, n);
    UNPOISON(pool, at, MB_POOL_UNIT);
    mb_status status = pool->source.read(pool->source.self, bytes, at, MB_POOL_UNIT);
    POISON(pool, at, MB_POOL_UNIT);
    if (status != MB_STATUS_OK)
        return false;
    /* The damaged byte nearest to the block: an overrun begins there. */
    for (unsigned i = 0; i < MB_POOL_UNIT; i++) {
        unsigned place = after ? i : MB_POOL_UNIT - 1 - i;
        if (bytes[place] == MB_POOL_GUARD_BYTE)
            continue;
        *found = (mb_pool_damage){.owner = n->owner,
                                  .offset = node_offset(n),
                                  .bytes = node_bytes(n),
                                  .distance = i,
                                  .value = bytes[place],
                                  .after = after};
        return true;
    }
    return false;
}

void mb_pool_debug_end(mb_pool *pool, const node *n)
{
    MB_KEEP_ERROR; /* a free does not fail because its pattern cannot be written */
    mb_pool_damage found;
    bool sound = true;
    for (int side = 0; n->guarded && pool->source.read && side < 2; side++)
        if (guard_is_damaged(pool, n, side, &found)) {
            found.freed = mb_pool_current_site() ? mb_pool_current_site() : "C";
            if (pool->broken_guards < MB_POOL_KEPT_DAMAGE)
                pool->damage[pool->broken_guards] = found;
            sound = false;
        }
    pool->broken_guards += !sound;
    if ((pool->debug & MB_POOL_PATTERNS) && pool->source.fill)
        (void)fill(pool, pool->base + node_offset(n), MB_POOL_FREED_BYTE, node_bytes(n));
}

mb_status mb_pool_set_debug(mb_pool *pool, unsigned debug)
{
    mb_status status = MB_STATUS_OK;
    pthread_mutex_lock(&pool->lock);
    if (((debug ^ pool->debug) & MB_POOL_GUARDS) && pool->stats.blocks)
        status = mb_fail(MB_STATUS_ARGUMENT, NULL,
                         "guards can be switched only while no block is live; %llu are",
                         (unsigned long long)pool->stats.blocks);
    else
        pool->debug = debug;
    pthread_mutex_unlock(&pool->lock);
    return status;
}

mb_status mb_pool_break_guard(mb_pool *pool, const mb_block *block, bool after, uint32_t distance)
{
    mb_status status = MB_STATUS_OK;
    pthread_mutex_lock(&pool->lock);
    const node *n = node_of(pool, block);
    if (!n || !n->guarded || distance >= MB_POOL_UNIT || !pool->source.fill) {
        status = mb_fail(MB_STATUS_ARGUMENT, NULL, "there is no guard %u bytes %s the block",
                         distance, after ? "after" : "before");
    } else {
        char *at = after ? guard_after(pool, n) + distance
                         : guard_before(pool, n) + MB_POOL_UNIT - 1 - distance;
        status = fill(pool, at, 0, 1);
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

uint64_t mb_pool_broken_guards(mb_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t broken = pool->broken_guards;
    pthread_mutex_unlock(&pool->lock);
    return broken;
}

uint64_t mb_pool_find_damage(mb_pool *pool, mb_pool_damage *out, uint64_t room)
{
    uint64_t count = 0;
    pthread_mutex_lock(&pool->lock);
    for (; count < room && count < pool->broken_guards && count < MB_POOL_KEPT_DAMAGE; count++)
        out[count] = pool->damage[count];
    for (uint32_t i = pool->first; i != NONE && pool->source.read; i = pool->nodes[i].after) {
        const node *n = &pool->nodes[i];
        for (int side = 0; n->state == NODE_LIVE && n->guarded && side < 2; side++)
            if (count < room && guard_is_damaged(pool, n, side, &out[count]))
                count++;
    }
    pthread_mutex_unlock(&pool->lock);
    return count;
}

void mb_pool_fail_nth(mb_pool *pool, uint64_t n)
{
    pthread_mutex_lock(&pool->lock);
    pool->fail_countdown = n;
    pthread_mutex_unlock(&pool->lock);
}

void mb_pool_refuse_commits(mb_pool *pool, uint64_t n)
{
    pthread_mutex_lock(&pool->lock);
    pool->refuse_commits = n;
    pthread_mutex_unlock(&pool->lock);
}

/* ---- invalid frees ---- */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static mb_pool *pools;

void mb_pool_list(mb_pool *pool)
{
    pthread_mutex_lock(&list_lock);
    pool->next = pools;
    pools = pool;
    pthread_mutex_unlock(&list_lock);
}

void mb_pool_unlist(mb_pool *pool)
{
    pthread_mutex_lock(&list_lock);
    for (mb_pool **link = &pools; *link; link = &(*link)->next)
        if (*link == pool) {
            *link = pool->next;
            break;
        }
    pthread_mutex_unlock(&list_lock);
}

typedef struct home {
    bool found;
    char name[32];
    const char *owner;
} home;

/* The other pool in which the handle is a live block, or NULL. */
static home find_home(const mb_pool *stranger, const mb_block *block)
{
    home at = {.found = false};
    pthread_mutex_lock(&list_lock);
    for (mb_pool *pool = pools; pool && !at.found; pool = pool->next) {
        if (pool == stranger)
            continue;
        pthread_mutex_lock(&pool->lock);
        const node *n = node_of(pool, block);
        if (n && n->born == block->born) {
            at.found = true;
            at.owner = n->owner;
            strncpy(at.name, pool->source.name ? pool->source.name : "another device",
                    sizeof at.name - 1);
        }
        pthread_mutex_unlock(&pool->lock);
    }
    pthread_mutex_unlock(&list_lock);
    return at;
}

mb_status mb_pool_fail_free(mb_pool *pool, const mb_block *block)
{
    const char *here = mb_pool_current_site() ? mb_pool_current_site() : "C";
    home at = find_home(pool, block);
    if (at.found)
        return mb_fail(
            MB_STATUS_ARGUMENT, NULL,
            "block %p, freed at %s, is foreign to this pool: it was made at %s in the pool of %s",
            block->address, here, at.owner ? at.owner : "C", at.name);
    pthread_mutex_lock(&pool->lock);
    const mb_pool_event *event =
        mb_pool_trace_find(&pool->trace, MB_POOL_EVENT_ALLOC, block->node, block->generation);
    mb_pool_event made = event ? *event : (mb_pool_event){.owner = "an earlier line"};
    event = mb_pool_trace_find(&pool->trace, MB_POOL_EVENT_FREE, block->node, block->generation);
    bool twice = event && pool->base + event->offset == (char *)block->address;
    mb_pool_event freed = twice ? *event : (mb_pool_event){0};
    bool inside = (char *)block->address >= pool->base &&
                  (char *)block->address < pool->base + pool->stats.reserved;
    pthread_mutex_unlock(&pool->lock);
    if (twice)
        return mb_fail(MB_STATUS_ARGUMENT, NULL,
                       "block %p, freed at %s, was freed again at %s (%llu bytes, made at %s)",
                       block->address, freed.owner ? freed.owner : "C", here,
                       (unsigned long long)freed.bytes, made.owner ? made.owner : "C");
    return mb_fail(MB_STATUS_ARGUMENT, NULL, "block %p, freed at %s, %s", block->address, here,
                   inside ? "is not live in this pool: it was already freed, or was never made"
                          : "is foreign to this pool: no pool made it");
}

/* ---- consistency ---- */

static const char *check_locked(mb_pool *pool)
{
    uint64_t live = 0, blocks = 0, holes = 0, binned = 0;
    uint32_t offset = 0, before = NONE;
    bool past_gap = false;
    int last_state = NODE_LIVE;
    for (uint32_t i = pool->first; i != NONE; before = i, i = pool->nodes[i].after) {
        const node *n = &pool->nodes[i];
        if (n->before != before)
            return "neighbor links disagree";
        if (n->offset != offset)
            return "nodes overlap or leave a gap";
        offset += n->units;
        if (n->state == NODE_GAP) {
            if (i != pool->gap || past_gap)
                return "more than one central gap";
            past_gap = true;
        } else if (n->region != (past_gap ? HIGH : LOW)) {
            return "a node is in the wrong region";
        }
        if (n->state == NODE_HOLE) {
            holes++;
            if (last_state == NODE_HOLE || last_state == NODE_GAP)
                return "neighboring holes were not merged";
        } else if (n->state == NODE_LIVE) {
            live += node_bytes(n);
            blocks++;
        } else if (n->state == NODE_GAP && last_state == NODE_HOLE) {
            return "a hole beside the gap was not merged";
        }
        last_state = n->state;
    }
    if (offset != pool->total_units || !past_gap)
        return "the nodes do not cover the range";
    if (live != pool->stats.live || blocks != pool->stats.blocks ||
        live != pool->stats.live_end[0] + pool->stats.live_end[1])
        return "live bytes or blocks were miscounted";
    for (int region = 0; region < REGIONS; region++)
        for (unsigned b = 0; b < MB_BIN_COUNT; b++) {
            bool marked = pool->holes[region].words[b / 64] >> (b % 64) & 1;
            if (marked != (pool->holes[region].heads[b] != NONE))
                return "a bin's bit is wrong";
            for (uint32_t i = pool->holes[region].heads[b]; i != NONE;
                 i = pool->nodes[i].bin_after, binned++)
                if (pool->nodes[i].state != NODE_HOLE || mb_bin_of(pool->nodes[i].units) != b)
                    return "a bin holds the wrong node";
        }
    return binned == holes ? NULL : "a hole is in no bin";
}

const char *mb_pool_check(mb_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    const char *problem = check_locked(pool);
    pthread_mutex_unlock(&pool->lock);
    return problem;
}
