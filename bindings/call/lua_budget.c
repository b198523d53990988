#include "call/lua_budget.h"
#include "call/lua_table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OWNERS 256 /* owners beyond this number are counted together */
#define TOP_OWNERS 5

typedef struct owner_sum {
    const char *owner;
    uint64_t bytes, blocks;
} owner_sum;

typedef struct owner_list {
    owner_sum sums[MOST_OWNERS];
    int count;
} owner_list;

static _Thread_local struct {
    bool noted;
    char device[24];
    const char *owner;
    mbl_tried tried;
    mb_pool_stats stats;
    owner_sum owners[TOP_OWNERS];
    int owner_count;
} note;

static void add_owner(void *user, const mb_pool_block *block)
{
    owner_list *list = user;
    int i = 0;
    while (i < list->count && list->sums[i].owner != block->owner)
        i++;
    if (i == MOST_OWNERS)
        i--; /* the rest together */
    else if (i == list->count)
        list->sums[list->count++] = (owner_sum){block->owner, 0, 0};
    list->sums[i].bytes += block->bytes;
    list->sums[i].blocks++;
}

static int by_bytes(const void *a, const void *b)
{
    const owner_sum *x = a, *y = b;
    return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

void mbl_budget_forget(void)
{
    note.noted = false;
}

void mbl_budget_note(const mb_device *device, const char *owner, const mbl_tried *tried)
{
    owner_list list = {.count = 0};
    note.noted = true;
    snprintf(note.device, sizeof note.device, "%s", device->id);
    note.owner = owner;
    note.tried = *tried;
    mb_pool_get_stats(device->pool, &note.stats);
    mb_pool_each(device->pool, add_owner, &list);
    qsort(list.sums, (size_t)list.count, sizeof list.sums[0], by_bytes);
    note.owner_count = list.count < TOP_OWNERS ? list.count : TOP_OWNERS;
    memcpy(note.owners, list.sums, sizeof note.owners);
}

void mbl_budget_tell(lua_State *L)
{
    if (!note.noted)
        return;
    note.noted = false;
    mbl_set_integer(L, "live", (int64_t)note.stats.live);
    mbl_set_integer(L, "peak", (int64_t)note.stats.live_peak);
    mbl_set_integer(L, "free", (int64_t)note.stats.free_bytes);
    mbl_set_integer(L, "largest_hole", (int64_t)note.stats.largest_hole);
    mbl_set_text(L, "device", note.device);
    mbl_set_text(L, "owner", note.owner);
    lua_createtable(L, 0, 3);
    mbl_set_integer(L, "collected_arrays", (int64_t)note.tried.arrays);
    mbl_set_integer(L, "collected_bytes", (int64_t)note.tried.bytes);
    mbl_set_integer(L, "dropped_plans", note.tried.plans);
    lua_setfield(L, -2, "tried");
    lua_createtable(L, TOP_OWNERS, 0);
    for (int i = 0; i < note.owner_count; i++) {
        lua_createtable(L, 0, 3);
        mbl_set_text(L, "owner", note.owners[i].owner ? note.owners[i].owner : "C");
        mbl_set_integer(L, "bytes", (int64_t)note.owners[i].bytes);
        mbl_set_integer(L, "blocks", (int64_t)note.owners[i].blocks);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "owners");
}
