/*
** Tags: what the next blocks and steps are for. Each Lua coroutine has a stack of open tags of its
** own; the innermost one is in force for what the coroutine allocates. A tag stays open until it is
** ended, also from another chunk of the prompt, or until its coroutine is gone.
*/
#ifndef MB_BINDINGS_LUA_TAG_H
#define MB_BINDINGS_LUA_TAG_H

#include <lua.h>

/* The tag that is in force for the coroutine, or NULL. */
const char *mbl_tag(lua_State *L);

#endif
