/*
** Facts about operators that need no run: descriptors, what a call would take, and how a call can
** be cut.
*/
#ifndef MB_BINDINGS_LUA_OP_DESCRIBE_H
#define MB_BINDINGS_LUA_OP_DESCRIBE_H

#include <lauxlib.h>

extern const luaL_Reg mbl_op_describe_functions[]; /* of core.op */
extern const luaL_Reg mbl_op_estimate_functions[]; /* of core.op */
extern const char *const mbl_op_combines[];        /* names of mb_op_combine */

#endif
