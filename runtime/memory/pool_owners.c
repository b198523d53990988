/*
** Who holds a pool's memory: the state of the pool and its largest owners, for a budget failure.
*/
#include "memory/pool.h"
#include <stdlib.h>
#include <string.h>

#define MOST_OWNERS 256 /* owners beyond this number are counted together */

typedef struct owner_list {
    mb_owner_sum sums[MOST_OWNERS];
    int count;
} owner_list;

static void add_owner(void *user, const mb_pool_block *block)
{
    owner_list *list = user;
    int i = 0;
    while (i < list->count && list->sums[i].owner != block->owner)
        i++;
    if (i == MOST_OWNERS)
        i--; /* the last entry counts all other owners */
    else if (i == list->count)
        list->sums[list->count++] = (mb_owner_sum){block->owner, 0, 0};
    list->sums[i].bytes += block->bytes;
    list->sums[i].blocks++;
}

static int by_bytes(const void *a, const void *b)
{
    const mb_owner_sum *x = a, *y = b;
    return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

void mb_pool_explain(mb_pool *pool)
{
    mb_budget *budget = mb_error_budget();
    mb_pool_stats stats;
    owner_list list = {.count = 0};
    mb_pool_get_stats(pool, &stats);
    mb_pool_each(pool, add_owner, &list);
    qsort(list.sums, (size_t)list.count, sizeof list.sums[0], by_bytes);
    budget->live = stats.live;
    budget->peak = stats.live_peak;
    budget->free = stats.free_bytes;
    budget->largest_hole = stats.largest_hole;
    budget->owner_count = list.count < MB_ERROR_OWNERS ? list.count : MB_ERROR_OWNERS;
    memcpy(budget->owners, list.sums, (size_t)budget->owner_count * sizeof budget->owners[0]);
}
