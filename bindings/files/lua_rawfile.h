/*
** Files of plain elements as arguments of C functions.
*/
#ifndef MB_BINDINGS_LUA_RAWFILE_H
#define MB_BINDINGS_LUA_RAWFILE_H

#include "files/rawfile.h"
#include <lua.h>

/* The file at `index`, or NULL if the value is not a file. */
mb_rawfile *mbl_test_rawfile(lua_State *L, int index);

/* The steps of a block in the list at `index`: bytes, one for each axis of the array. */
void mbl_check_steps(lua_State *L, int index, const mb_array *array, int64_t *steps);

/* The offset of the block at `index`: bytes, 0 or more. */
uint64_t mbl_check_offset(lua_State *L, int index);

#endif
