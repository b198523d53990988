/*
** Memory that is spread over the ranks, as arguments of C functions.
*/
#ifndef MB_BINDINGS_LUA_SPREAD_H
#define MB_BINDINGS_LUA_SPREAD_H

#include "cluster/spread.h"
#include <lua.h>

/* The memory at `index`, or NULL if the value is not that, or has been closed. */
mb_spread *mbl_test_spread(lua_State *L, int index);

/* Pushes core.cluster.spread. */
void mbl_open_spread(lua_State *L);

#endif
