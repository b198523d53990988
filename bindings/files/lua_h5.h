/*
** HDF5 in Lua: the userdata "moonbeam.h5" (a file) and "moonbeam.h5dataset", and what the files
** lua_h5*.c give each other. Order, each calling only those before it: lua_h5_handle, lua_h5_value,
** lua_h5_read, lua_h5_write, lua_h5_file, lua_h5.
*/
#ifndef MB_BINDINGS_LUA_H5_H
#define MB_BINDINGS_LUA_H5_H

#include "files/h5/h5.h"
#include <lauxlib.h>
#include <lua.h>

#define MBL_H5 "moonbeam.h5"
#define MBL_H5_DATASET "moonbeam.h5dataset"

/* ---- lua_h5_handle.c ---- */

/* The file at `index`. */
mb_h5 *mbl_check_h5(lua_State *L, int index);
mb_h5_dataset *mbl_check_h5_dataset(lua_State *L, int index);
/* Pushes an empty file userdata; fill the slot. */
mb_h5 **mbl_new_h5(lua_State *L);
/* The slot of the file at `index`; it holds NULL after the finalizer. */
mb_h5 **mbl_h5_slot(lua_State *L, int index);
/* Pushes an empty dataset userdata that keeps the file at `file_index`; fill the slot. */
mb_h5_dataset **mbl_new_h5_dataset(lua_State *L, int file_index);
/* Closes and empties the dataset userdata at `index`. */
void mbl_close_h5_dataset(lua_State *L, int index);
/* Sets those of the members kind, shape, stored, dtype, chunks, filters and stored_bytes that the
** object has, in the table on the top of the stack. */
void mbl_set_h5_info(lua_State *L, const mb_h5_info *info);

/* ---- lua_h5_value.c ---- */

/* Methods of a file: value, attribute, attributes, set_attribute. */
extern const luaL_Reg mbl_h5_value_methods[];
/* Pushes a table of the attributes of an object that are numbers or strings. */
void mbl_push_h5_attributes(lua_State *L, mb_h5 *file, const char *path);
/* Writes the member `attributes` of the option table, if there is one. */
void mbl_write_h5_attributes(lua_State *L, mb_h5 *file, const char *path, int options);
/* Writes a number, string or list as a dataset; `dtype` of the option table is the type of
** numbers. */
void mbl_write_h5_value(lua_State *L, mb_h5 *file, const char *path, int index, int options);

/* ---- lua_h5_read.c ---- */

extern const luaL_Reg mbl_h5_read_methods[];         /* of a file: dataset, read */
extern const luaL_Reg mbl_h5_dataset_read_methods[]; /* of a dataset: read, missing ... */
/* Reads ranges from the arguments [first, last]; a missing one means the whole axis. Returns the
** shape without dropped axes. `ranges` has room for MB_H5_MAX_RANK. */
mb_shape mbl_check_h5_ranges(lua_State *L, int first, int last, const mb_h5_info *info,
                             mb_range *ranges);

/* ---- lua_h5_write.c ---- */

extern const luaL_Reg mbl_h5_write_methods[]; /* of a file: write, create_dataset, create_virtual */
extern const luaL_Reg mbl_h5_dataset_write_methods[]; /* of a dataset: write */

/* ---- lua_h5_file.c ---- */

extern const luaL_Reg mbl_h5_file_functions[]; /* open, create, scratch */
/* Methods of a file: finish, make_folder, close, walk, exists, group, link. */
extern const luaL_Reg mbl_h5_file_methods[];
int mbl_close_h5(lua_State *L); /* the method close, and __close */

#endif
