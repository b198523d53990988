/*
** Calls that signals can stop.
*/
#ifndef MB_BINDINGS_LUA_INTERRUPT_H
#define MB_BINDINGS_LUA_INTERRUPT_H

#include <lua.h>
#include <stdbool.h>

/* lua_pcall with a traceback, interruptible by Ctrl-C, SIGTERM and SIGHUP: the first one sets the
** cancel flag and raises a "cancelled" error at the next Lua instruction; a second one ends the
** process. The flag is clear afterwards. */
int mbl_call(lua_State *L, int arguments, int results);
/* The signal that stopped the last mbl_call, or 0. */
int mbl_stop_signal(void);
/* From now on the first stop waits, until mbl_let_stop or the end of the mbl_call. A second one
** does not. */
void mbl_hold_stop(void);
/* Ends that, and raises a stop that waits. */
int mbl_let_stop(lua_State *L);
bool mbl_stop_waits(void);
/* What a signal does, without one: sets the cancel flag, or waits. */
void mbl_ask_stop(void);
/* Replaces coroutine.resume and coroutine.wrap of the state by versions that record which coroutine
** runs, so that mbl_call can stop it. */
void mbl_open_coroutines(lua_State *L);

#endif
