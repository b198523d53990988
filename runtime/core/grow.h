/*
** Lists that grow by one element at a time.
*/
#ifndef MB_CORE_GROW_H
#define MB_CORE_GROW_H

#include <stdint.h>
#include <stdlib.h>

/* The list with room for one more element of `bytes` bytes; it has `count` elements, and room for
** *room. NULL, with the list as it was, where memory is short. */
static inline void *mb_grow(void *list, int64_t count, int64_t *room, size_t bytes)
{
    if (count < *room)
        return list;
    const int64_t more = *room == 0 ? 16 : 2 * *room;
    void *grown = realloc(list, (size_t)more * bytes);
    if (grown)
        *room = more;
    return grown;
}

#endif
