/*
** The pool's records, shared by the files that make it up: pool.c (the allocator), pool_debug.c
** (misuse, guards, patterns, consistency), pool_scope.c (the state of threads). No other file
** includes this. Everything in mb_pool is guarded by its lock.
*/
#ifndef MB_MEMORY_POOL_INTERNAL_H
#define MB_MEMORY_POOL_INTERNAL_H

#include "memory/pool.h"
#include "memory/pool_bins.h"
#include "memory/pool_trace.h"
#include <pthread.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(pool, address, bytes)                                                               \
    ((pool)->source.host_memory ? __asan_poison_memory_region(address, bytes) : (void)0)
#define UNPOISON(pool, address, bytes)                                                             \
    ((pool)->source.host_memory ? __asan_unpoison_memory_region(address, bytes) : (void)0)
#else
#define POISON(pool, address, bytes) ((void)0)
#define UNPOISON(pool, address, bytes) ((void)0)
#endif

#define NONE UINT32_MAX

enum { NODE_UNUSED, NODE_HOLE, NODE_GAP, NODE_LIVE };
enum { LOW, HIGH, REGIONS };

typedef struct node {
    uint32_t offset, units; /* of the whole node, guards included */
    uint32_t before, after; /* address order */
    uint32_t bin_before, bin_after;
    uint32_t generation, thread;
    uint8_t state, region, end, guarded;
    uint64_t requested, pitch_waste, sequence, born; /* born: ticks */
    const char *owner, *tag;
} node;

/* The holes of a region by size (pool_bins.h). */
typedef struct hole_bins {
    uint32_t heads[MB_BIN_COUNT];
    uint64_t words[MB_BIN_WORDS]; /* a bit for each bin that is not empty */
} hole_bins;

typedef struct scope {
    bool open;
    uint32_t thread;
    int64_t growth, peak_growth; /* of the thread's live bytes since the scope began */
    uint64_t entry_live;
} scope;

struct mb_pool {
    pthread_mutex_t lock;
    mb_pool_source source;
    char *base;
    uint32_t total_units;
    node *nodes;
    uint32_t node_count, node_room, unused; /* `unused` heads a list through bin_after */
    uint32_t gap, first;
    hole_bins holes[REGIONS];
    uint8_t *committed; /* one byte per granule */
    uint64_t granules;
    mb_pool_stats stats;
    scope scopes[MB_POOL_MAX_SCOPES];
    int scope_top; /* one past the highest open scope */
    unsigned debug;
    uint64_t fail_countdown, refuse_commits;
    const char *refusal; /* why every request is refused; NULL: requests are served */
    bool unlimited;      /* a clone without a budget: its limit is what can be addressed */
    mb_pool_damage damage[MB_POOL_KEPT_DAMAGE]; /* the first ones found when blocks were freed */
    uint64_t broken_guards;
    mb_pool_trace trace;
    mb_pool *next; /* pools of the process (pool_debug.c); not guarded by `lock` */
};

/* The part of a live node that belongs to its user. */
static inline uint64_t node_offset(const node *n)
{
    return (uint64_t)(n->offset + (n->guarded ? 1u : 0u)) * MB_POOL_UNIT;
}

static inline uint64_t node_bytes(const node *n)
{
    return (uint64_t)(n->units - (n->guarded ? 2u : 0u)) * MB_POOL_UNIT;
}

/* Does the handle belong to this node of the pool, and is the node live? */
static inline const node *node_of(const mb_pool *pool, const mb_block *block)
{
    const node *n = block->node < pool->node_count ? &pool->nodes[block->node] : NULL;
    return n && n->state == NODE_LIVE && n->generation == block->generation &&
                   (char *)block->address == pool->base + node_offset(n)
               ? n
               : NULL;
}

/* pool_scope.c. Threads are numbered from 1 in the order in which they first use a pool. */
extern _Thread_local uint32_t mb_pool_thread_number; /* 0: none yet */
uint32_t mb_pool_number_thread(void);
static inline uint32_t mb_pool_thread(void)
{
    return mb_pool_thread_number ? mb_pool_thread_number : mb_pool_number_thread();
}
/* Tells the thread's open scopes that its live bytes change. */
void mb_pool_note_open_scopes(mb_pool *pool, uint32_t thread, int64_t change);
static inline void mb_pool_scopes_note(mb_pool *pool, uint32_t thread, int64_t change)
{
    if (pool->scope_top > 0)
        mb_pool_note_open_scopes(pool, thread, change);
}

/* pool_debug.c */
void mb_pool_list(mb_pool *pool); /* adds a new pool to the list of the process's pools */
void mb_pool_unlist(mb_pool *pool);
/* Under the lock, for a live node: debug mode's work before its first and after its last use. */
mb_status mb_pool_debug_begin(mb_pool *pool, const node *n);
void mb_pool_debug_end(mb_pool *pool, const node *n);
/* Without the lock: the error for a block that the pool cannot free. */
mb_status mb_pool_fail_free(mb_pool *pool, const mb_block *block);

#endif
