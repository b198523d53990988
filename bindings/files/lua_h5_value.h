/*
** Small values between Lua and HDF5: attributes, and scalar, string and list datasets.
*/
#ifndef MB_BINDINGS_LUA_H5_VALUE_H
#define MB_BINDINGS_LUA_H5_VALUE_H

#include "files/lua_h5_handle.h"
#include <lauxlib.h>

/* Methods of a file: value, attribute, attributes, set_attribute. */
extern const luaL_Reg mbl_h5_value_methods[];
/* Pushes a table of the attributes of an object that are numbers or strings. */
void mbl_push_h5_attributes(lua_State *L, mb_h5 *file, const char *path);
/* Writes the member `attributes` of the option table, if there is one. */
void mbl_write_h5_attributes(lua_State *L, mb_h5 *file, const char *path, int options);
/* Writes a number, string or list as a dataset; `dtype` of the option table is the type of
** numbers. */
void mbl_write_h5_value(lua_State *L, mb_h5 *file, const char *path, int index, int options);

#endif
