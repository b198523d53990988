/*
** The submodules of the C half. Each opener pushes the submodule's table; luaopen_moonbeam_core
** calls the openers in this order.
*/
#ifndef MB_BINDINGS_LUA_MODULES_H
#define MB_BINDINGS_LUA_MODULES_H

#include <lua.h>

/* "garbage" comes first: its sentinel must be finalized last. */
#define MBL_MODULES(X)                                                                             \
    X(garbage)                                                                                     \
    X(error)                                                                                       \
    X(unknown)                                                                                     \
    X(range)                                                                                       \
    X(array)                                                                                       \
    X(counts)                                                                                      \
    X(device)                                                                                      \
    X(dry)                                                                                         \
    X(tag)                                                                                         \
    X(pool)                                                                                        \
    X(ledger)                                                                                      \
    X(op)                                                                                          \
    X(fft)                                                                                         \
    X(h5)                                                                                          \
    X(cluster)                                                                                     \
    X(rawfile)                                                                                     \
    X(xml) X(picture) X(target) X(unfinished) X(debug) X(carrier) X(timer) X(system) X(input)

#define MBL_DECLARE(name) int mbl_open_##name(lua_State *L);
MBL_MODULES(MBL_DECLARE)

#endif
