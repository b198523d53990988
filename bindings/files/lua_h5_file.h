/*
** HDF5 files in Lua.
*/
#ifndef MB_BINDINGS_LUA_H5_FILE_H
#define MB_BINDINGS_LUA_H5_FILE_H

#include "files/lua_h5_handle.h"
#include <lauxlib.h>

extern const luaL_Reg mbl_h5_file_functions[]; /* open, create, scratch */
/* Methods of a file: finish, make_folder, close, walk, exists, group, link. */
extern const luaL_Reg mbl_h5_file_methods[];
int mbl_close_h5(lua_State *L); /* the method close, and __close */

#endif
