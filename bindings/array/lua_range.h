/*
** Ranges and indices of Lua callers, for arrays, datasets of files, carriers and scans. The rule:
**
**   i                     one element; the axis is dropped
**   mb.all, nil           the whole axis
**   {first, last[, step]} both ends included; a missing first or last is the end of the axis
**
** Indices count from 1; negative ones count from the end of the axis. Both ends must lie on the
** axis. A range without elements is written {k, k - 1}, which is what a loop over 0 elements gives
** ({k, k + 1, -1} for a negative step). Every other range that ends before it begins is an error,
** because an unintended empty view would silently give a wrong result. A negative step counts down.
** Files are read upward, so a range of a file needs a positive step.
*/
#ifndef MB_BINDINGS_LUA_RANGE_H
#define MB_BINDINGS_LUA_RANGE_H

#include "array/array.h"
#include <lua.h>

/* The text "axis 1" for axis 0, for messages. */
const char *mbl_axis_name(int axis);
mb_range mbl_full_range(int64_t extent);
/* The position from 0 of an index; raises if it is not on the axis `what`. */
int64_t mbl_check_index(lua_State *L, int64_t index, int64_t extent, const char *what);
/* The range at `index` of the stack. A range without elements has first 0. */
mb_range mbl_check_range(lua_State *L, int index, int64_t extent, const char *what);
/* The same for a file: raises for a negative step. */
mb_range mbl_check_file_range(lua_State *L, int index, int64_t extent, const char *what);
void mbl_push_all(lua_State *L); /* the value mb.all */

#endif
