/*
** What specs of the pool cannot do from Lua: threads, and blocks given back to the wrong pool. The
** build makes it a program, spec/memory/pool_native_spec.lua runs it. One argument names the test;
** it prints what went wrong and ends with status 1, or "ok".
**
**   oracle STEPS SEED    random operations, each checked against a model that is too simple to be wrong
**   threads COUNT STEPS  threads that allocate, free, ask, open scopes, trim and give blocks to each other
**   scopes               two threads measure their own peaks
**   frees                double and foreign frees: their messages
**   debug                patterns and guards: what is found where
**   reach SEED           a dry run tells how far both ends reach: committed before, it is enough
**   times counter|clock  the times of events, by the processor's counter if it has one, or by the
**                        clock
*/
#define _GNU_SOURCE
#include "core/clock.h"
#include "memory/pool.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FAIL(...)                                                                                  \
    do {                                                                                           \
        fprintf(stderr, "pool_test, line %d: ", __LINE__);                                         \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
        exit(1);                                                                                   \
    } while (0)
#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            FAIL(__VA_ARGS__);                                                                     \
    } while (0)

/* ---- pools over ordinary memory ---- */

#define GRANULARITY (UINT64_C(64) << 10)

typedef struct memory {
    uint64_t largest_range; /* reservations beyond it are refused: 0 for no limit */
} memory;

static mb_status reserve(void *self, uint64_t bytes, void **base)
{
    const memory *m = self;
    if (m->largest_range && bytes > m->largest_range)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no range of %" PRIu64 " bytes", bytes);
    *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return *base == MAP_FAILED ? mb_fail(MB_STATUS_MEMORY, NULL, "mmap") : MB_STATUS_OK;
}

static void unreserve(void *self, void *base, uint64_t bytes)
{
    (void)self;
    munmap(base, bytes);
}

static mb_status commit(void *self, void *base, uint64_t offset, uint64_t bytes)
{
    (void)self;
    return mprotect((char *)base + offset, bytes, PROT_READ | PROT_WRITE)
               ? mb_fail(MB_STATUS_MEMORY, NULL, "mprotect")
               : MB_STATUS_OK;
}

static void decommit(void *self, void *base, uint64_t offset, uint64_t bytes)
{
    (void)self;
    madvise((char *)base + offset, bytes, MADV_DONTNEED);
    mprotect((char *)base + offset, bytes, PROT_NONE);
}

static mb_status fill(void *self, void *address, int byte, uint64_t bytes)
{
    (void)self;
    memset(address, byte, bytes);
    return MB_STATUS_OK;
}

static mb_status read_bytes(void *self, void *host, const void *address, uint64_t bytes)
{
    (void)self;
    memcpy(host, address, bytes);
    return MB_STATUS_OK;
}

static mb_pool *new_pool(memory *m, const char *name, uint64_t budget)
{
    const mb_pool_source source = {
        .self = m,
        .name = name,
        .reserve = reserve,
        .unreserve = unreserve,
        .commit = commit,
        .decommit = decommit,
        .granularity = GRANULARITY,
        .capacity = budget,
        .host_memory = true,
        .fill = fill,
        .read = read_bytes,
    };
    mb_pool *pool = NULL;
    EXPECT(mb_pool_create(&source, budget, &pool) == MB_STATUS_OK, "%s", mb_error_last()->text);
    return pool;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void check(mb_pool *pool)
{
    const char *problem = mb_pool_check(pool);
    EXPECT(!problem, "the pool is damaged: %s", problem);
}

/* ---- oracle ---- */

#define MOST_BLOCKS 400

/* The model: the live blocks, in the order of their addresses. */
typedef struct model_block {
    mb_block handle;
    uint64_t offset, requested;
    unsigned char mark;
} model_block;

typedef struct model {
    mb_pool *pool;
    char *base; /* of the range: the address of the first block ever made */
    uint64_t range, budget, live, peak;
    model_block blocks[MOST_BLOCKS];
    int count;
} model;

static uint64_t largest_hole(const model *m)
{
    uint64_t most = 0, at = 0;
    for (int i = 0; i < m->count; i++) {
        if (m->blocks[i].offset - at > most)
            most = m->blocks[i].offset - at;
        at = m->blocks[i].offset + m->blocks[i].handle.bytes;
    }
    return m->range - at > most ? m->range - at : most;
}

/* The first and last byte of a block say whose it is. */
static void mark(const model_block *b)
{
    char *bytes = b->handle.address;
    bytes[0] = (char)b->mark;
    bytes[b->requested - 1] = (char)b->mark;
}

static void check_mark(const model_block *b)
{
    const unsigned char *bytes = b->handle.address;
    EXPECT(bytes[0] == b->mark && bytes[b->requested - 1] == b->mark,
           "the block at %" PRIu64 " was written to by another", b->offset);
}

static void model_alloc(model *m, uint64_t bytes, mb_pool_end end, unsigned char value)
{
    uint64_t rounded = (bytes + 511) / 512 * 512;
    bool fits = m->live + rounded <= m->budget && rounded <= largest_hole(m);
    model_block made = {.requested = bytes, .mark = value};
    mb_status status = mb_pool_alloc(m->pool, bytes, end, "oracle", &made.handle);
    EXPECT((status == MB_STATUS_OK) == fits,
           "a request of %" PRIu64 " bytes %s: %" PRIu64 " live of %" PRIu64
           ", largest hole %" PRIu64,
           bytes, fits ? "was refused" : "was granted", m->live, m->budget, largest_hole(m));
    if (!fits) {
        EXPECT(status == MB_STATUS_BUDGET, "refused with %s", mb_status_name(status));
        return;
    }
    if (!m->base) /* the first block of all is an array: it stands at the low end */
        m->base = made.handle.address;
    made.offset = (uint64_t)((char *)made.handle.address - m->base);
    EXPECT(made.handle.bytes == rounded, "%" PRIu64 " bytes were rounded to %" PRIu64, bytes,
           made.handle.bytes);
    EXPECT(made.offset % 512 == 0 && made.offset + rounded <= m->range,
           "a block at %" PRIu64 " of a range of %" PRIu64, made.offset, m->range);
    int at = m->count;
    while (at > 0 && m->blocks[at - 1].offset > made.offset)
        at--;
    EXPECT(at == 0 || m->blocks[at - 1].offset + m->blocks[at - 1].handle.bytes <= made.offset,
           "blocks overlap at %" PRIu64, made.offset);
    EXPECT(at == m->count || made.offset + rounded <= m->blocks[at].offset,
           "blocks overlap at %" PRIu64, made.offset);
    memmove(&m->blocks[at + 1], &m->blocks[at], (size_t)(m->count - at) * sizeof made);
    m->blocks[at] = made;
    m->count++;
    m->live += rounded;
    if (m->live > m->peak)
        m->peak = m->live;
    mark(&made);
}

static void model_free(model *m, int at)
{
    model_block *b = &m->blocks[at];
    mb_block again = b->handle;
    check_mark(b);
    m->live -= b->handle.bytes;
    EXPECT(mb_pool_free(m->pool, &b->handle) == MB_STATUS_OK, "%s", mb_error_last()->text);
    EXPECT(mb_pool_free(m->pool, &again) == MB_STATUS_ARGUMENT, "a double free was accepted");
    memmove(b, b + 1, (size_t)(m->count - at - 1) * sizeof *b);
    m->count--;
}

static void compare(const model *m)
{
    mb_pool_stats s;
    mb_pool_get_stats(m->pool, &s);
    uint64_t hole = largest_hole(m), left = (m->budget - m->live) / 512 * 512;
    EXPECT(s.live == m->live && s.live_peak == m->peak && s.blocks == (uint64_t)m->count,
           "live %" PRIu64 " (%" PRIu64 "), peak %" PRIu64 " (%" PRIu64 "), blocks %" PRIu64
           " (%d)",
           s.live, m->live, s.live_peak, m->peak, s.blocks, m->count);
    EXPECT(s.largest_hole == (hole < left ? hole : left), "largest hole %" PRIu64, s.largest_hole);
    EXPECT(s.committed >= m->live && s.committed % GRANULARITY == 0, "committed %" PRIu64,
           s.committed);
}

/* The only hole that fits is the last of many in its size class: it must be found before anything
** is refused. */
static void deep_hole(void)
{
    enum { HOLES = 40, LARGEST = 512 + HOLES - 1 };
    memory tight = {.largest_range = 170 * GRANULARITY};
    mb_pool *pool = new_pool(&tight, "the pool", tight.largest_range);
    mb_block holes[HOLES], walls[HOLES], rest;
    mb_pool_stats s;
    for (int i = 0; i < HOLES; i++) {
        uint64_t bytes = (uint64_t)(LARGEST - i) * MB_POOL_UNIT;
        EXPECT(mb_pool_alloc(pool, bytes, MB_POOL_ARRAY, "hole", &holes[i]) == MB_STATUS_OK &&
                   mb_pool_alloc(pool, 1, MB_POOL_ARRAY, "wall", &walls[i]) == MB_STATUS_OK,
               "%s", mb_error_last()->text);
    }
    mb_pool_get_stats(pool, &s);
    mb_pool_alloc(pool, s.reserved - s.live, MB_POOL_ARRAY, "rest", &rest);
    char *largest = holes[0].address;
    for (int i = 0; i < HOLES; i++)
        mb_pool_free(pool, &holes[i]);
    EXPECT(mb_pool_alloc(pool, LARGEST * MB_POOL_UNIT, MB_POOL_ARRAY, "found", &holes[0]) ==
                   MB_STATUS_OK &&
               holes[0].address == largest,
           "the hole was not found: %s", mb_error_last()->text);
    EXPECT(mb_pool_alloc(pool, LARGEST * MB_POOL_UNIT, MB_POOL_SCRATCH, "refused", &holes[1]) ==
               MB_STATUS_BUDGET,
           "there is no second one");
    printf("%s\n", mb_error_last()->text);
    EXPECT(mb_pool_destroy(pool) == HOLES + 2, "a block was lost");
}

typedef struct open_scope {
    int token;
    uint64_t entry, peak;
} open_scope;

static void oracle(uint64_t steps, uint64_t seed)
{
    deep_hole();
    /* A range that is as tight as the budget, so that holes matter. With odd seeds most requests
    ** are of one size class, in which a fitting hole has to be looked for. */
    bool one_class = seed % 2;
    memory tight = {.largest_range = (one_class ? UINT64_C(32) : UINT64_C(8)) << 20};
    model m = {.budget = tight.largest_range, .range = tight.largest_range};
    m.pool = new_pool(&tight, "the oracle's pool", m.budget);
    uint64_t state = seed * 2654435769u + 88172645463325252u, refused = 0, allocs = 0;
    open_scope scopes[8];
    int open = 0;
    model_alloc(&m, 512, MB_POOL_ARRAY, 0);
    for (uint64_t step = 1; step <= steps; step++) {
        uint64_t dice = next_random(&state) % 1000;
        /* It fills up, stays full for a while, and empties. */
        uint64_t allocations = (uint64_t[]){700, 485, 485, 270}[step / 512 % 4];
        if (dice < allocations) {
            uint64_t largest = dice % 16 == 0 ? UINT64_C(4) << 20 : dice % 2 ? 4096 : 200000;
            if (m.count < MOST_BLOCKS) {
                int before = m.count;
                uint64_t bytes = one_class && dice % 16
                                     ? (512 + next_random(&state) % 64) * MB_POOL_UNIT
                                     : next_random(&state) % largest + 1;
                model_alloc(&m, bytes, next_random(&state) % 4 ? MB_POOL_ARRAY : MB_POOL_SCRATCH,
                            (unsigned char)step);
                allocs++;
                refused += m.count == before;
            }
        } else if (dice < 970) {
            if (m.count)
                model_free(&m, (int)(next_random(&state) % (uint64_t)m.count));
        } else if (dice < 980) {
            if (open < 8) {
                scopes[open] = (open_scope){mb_pool_scope_begin(m.pool), m.live, m.live};
                EXPECT(scopes[open].token >= 0, "no scope could be opened");
                open++;
            }
        } else if (dice < 990) {
            if (open) {
                uint64_t entry = 0, peak = 0;
                open--;
                mb_pool_scope_end(m.pool, scopes[open].token, &entry, &peak);
                EXPECT(entry == scopes[open].entry && peak == scopes[open].peak,
                       "a scope saw %" PRIu64 " after %" PRIu64 ", not %" PRIu64 " after %" PRIu64,
                       peak, entry, scopes[open].peak, scopes[open].entry);
            }
        } else if (dice < 994) {
            mb_pool_trim(m.pool);
        } else if (dice < 997) {
            uint64_t budget = m.live + next_random(&state) % (m.range - m.live + 1);
            EXPECT(mb_pool_set_budget(m.pool, budget) == MB_STATUS_OK, "a budget was refused");
            m.budget = budget;
        } else {
            uint64_t low = next_random(&state) % m.budget;
            uint64_t high = next_random(&state) % (m.budget - low);
            EXPECT(mb_pool_activate(m.pool, low, high) == MB_STATUS_OK, "%s",
                   mb_error_last()->text);
        }
        for (int i = 0; i < open; i++)
            if (m.live > scopes[i].peak)
                scopes[i].peak = m.live;
        compare(&m);
        if (step % 64 == 0)
            check(m.pool);
    }
    while (m.count)
        model_free(&m, m.count - 1);
    compare(&m);
    check(m.pool);
    mb_pool_trim(m.pool);
    mb_pool_stats s;
    mb_pool_get_stats(m.pool, &s);
    EXPECT(s.committed == 0 && s.largest_hole <= m.range, "%" PRIu64 " bytes stay committed",
           s.committed);
    EXPECT(mb_pool_destroy(m.pool) == 0, "blocks were left");
    printf("%" PRIu64 " steps, %" PRIu64 " requests, %" PRIu64 " refused\n", steps, allocs,
           refused);
}

/* ---- threads ---- */

#define SHARED 64

typedef struct gang {
    mb_pool *pool;
    uint64_t steps;
    pthread_mutex_t lock; /* of the shared blocks */
    mb_block shared[SHARED];
} gang;

typedef struct worker {
    gang *of;
    unsigned number;
    pthread_t thread;
} worker;

static void *work(void *user)
{
    const worker *w = user;
    gang *g = w->of;
    uint64_t state = w->number * 7919u + 1;
    mb_block own[16];
    mb_pool_event *events = malloc(1000 * sizeof *events);
    for (int i = 0; i < 16; i++)
        own[i] = (mb_block){.node = UINT32_MAX};
    mb_pool_site("worker");
    for (uint64_t step = 0; step < g->steps; step++) {
        mb_block *b = &own[next_random(&state) % 16];
        mb_pool_stats s;
        uint64_t bytes = (next_random(&state) % 117 + 1) * MB_POOL_UNIT;
        if (b->address) {
            const unsigned char *at = b->address;
            EXPECT(at[0] == w->number && at[b->bytes - 1] == w->number,
                   "thread %u's block was written to by thread %u", w->number, at[0]);
            EXPECT(mb_pool_free(g->pool, b) == MB_STATUS_OK, "%s", mb_error_last()->text);
        } else if (mb_pool_alloc(g->pool, bytes, step % 2, "worker", b) == MB_STATUS_OK) {
            memset(b->address, (int)w->number, b->bytes);
        } else {
            EXPECT(mb_error_last()->code == MB_STATUS_BUDGET, "%s", mb_error_last()->text);
        }
        switch (next_random(&state) % 16) {
        case 0:
            mb_pool_get_stats(g->pool, &s);
            EXPECT(s.live <= s.budget && s.live == s.live_end[0] + s.live_end[1] &&
                       s.requested <= s.live,
                   "live %" PRIu64 " of %" PRIu64, s.live, s.budget);
            break;
        case 1: mb_pool_trim(g->pool); break;
        case 2: mb_pool_events(g->pool, events, 1000); break;
        case 3: {
            uint64_t entry = 0, peak = 0;
            mb_block inner = {.node = UINT32_MAX};
            int token = mb_pool_scope_begin(g->pool);
            if (token < 0)
                break;
            bool made =
                mb_pool_alloc(g->pool, 1000, MB_POOL_SCRATCH, "inner", &inner) == MB_STATUS_OK;
            mb_pool_free(g->pool, &inner);
            mb_pool_scope_end(g->pool, token, &entry, &peak);
            /* Less when another thread frees a block of ours meanwhile. */
            EXPECT(peak - entry <= (made ? 1024u : 0u), "a scope saw %" PRIu64 " bytes",
                   peak - entry);
            break;
        }
        case 4: { /* what one thread makes, another one frees */
            pthread_mutex_lock(&g->lock);
            mb_block *shared = &g->shared[next_random(&state) % SHARED];
            mb_block taken = *shared;
            *shared = *b;
            *b = (mb_block){.node = UINT32_MAX};
            pthread_mutex_unlock(&g->lock);
            EXPECT(mb_pool_free(g->pool, &taken) == MB_STATUS_OK, "%s", mb_error_last()->text);
            break;
        }
        default: break;
        }
    }
    for (int i = 0; i < 16; i++)
        EXPECT(mb_pool_free(g->pool, &own[i]) == MB_STATUS_OK, "%s", mb_error_last()->text);
    free(events);
    return NULL;
}

static void threads(unsigned count, uint64_t steps)
{
    EXPECT(count > 0, "threads COUNT STEPS");
    memory m = {0};
    gang g = {.pool = new_pool(&m, "the gang's pool", UINT64_C(2) << 20), .steps = steps};
    worker *workers = calloc(count, sizeof *workers);
    pthread_mutex_init(&g.lock, NULL);
    for (int i = 0; i < SHARED; i++)
        g.shared[i] = (mb_block){.node = UINT32_MAX};
    for (unsigned i = 0; i < count; i++) {
        workers[i] = (worker){.of = &g, .number = i + 1};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < SHARED; i++)
        EXPECT(mb_pool_free(g.pool, &g.shared[i]) == MB_STATUS_OK, "%s", mb_error_last()->text);
    check(g.pool);
    mb_pool_stats s;
    mb_pool_get_stats(g.pool, &s);
    EXPECT(s.live == 0 && s.blocks == 0 && s.requested == 0 && s.allocs == s.frees,
           "%" PRIu64 " bytes are live; %" PRIu64 " blocks were made and %" PRIu64 " freed", s.live,
           s.allocs, s.frees);
    EXPECT(s.events == s.allocs + s.frees + s.failures, "%" PRIu64 " events", s.events);
    printf("%u threads, %" PRIu64 " blocks, %" PRIu64 " refused\n", count, s.allocs, s.failures);
    mb_pool_destroy(g.pool);
    free(workers);
}

/* ---- scopes ---- */

typedef struct measured {
    mb_pool *pool;
    pthread_barrier_t *barrier;
    uint64_t bytes, outer, inner;
    mb_block passed_on; /* made in the scope, freed by the other thread */
} measured;

/* Both threads are at the same place at every barrier, so each one's blocks are live within the
** other's scopes. */
static void *measure(void *user)
{
    measured *me = user;
    mb_block first, second;
    uint64_t entry = 0, peak = 0;
    int outer = mb_pool_scope_begin(me->pool);
    mb_pool_alloc(me->pool, me->bytes, MB_POOL_ARRAY, "first", &first);
    pthread_barrier_wait(me->barrier);
    int inner = mb_pool_scope_begin(me->pool);
    mb_pool_alloc(me->pool, 2 * me->bytes, MB_POOL_ARRAY, "second", &second);
    pthread_barrier_wait(me->barrier);
    mb_pool_free(me->pool, &first); /* a block of the outer scope */
    mb_pool_free(me->pool, &second);
    mb_pool_alloc(me->pool, me->bytes, MB_POOL_ARRAY, "passed on", &me->passed_on);
    pthread_barrier_wait(me->barrier);
    measured *other = me + (me->bytes == 512 ? 1 : -1);
    mb_pool_free(me->pool, &other->passed_on);
    pthread_barrier_wait(me->barrier);
    /* The own block is gone, though another thread freed it: only then is this no more than before.
    ** */
    mb_pool_alloc(me->pool, 3 * me->bytes, MB_POOL_ARRAY, "third", &first);
    mb_pool_free(me->pool, &first);
    mb_pool_scope_end(me->pool, inner, &entry, &peak);
    me->inner = peak - entry;
    mb_pool_scope_end(me->pool, outer, &entry, &peak);
    me->outer = peak - entry;
    return NULL;
}

static void scopes(void)
{
    memory m = {0};
    mb_pool *pool = new_pool(&m, "the pool", UINT64_C(16) << 20);
    pthread_barrier_t barrier;
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    measured of[2] = {{.pool = pool, .barrier = &barrier, .bytes = 512},
                      {.pool = pool, .barrier = &barrier, .bytes = 1 << 20}};
    pthread_create(&thread, NULL, measure, &of[0]);
    measure(&of[1]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++)
        EXPECT(of[i].outer == 3 * of[i].bytes && of[i].inner == 2 * of[i].bytes,
               "with blocks of %" PRIu64 " bytes the scopes saw %" PRIu64 " and %" PRIu64,
               of[i].bytes, of[i].outer, of[i].inner);
    int tokens[MB_POOL_MAX_SCOPES];
    for (int i = 0; i < MB_POOL_MAX_SCOPES; i++)
        EXPECT((tokens[i] = mb_pool_scope_begin(pool)) >= 0, "scope %d was refused", i);
    EXPECT(mb_pool_scope_begin(pool) < 0, "there are more scopes than there should be");
    for (int i = 0; i < MB_POOL_MAX_SCOPES; i++)
        mb_pool_scope_end(pool, tokens[i], NULL, NULL);
    EXPECT(mb_pool_destroy(pool) == 0, "blocks were left");
    pthread_barrier_destroy(&barrier);
}

/* ---- frees ---- */

static void refuse(mb_pool *pool, mb_block block, const char *site)
{
    mb_pool_stats before, after;
    mb_pool_get_stats(pool, &before);
    mb_pool_site(site);
    EXPECT(mb_pool_free(pool, &block) == MB_STATUS_ARGUMENT, "a free was accepted");
    mb_pool_site(NULL);
    puts(mb_error_last()->text);
    mb_pool_get_stats(pool, &after);
    EXPECT(before.live == after.live && before.frees == after.frees, "a refused free freed");
    check(pool);
}

static void frees(void)
{
    memory m = {0};
    mb_pool *a = new_pool(&m, "device a", UINT64_C(1) << 20);
    mb_pool *b = new_pool(&m, "device b", UINT64_C(1) << 20);
    mb_block block, copy, other;
    int variable = 0;
    mb_pool_alloc(a, 1000, MB_POOL_ARRAY, "make.lua:1", &block);
    refuse(b, block, "stranger.lua:2");
    copy = block;
    mb_pool_site("first.lua:3");
    mb_pool_free(a, &block);
    refuse(a, copy, "second.lua:4");
    /* The same place, taken anew: the stale handle must not free it. */
    mb_pool_alloc(a, 1000, MB_POOL_ARRAY, "make.lua:5", &other);
    EXPECT(other.address == copy.address, "the place was not reused");
    refuse(a, copy, "stale.lua:6");
    refuse(a, (mb_block){.address = &variable, .node = 0}, "stack.lua:7");
    refuse(a, (mb_block){.address = (char *)other.address + 512, .node = other.node},
           "inside.lua:8");
    refuse(a, (mb_block){.address = &variable, .node = 123456}, "wild.lua:9");
    EXPECT(mb_pool_free(a, &other) == MB_STATUS_OK, "%s", mb_error_last()->text);
    EXPECT(mb_pool_free(a, &other) == MB_STATUS_OK, "a zero block is no double free");
    EXPECT(mb_pool_destroy(a) == 0 && mb_pool_destroy(b) == 0, "blocks were left");
}

/* ---- debug ---- */

static bool all(const void *address, int byte, uint64_t bytes)
{
    const unsigned char *at = address;
    for (uint64_t i = 0; i < bytes; i++)
        if (at[i] != byte)
            return false;
    return true;
}

__attribute__((no_sanitize("address"))) static void poke(char *at, char value)
{
    *(volatile char *)at = value;
}

__attribute__((no_sanitize("address"))) static unsigned char peek(const char *at)
{
    return *(const volatile unsigned char *)at;
}

static void debug(void)
{
    memory m = {0};
    mb_pool *pool = new_pool(&m, "the pool", UINT64_C(1) << 20);
    mb_block a, b;
    mb_pool_damage found[8];
    EXPECT(mb_pool_set_debug(pool, MB_POOL_GUARDS | MB_POOL_PATTERNS) == MB_STATUS_OK, "%s",
           mb_error_last()->text);
    mb_pool_alloc(pool, 1000, MB_POOL_ARRAY, "a.lua:1", &a);
    mb_pool_alloc(pool, 512, MB_POOL_SCRATCH, "b.lua:2", &b);
    EXPECT(mb_pool_set_debug(pool, 0) == MB_STATUS_ARGUMENT, "guards changed under live blocks");
    EXPECT(all(a.address, MB_POOL_NEW_BYTE, 1000), "a new block has no pattern");
    char *address = a.address;
    EXPECT(mb_pool_find_damage(pool, found, 8) == 0, "there is no damage yet");
    mb_pool_break_guard(pool, &a, true, 7);
    poke((char *)b.address - 1, 2);
    EXPECT(mb_pool_find_damage(pool, found, 8) == 2, "damage of live blocks was not found");
    EXPECT(found[0].after && found[0].distance == 7 && found[0].value == 0 && !found[0].freed &&
               !strcmp(found[0].owner, "a.lua:1") && found[0].bytes == a.bytes,
           "what is behind a was not described");
    EXPECT(!found[1].after && found[1].distance == 0 && found[1].value == 2 &&
               !strcmp(found[1].owner, "b.lua:2"),
           "what is before b was not described");
    EXPECT(mb_pool_broken_guards(pool) == 0, "nothing has been freed");
    mb_pool_site("free.lua:3");
    mb_pool_free(pool, &a);
    EXPECT(mb_pool_broken_guards(pool) == 1, "the free did not find the damage");
    EXPECT(mb_pool_find_damage(pool, found, 8) == 2 && found[0].freed &&
               !strcmp(found[0].freed, "free.lua:3") && !found[1].freed,
           "the damage does not say where the block was freed");
    for (int i = 0; i < 1000; i++)
        EXPECT(peek(address + i) == MB_POOL_FREED_BYTE, "byte %d of a freed block is %d", i,
               peek(address + i));
    mb_pool_free(pool, &b);
    mb_pool_stats s;
    mb_pool_get_stats(pool, &s);
    EXPECT(s.live == 0, "guards count as live bytes");
    EXPECT(mb_pool_destroy(pool) == 0, "blocks were left");
}

/* ---- reach ---- */

typedef struct extent {
    uint64_t low, high;
} extent;

static extent reach_of(mb_pool *pool)
{
    mb_pool_stats s;
    mb_pool_get_stats(pool, &s);
    return (extent){s.reach[MB_POOL_ARRAY], s.reach[MB_POOL_SCRATCH]};
}

static uint64_t committed(mb_pool *pool)
{
    mb_pool_stats s;
    mb_pool_get_stats(pool, &s);
    return s.committed;
}

static uint64_t granules(uint64_t bytes)
{
    return (bytes + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
}

/* How far the live blocks reach from both ends: what `reach` follows. */
typedef struct farthest {
    uint64_t middle, range; /* between the ends, in the gap */
    extent of;
} farthest;

static void visit(void *user, const mb_pool_block *block)
{
    farthest *f = user;
    const uint64_t end = block->offset + block->bytes, down = f->range - block->offset;
    if (block->offset < f->middle)
        f->of.low = end > f->of.low ? end : f->of.low;
    else
        f->of.high = down > f->of.high ? down : f->of.high;
}

/* Requests and frees that follow from the seed. Returns how far blocks have reached. */
static extent play(mb_pool *pool, uint64_t seed, mb_status *status)
{
    enum { SLOTS = 24 };
    mb_block slots[SLOTS] = {{0}};
    mb_pool_stats s;
    mb_pool_get_stats(pool, &s);
    farthest f = {.middle = s.reserved / 2, .range = s.reserved};
    uint64_t state = seed * 2654435769u + 88172645463325252u;
    *status = MB_STATUS_OK;
    for (int step = 0; step < 300 && *status == MB_STATUS_OK; step++) {
        const uint64_t dice = next_random(&state);
        mb_block *slot = &slots[dice % SLOTS];
        if (slot->bytes) {
            mb_pool_free(pool, slot);
        } else {
            const uint64_t bytes = (dice >> 8) % (UINT64_C(600) << 10) + 1;
            *status = mb_pool_alloc(pool, bytes, dice & 64 ? MB_POOL_ARRAY : MB_POOL_SCRATCH,
                                    "play", slot);
        }
        mb_pool_each(pool, visit, &f);
    }
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].bytes)
            mb_pool_free(pool, &slots[i]);
    return f.of;
}

static void unreserve_nothing(void *self, void *base, uint64_t bytes)
{
    (void)self, (void)base, (void)bytes;
}

/* A run on a clone, and then for real with its reach committed and all else refused. */
static void rehearse(mb_pool *pool, uint64_t seed)
{
    const mb_pool_source dry = {.unreserve = unreserve_nothing};
    mb_pool *clone = NULL;
    mb_status status;
    EXPECT(mb_pool_clone(pool, &dry, MB_POOL_SAME, &clone) == MB_STATUS_OK, "no clone");
    const extent seen = play(clone, seed, &status), reach = reach_of(clone);
    EXPECT(status == MB_STATUS_OK, "the clone refused: %s", mb_error_last()->text);
    EXPECT(seen.low <= reach.low && seen.high <= reach.high, "a block lies beyond the reach");
    mb_pool_destroy(clone);
    mb_pool_reset_reach(pool);
    const extent before = reach_of(pool);
    EXPECT(before.low <= reach.low && before.high <= reach.high, "the clone began elsewhere");
    mb_pool_trim(pool);
    /* One granule less of the end that grows most is too little. */
    const bool low = reach.low - before.low > reach.high - before.high;
    EXPECT(mb_pool_activate(pool, low ? reach.low - GRANULARITY : reach.low,
                            low ? reach.high : reach.high - GRANULARITY) == MB_STATUS_OK,
           "%s", mb_error_last()->text);
    mb_pool_refuse_commits(pool, UINT64_MAX);
    play(pool, seed, &status);
    EXPECT(status == MB_STATUS_BUDGET, "less than the reach was enough");
    mb_pool_refuse_commits(pool, 0);
    mb_pool_trim(pool);
    mb_pool_reset_reach(pool);
    EXPECT(mb_pool_activate(pool, reach.low, reach.high) == MB_STATUS_OK, "%s",
           mb_error_last()->text);
    EXPECT(committed(pool) == granules(reach.low) + granules(reach.high),
           "%" PRIu64 " bytes are committed for %" PRIu64 " and %" PRIu64, committed(pool),
           reach.low, reach.high);
    mb_pool_refuse_commits(pool, UINT64_MAX);
    const extent real = play(pool, seed, &status), same = reach_of(pool);
    EXPECT(status == MB_STATUS_OK, "a block was refused: %s", mb_error_last()->text);
    EXPECT(real.low == seen.low && real.high == seen.high && same.low == reach.low &&
               same.high == reach.high,
           "the run reached %" PRIu64 " and %" PRIu64 ", not %" PRIu64 " and %" PRIu64, same.low,
           same.high, reach.low, reach.high);
    mb_pool_refuse_commits(pool, 0);
}

static void reach(uint64_t seed)
{
    memory m = {0};
    mb_pool *pool = new_pool(&m, "the pool", UINT64_C(64) << 20);
    mb_block walls[8], hole;
    EXPECT(reach_of(pool).low == 0 && reach_of(pool).high == 0, "a new pool reaches nowhere");
    for (int i = 0; i < 8; i++) { /* what is there before: blocks at both ends, with holes */
        const mb_pool_end end = i % 3 ? MB_POOL_ARRAY : MB_POOL_SCRATCH;
        mb_pool_alloc(pool, (uint64_t)(i + 1) * 50000, end, "hole", &hole);
        mb_pool_alloc(pool, 100000, end, "wall", &walls[i]);
        mb_pool_free(pool, &hole);
    }
    for (uint64_t i = 0; i < 20; i++)
        rehearse(pool, 20 * seed + i);
    for (int i = 0; i < 8; i++)
        mb_pool_free(pool, &walls[i]);
    const extent was = reach_of(pool);
    EXPECT(was.low && was.high, "the reach is kept until it is reset");
    mb_pool_reset_reach(pool);
    EXPECT(reach_of(pool).low == 0 && reach_of(pool).high == 0, "an empty pool reaches nowhere");
    /* Ends that are more than the budget together are refused, and so is memory. */
    EXPECT(mb_pool_activate(pool, UINT64_C(33) << 20, UINT64_C(32) << 20) == MB_STATUS_BUDGET,
           "more than the budget was activated");
    mb_pool_trim(pool);
    mb_pool_refuse_commits(pool, 2);
    EXPECT(mb_pool_activate(pool, 1, 1) == MB_STATUS_BUDGET, "memory was not refused");
    printf("%s\n", mb_error_last()->text);
    EXPECT(mb_pool_destroy(pool) == 0, "blocks were left");
}

/* ---- times ---- */

#define PAUSE_NS UINT64_C(50000000)
#define TIMED_PAIRS 2000

static void *make_pairs(void *user)
{
    mb_block block;
    for (int i = 0; i < TIMED_PAIRS; i++)
        if (mb_pool_alloc(user, 512, MB_POOL_ARRAY, "pair", &block) == MB_STATUS_OK)
            mb_pool_free(user, &block);
    return NULL;
}

static void keep_birth(void *user, const mb_pool_block *block)
{
    *(uint64_t *)user = block->born_ns;
}

static bool near(uint64_t a, uint64_t b, uint64_t most)
{
    return (a > b ? a - b : b - a) <= most;
}

/* Two blocks, made PAUSE_NS apart: the trace and the list of blocks say so, to 1 percent, and where
** on the clock that was. It was between two readings of the clock, which may be far apart on a busy
** machine. Times of two threads' events never go back. */
static void times(bool counter)
{
    static mb_pool_event events[4 * TIMED_PAIRS + 2];
    memory m = {0};
    mb_block blocks[2];
    uint64_t before[2], after[2], born = 0;
    pthread_t threads_[2];
    if (!counter)
        mb_ticks_without_counter();
    mb_pool *pool = new_pool(&m, "timed", UINT64_C(1) << 20);
    EXPECT(counter || !mb_ticks_are_counts, "ticks count although they must not");
    for (int i = 0; i < 2; i++) {
        before[i] = mb_now_ns();
        mb_pool_alloc(pool, 512, MB_POOL_ARRAY, "timed", &blocks[i]);
        after[i] = mb_now_ns();
        while (i == 0 && mb_now_ns() - before[i] < PAUSE_NS) {}
    }
    EXPECT(mb_pool_events(pool, events, 2) == 2, "two events");
    const uint64_t lasted = events[1].ns - events[0].ns, most = PAUSE_NS / 100;
    EXPECT(lasted + most >= before[1] - after[0] && lasted <= after[1] - before[0] + most,
           "%" PRIu64 " ns in the trace, %" PRIu64 " to %" PRIu64 " by the clock", lasted,
           before[1] - after[0], after[1] - before[0]);
    for (int i = 0; i < 2; i++)
        EXPECT(events[i].ns + most >= before[i] && events[i].ns <= after[i] + most,
               "event %d is elsewhere", i);
    mb_pool_each(pool, keep_birth, &born);
    EXPECT(near(born, events[1].ns, most), "the block was born elsewhere");
    EXPECT(blocks[0].born < blocks[1].born, "ticks go back");
    for (int i = 0; i < 2; i++)
        pthread_create(&threads_[i], NULL, make_pairs, pool);
    for (int i = 0; i < 2; i++)
        pthread_join(threads_[i], NULL);
    const uint64_t count = mb_pool_events(pool, events, sizeof events / sizeof *events);
    EXPECT(count == sizeof events / sizeof *events, "%" PRIu64 " events", count);
    for (uint64_t i = 1; i < count; i++)
        EXPECT(events[i].ns >= events[i - 1].ns, "event %" PRIu64 " goes back", i);
    EXPECT(events[count - 1].ns <= mb_now_ns(), "an event in the future");
    printf("ticks of the %s\n", mb_ticks_are_counts ? "counter" : "clock");
    for (int i = 0; i < 2; i++)
        mb_pool_free(pool, &blocks[i]);
    mb_pool_destroy(pool);
}

int main(int argc, char **argv)
{
    const char *test = argc > 1 ? argv[1] : "";
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    uint64_t second = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    if (!strcmp(test, "oracle"))
        oracle(first, second);
    else if (!strcmp(test, "threads"))
        threads((unsigned)first, second);
    else if (!strcmp(test, "scopes"))
        scopes();
    else if (!strcmp(test, "frees"))
        frees();
    else if (!strcmp(test, "debug"))
        debug();
    else if (!strcmp(test, "reach"))
        reach(first);
    else if (!strcmp(test, "times"))
        times(argc > 2 && strcmp(argv[2], "clock") != 0);
    else
        FAIL("there is no test '%s'", test);
    puts("ok");
    return 0;
}
