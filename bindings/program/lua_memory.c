/*
** Lua frees what it collects in runs of ten thousands of objects, and then makes as many. glibc has
** a fast path for seven blocks of a size; the others take locks as soon as the process has a second
** thread. Here a stock of free blocks of each small size is as long as the runs are. Every block is
** one of malloc, of a size that glibc has, so the stock is all that is held longer: at most
** MOST_KEPT bytes. Only the thread that runs Lua comes here.
*/
#include "program/lua_memory.h"
#include <malloc.h>
#include <stdlib.h>

#define CLASSES 16 /* class c: up to 16 c + 8 bytes, the sizes of glibc's blocks */
#define MOST_KEPT ((size_t)8 << 20)

typedef struct free_block {
    struct free_block *next;
} free_block;

static free_block *stock[CLASSES];
static size_t kept; /* bytes in the stock */

static inline size_t class_of(size_t bytes)
{
    return (bytes + 7) / 16;
}

static inline size_t room_of(size_t class)
{
    return 16 * class + 8;
}

static inline void *take(size_t bytes)
{
    const size_t class = class_of(bytes);
    if (class >= CLASSES)
        return malloc(bytes);
    free_block *block = stock[class];
    if (!block)
        return malloc(room_of(class));
    stock[class] = block->next;
    kept -= room_of(class);
    return block;
}

static inline void give(void *block, size_t bytes)
{
    const size_t class = class_of(bytes);
    if (!block || class >= CLASSES || kept > MOST_KEPT - room_of(class) ||
        malloc_usable_size(block) < room_of(class)) { /* from the state's first allocator */
        free(block);
        return;
    }
    ((free_block *)block)->next = stock[class];
    stock[class] = block;
    kept += room_of(class);
}

/* A lua_Alloc. */
static void *allocate(void *unused, void *block, size_t before, size_t bytes)
{
    (void)unused;
    if (bytes == 0) {
        give(block, before);
        return NULL;
    }
    if (!block)
        return take(bytes);
    const size_t class = class_of(bytes);
    if (class >= CLASSES)
        return realloc(block, bytes);
    return class == class_of(before) ? block : realloc(block, room_of(class));
}

void mbm_use_small_blocks(lua_State *L)
{
#if defined(__SANITIZE_ADDRESS__)
    (void)L, (void)allocate; /* the sanitizer watches each block */
#else
    lua_setallocf(L, allocate, NULL);
#endif
}

void mbm_drop_small_blocks(void)
{
    for (size_t class = 0; class < CLASSES; class ++)
        while (stock[class])
            free(take(room_of(class)));
}
