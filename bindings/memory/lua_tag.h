/*
** Tags name the purpose of the next blocks and steps. Each Lua coroutine has its own stack of open
** tags; the innermost one applies to the coroutine's allocations. A tag stays open until it is
** ended (another chunk of the prompt may do that) or its coroutine is collected. It is the pool's
** tag (mb_pool_tag) only while the coroutine allocates or releases; elsewhere a thread has none.
*/
#ifndef MB_BINDINGS_LUA_TAG_H
#define MB_BINDINGS_LUA_TAG_H

#include <lua.h>

/* The tag that applies to the coroutine, or NULL. */
const char *mbl_tag(lua_State *L);

#endif
