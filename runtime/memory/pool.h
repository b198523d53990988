/*
** The pool: one contiguous address range per device, cut into blocks by a segregated-fit allocator
** whose metadata live on the host.
**
** - Unit MB_POOL_UNIT (512 bytes): the base, the size and the pitch of every block are multiples of
**   it.
** - Two ends: MB_POOL_ARRAY grows from the low end, MB_POOL_SCRATCH from the high end. Each first
**   reuses holes of its own end, then the central gap, then the other end's holes (counted as
**   cross_end). Blocks may be freed in any order.
** - The limit is a budget on live bytes. Memory is committed on demand inside the range and stays
**   committed until mb_pool_trim, or until committing more would exceed the budget while committed
**   holes exist.
** - Accounting is exact: bytes requested, rounded (= live), lost to pitch, and the peak; also the
**   peaks of nested scopes of each thread.
**
** A zero-byte request is legal and takes no memory: its block has units == 0 and address NULL.
** Threads: every call takes the pool's mutex; the lock is never held while a callback or a backend
** call that may wait for Lua runs.
*/
#ifndef MB_MEMORY_POOL_H
#define MB_MEMORY_POOL_H

#include "core/shape.h"

#define MB_POOL_UNIT 512u

typedef struct mb_pool mb_pool;
typedef struct mb_device mb_device;

typedef enum mb_pool_end { MB_POOL_ARRAY, MB_POOL_SCRATCH, MB_POOL_END_COUNT } mb_pool_end;

/* How the pool gets address space and memory. The device layer fills it in; specs may use one
** without memory. */
typedef struct mb_pool_source {
    void *self;
    const char *name; /* of the device, for reports; may be NULL */
    /* Reserves address space for `bytes`; commits no memory. */
    mb_status (*reserve)(void *self, uint64_t bytes, void **base);
    void (*unreserve)(void *self, void *base, uint64_t bytes);
    /* Back [offset, offset + bytes) with memory, and give it back. Both are multiples of
    ** `granularity`. NULL: nothing to do. */
    mb_status (*commit)(void *self, void *base, uint64_t offset, uint64_t bytes);
    void (*decommit)(void *self, void *base, uint64_t offset, uint64_t bytes);
    uint64_t granularity;
    /* total memory of the device; the address range is twice the larger of this and the budget */
    uint64_t capacity;
    bool host_memory; /* addresses can be dereferenced here (lets AddressSanitizer watch blocks) */
    /* For debug mode: fill and read bytes of a block. NULL: the addresses have no memory. */
    mb_status (*fill)(void *self, void *address, int byte, uint64_t bytes);
    mb_status (*read)(void *self, void *host, const void *address, uint64_t bytes);
} mb_pool_source;

/* A handle to one live block. The generation makes stale handles detectable. */
typedef struct mb_block {
    void *address;
    uint64_t bytes; /* rounded to MB_POOL_UNIT */
    uint64_t born;  /* ticks (core/clock.h) */
    uint32_t node, generation;
} mb_block;

/* One entry of the trace: a ring of the pool's latest events. */
typedef enum mb_pool_action {
    MB_POOL_EVENT_ALLOC,
    MB_POOL_EVENT_FREE,
    MB_POOL_EVENT_REFUSED, /* a request that failed; it has no address */
} mb_pool_action;

typedef struct mb_pool_event {
    uint64_t ns;       /* CLOCK_MONOTONIC */
    uint64_t offset;   /* of the block, from the pool's base */
    uint64_t bytes;    /* rounded */
    uint64_t live;     /* after the event */
    const char *owner; /* alloc: who made the block; free: the site (mb_pool_site); may be NULL */
    const char *tag;   /* of the block; may be NULL */
    uint32_t node, generation, thread;
    uint8_t action, end;
} mb_pool_event;

typedef struct mb_pool_stats {
    uint64_t budget;          /* limit on live bytes */
    uint64_t reserved;        /* address range */
    uint64_t committed;       /* backed by memory now */
    uint64_t live, live_peak; /* rounded bytes in use, and its high-water mark since creation */
    uint64_t live_end[MB_POOL_END_COUNT];
    /* How far the blocks of each end have reached: bytes from that end of the range, the holes
    ** between blocks included. All live blocks lie within the two. The farthest since the pool was
    ** made or cloned, or since mb_pool_reset_reach. */
    uint64_t reach[MB_POOL_END_COUNT];
    uint64_t requested;    /* bytes asked for by the live blocks */
    uint64_t pitch_waste;  /* part of `requested` that lies between rows */
    uint64_t largest_hole; /* largest request that would fit the address range and the budget now */
    uint64_t blocks;       /* live blocks */
    uint64_t allocs, frees; /* since creation */
    uint64_t failures;      /* refused requests */
    uint64_t cross_end;     /* blocks placed in the other end's holes */
    uint64_t free_bytes;    /* what the budget leaves: budget - live */
    uint64_t events;        /* traced since creation */
} mb_pool_stats;

mb_status mb_pool_create(const mb_pool_source *source, uint64_t budget, mb_pool **out);
/* Live blocks are dropped with the range. Returns how many there were, so that the caller can
** report a leak. */
uint64_t mb_pool_destroy(mb_pool *pool);

/* Makes a pool in the same state (the same blocks at the same addresses, under the same handles;
** the same holes and budget) that has no memory. Later blocks are placed exactly as they would be
** in the original. Scopes and failure injection are not copied. `source` needs only self and
** unreserve; nothing is reserved. `room` is what the budget leaves beyond the live bytes:
** MB_POOL_SAME as in the original, MB_POOL_UNLIMITED all that can be addressed. */
#define MB_POOL_SAME UINT64_MAX
#define MB_POOL_UNLIMITED (UINT64_MAX - 1)
mb_status mb_pool_clone(mb_pool *pool, const mb_pool_source *source, uint64_t room, mb_pool **out);
/* From now on every request fails with MB_STATUS_ARGUMENT and this text, which is not copied. NULL
** ends this. */
void mb_pool_refuse(mb_pool *pool, const char *text);

/* Rounded size of a request: the amount by which `live` will grow. UINT64_MAX on overflow. */
uint64_t mb_pool_round(uint64_t bytes);

/* `owner` is a short static or interned text for reports (operator or source line); it may be NULL.
** Fails with MB_STATUS_BUDGET when the budget, the address range or the driver does not allow it
** (see mb_error). */
mb_status mb_pool_alloc(mb_pool *pool, uint64_t bytes, mb_pool_end end, const char *owner,
                        mb_block *out);
/* Fails as mb_pool_alloc does when the budget cannot hold so many bytes at once, wherever the holes
** are. */
mb_status mb_pool_fits(mb_pool *pool, uint64_t bytes, const char *owner);
/* A double or foreign free is an error that names both sites and changes nothing. (The first site
** of a double free is known as far back as the trace reaches.) A zero block is legal. */
mb_status mb_pool_free(mb_pool *pool, mb_block *block);
/* Notes how many of the block's bytes lie between rows. */
void mb_pool_note_pitch(mb_pool *pool, const mb_block *block, uint64_t waste);

/* Names the caller (an interned text, or NULL) of this thread's next frees in the trace and in
** reports. */
void mb_pool_site(const char *site);
const char *mb_pool_current_site(void);
/* Sets the tag of this thread's next blocks: an interned text, or NULL. Returns the previous
** tag. */
const char *mb_pool_tag(const char *tag);
const char *mb_pool_current_tag(void);

/* Live bytes now. */
uint64_t mb_pool_live(mb_pool *pool);
/* Copies the latest events, oldest first, at most `room`; returns how many. */
uint64_t mb_pool_events(mb_pool *pool, mb_pool_event *out, uint64_t room);

/* Replays a trace. Gives the peak of the blocks that it made (frees of older blocks are ignored),
** and the size of the smallest pool that could have served the same requests in the same order.
** With a granularity, that size is the memory of a pool that commits on demand in a range of twice
** as many addresses, as devices' pools do. With 0 it is the size of one fixed range. */
mb_status mb_pool_smallest(const mb_pool_event *events, uint64_t count, uint64_t granularity,
                           uint64_t *peak, uint64_t *smallest);

mb_status mb_pool_set_budget(mb_pool *pool, uint64_t budget); /* not below live bytes */
/* Commits the first `low` and the last `high` bytes of the range now, so that later blocks that reach
** no farther (see `reach`) need no system call. If that exceeds the budget, the committed memory of
** other holes is given back first. */
mb_status mb_pool_activate(mb_pool *pool, uint64_t low, uint64_t high);
/* From now on, `reach` counts from where the blocks reach now. */
void mb_pool_reset_reach(mb_pool *pool);
/* Gives the committed memory of holes back to the system or driver. Returns how many bytes. */
uint64_t mb_pool_trim(mb_pool *pool);
void mb_pool_get_stats(mb_pool *pool, mb_pool_stats *stats);

/* Nested peak scopes. A scope belongs to the thread that begins it and counts the blocks that this
** thread makes, whichever thread frees them. `begin` returns a token >= 0, or -1 when
** MB_POOL_MAX_SCOPES are open. `end` gives the live bytes at entry, and the peak that this thread
** alone would have reached inside. Scopes may end in any order. */
#define MB_POOL_MAX_SCOPES 256
int mb_pool_scope_begin(mb_pool *pool);
void mb_pool_scope_end(mb_pool *pool, int token, uint64_t *entry_live, uint64_t *peak_live);

/* Debug mode. Guards: a unit of canary before and after every block, checked when it is freed and
** by mb_pool_find_damage; they are not counted in live bytes and can be switched only while no
** block is live. Patterns: new and freed blocks are filled, so that a read of bytes that were never
** written, or of a freed block, shows. A pool without memory places its blocks in the same way. */
#define MB_POOL_GUARDS 1u
#define MB_POOL_PATTERNS 2u
#define MB_POOL_GUARD_BYTE 0xCB
#define MB_POOL_NEW_BYTE 0xFF /* NaN in every floating-point type */
#define MB_POOL_FREED_BYTE 0xDD
mb_status mb_pool_set_debug(mb_pool *pool, unsigned debug);

typedef struct mb_pool_damage {
    const char *owner;      /* who made the block; may be NULL */
    const char *freed;      /* where it was freed; NULL: it is live */
    uint64_t offset, bytes; /* the block */
    uint32_t distance;      /* from the block to the nearest damaged byte; 0: adjacent */
    uint8_t value;          /* the damaged byte's */
    bool after;             /* the guard after the block, or the one before it */
} mb_pool_damage;

/* Copies the damaged guards of freed blocks (the first MB_POOL_KEPT_DAMAGE are kept), then those of
** live blocks; at most `room`. Returns how many. */
#define MB_POOL_KEPT_DAMAGE 16
uint64_t mb_pool_find_damage(mb_pool *pool, mb_pool_damage *out, uint64_t room);
/* For specs: overwrites a byte of the guard before or after a block, `distance` bytes from it. */
mb_status mb_pool_break_guard(mb_pool *pool, const mb_block *block, bool after, uint32_t distance);
/* How many blocks had damaged guards when they were freed. */
uint64_t mb_pool_broken_guards(mb_pool *pool);

/* Failure injection for specs: the n-th allocation from now fails with MB_STATUS_MEMORY (0 switches
** it off). */
void mb_pool_fail_nth(mb_pool *pool, uint64_t n);
/* For specs: the next n requests for memory to the system or driver are refused, as if another
** process had taken the memory. */
void mb_pool_refuse_commits(mb_pool *pool, uint64_t n);

/* Visits live blocks in address order; `visit` must not call the pool. */
typedef struct mb_pool_block {
    uint64_t offset, bytes, requested, pitch_waste;
    uint64_t sequence; /* how many blocks were made before this one */
    uint64_t born_ns;  /* CLOCK_MONOTONIC */
    mb_pool_end end;
    uint32_t thread;
    const char *owner, *tag; /* may be NULL */
} mb_pool_block;
/* Where a block is in the address range of its pool: the offset of its mb_pool_block. */
uint64_t mb_pool_offset(const mb_pool *pool, const mb_block *block);
typedef void (*mb_pool_visit)(void *user, const mb_pool_block *block);
void mb_pool_each(mb_pool *pool, mb_pool_visit visit, void *user);
/* Adds the state of the pool and its largest owners to the budget failure on record. */
void mb_pool_explain(mb_pool *pool);
/* Full consistency check, for specs: NULL when the pool is sound, else a text that says what is
** wrong. */
const char *mb_pool_check(mb_pool *pool);

#endif
