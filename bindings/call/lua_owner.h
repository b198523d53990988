/*
** The Lua line that something belongs to, interned for the life of the process.
*/
#ifndef MB_BINDINGS_LUA_OWNER_H
#define MB_BINDINGS_LUA_OWNER_H

#include <lua.h>
#include <stdbool.h>

/* "file.lua:12" of the nearest Lua caller outside the module's own Lua half, or NULL when no Lua
** function runs. */
const char *mbl_caller(lua_State *L);
/* The same, or "C"; faster. Only for C functions called by Lua (not for hooks). */
const char *mbl_owner(lua_State *L);
#define MBL_MOST_CALLERS 10

/* Pushes the list of the lines outside the module's own Lua half that are running on the innermost
** `levels` of the stack, innermost first, without those equal to the one before; `first` (interned
** or NULL) is the one before the first. Returns their number. */
int mbl_push_callers(lua_State *L, const char *first, int levels);
/* Is the function that runs one of the module's own Lua half? For hooks. */
bool mbl_in_library(lua_State *L);
/* The text, interned. */
const char *mbl_intern(const char *text);
/* Sets the folder of the module's own Lua files; callers there are skipped. */
void mbl_set_home(const char *folder);
/* A Lua function: call(f, ...) calls f(...). The search for a line to blame ends at its frame. */
int mbl_call_apart(lua_State *L);

#endif
