/*
** One operator call, whose arguments are parsed by the descriptor.
*/
#ifndef MB_BINDINGS_LUA_OP_H
#define MB_BINDINGS_LUA_OP_H

#include "ops/op.h"
#include <lua.h>

const mb_operator *mbl_check_op(lua_State *L, int index);
/* Sets the member of `params` from the value on the top of the stack. It may push a buffer, which
** must stay on the stack while the parameters are used. */
void mbl_set_param(lua_State *L, const mb_op *op, const mb_op_arg *arg, void *params);
_Noreturn int mbl_op_fail(lua_State *L, const mb_op *op, mb_status code, const char *arg,
                          const char *format, ...) MB_PRINTF(5, 6);

#endif
