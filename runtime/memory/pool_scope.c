/*
** The state of threads: the site and the tag of their next calls, and peak scopes. A block counts
** for the thread that made it, whichever thread frees it. A scope counts the blocks of the thread
** that began it, so other threads do not change its peak.
*/
#include "memory/pool_internal.h"
#include <stdatomic.h>

static _Thread_local const char *current_site, *current_tag;

void mb_pool_site(const char *site)
{
    current_site = site;
}

const char *mb_pool_current_site(void)
{
    return current_site;
}

const char *mb_pool_tag(const char *tag)
{
    const char *before = current_tag;
    current_tag = tag;
    return before;
}

const char *mb_pool_current_tag(void)
{
    return current_tag;
}

_Thread_local uint32_t mb_pool_thread_number;

uint32_t mb_pool_number_thread(void)
{
    static atomic_uint next;
    mb_pool_thread_number = atomic_fetch_add(&next, 1) + 1;
    return mb_pool_thread_number;
}

void mb_pool_note_open_scopes(mb_pool *pool, uint32_t thread, int64_t change)
{
    for (int i = 0; i < pool->scope_top; i++) {
        scope *s = &pool->scopes[i];
        if (!s->open || s->thread != thread)
            continue;
        s->growth += change;
        if (s->growth > s->peak_growth)
            s->peak_growth = s->growth;
    }
}

int mb_pool_scope_begin(mb_pool *pool)
{
    int token = -1;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < MB_POOL_MAX_SCOPES && token < 0; i++)
        if (!pool->scopes[i].open) {
            pool->scopes[i] =
                (scope){.open = true, .thread = mb_pool_thread(), .entry_live = pool->stats.live};
            if (i >= pool->scope_top)
                pool->scope_top = i + 1;
            token = i;
        }
    pthread_mutex_unlock(&pool->lock);
    return token;
}

void mb_pool_scope_end(mb_pool *pool, int token, uint64_t *entry_live, uint64_t *peak_live)
{
    uint64_t entry = 0, peak = 0;
    pthread_mutex_lock(&pool->lock);
    if (token >= 0 && token < MB_POOL_MAX_SCOPES && pool->scopes[token].open) {
        entry = pool->scopes[token].entry_live;
        peak = entry + (uint64_t)pool->scopes[token].peak_growth;
        pool->scopes[token].open = false;
        while (pool->scope_top > 0 && !pool->scopes[pool->scope_top - 1].open)
            pool->scope_top--;
    }
    pthread_mutex_unlock(&pool->lock);
    if (entry_live)
        *entry_live = entry;
    if (peak_live)
        *peak_live = peak;
}
