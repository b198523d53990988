/*
** Reading datasets of HDF5 files in Lua.
*/
#ifndef MB_BINDINGS_LUA_H5_READ_H
#define MB_BINDINGS_LUA_H5_READ_H

#include "files/lua_h5_handle.h"
#include <lauxlib.h>

extern const luaL_Reg mbl_h5_read_methods[];         /* of a file: dataset, read */
extern const luaL_Reg mbl_h5_dataset_read_methods[]; /* of a dataset: read, missing */
/* Reads ranges from the arguments [first, last]; a missing one means the whole axis. Returns the
** shape without dropped axes. `ranges` has room for MB_H5_MAX_RANK. */
mb_shape mbl_check_h5_ranges(lua_State *L, int first, int last, const mb_h5_info *info,
                             mb_range *ranges);

#endif
