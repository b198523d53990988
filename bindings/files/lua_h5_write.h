/*
** Writing datasets of HDF5 files in Lua.
*/
#ifndef MB_BINDINGS_LUA_H5_WRITE_H
#define MB_BINDINGS_LUA_H5_WRITE_H

#include "files/lua_h5_handle.h"
#include <lauxlib.h>

extern const luaL_Reg mbl_h5_write_methods[]; /* of a file: write, create_dataset, create_virtual */
extern const luaL_Reg mbl_h5_dataset_write_methods[]; /* of a dataset: write */

#endif
