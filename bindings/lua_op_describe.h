/*
** What is known about operators without running them.
*/
#ifndef MB_BINDINGS_LUA_OP_DESCRIBE_H
#define MB_BINDINGS_LUA_OP_DESCRIBE_H

#include <lauxlib.h>

extern const luaL_Reg mbl_op_describe_functions[]; /* of core.op */

#endif
