/*
** What lua_h5.c and lua_h5_value.c share.
*/
#ifndef MB_BINDINGS_LUA_H5_H
#define MB_BINDINGS_LUA_H5_H

#include "files/h5/h5file.h"
#include "memory/lua_array_box.h"

#define MBL_H5 "moonbeam.h5"
#define MBL_H5_DATASET "moonbeam.h5dataset"

mb_h5 *mbl_check_h5(lua_State *L, int index); /* clears the error record */

mb_h5_dataset *mbl_check_h5_dataset(lua_State *L, int index); /* likewise */
/* Ranges from the arguments [first, last]; missing ones take the whole axis. The shape without
** dropped axes. `ranges` has room for MB_H5_MAX_RANK. */
mb_shape mbl_check_h5_ranges(lua_State *L, int first, int last, const mb_h5_info *info,
                             mb_range *ranges);

/* Methods of a file. */
int mbl_h5_value(lua_State *L);
int mbl_h5_attribute(lua_State *L);
int mbl_h5_attributes(lua_State *L);
int mbl_h5_set_attribute(lua_State *L);

/* Pushes a table of the attributes of an object that are numbers or strings. */
void mbl_push_h5_attributes(lua_State *L, mb_h5 *file, const char *path);
/* Writes the member `attributes` of the option table, if there is one. */
void mbl_write_h5_attributes(lua_State *L, mb_h5 *file, const char *path, int options);
/* Writes a number, string or list as a dataset; `dtype` of the option table is the type of numbers.
** */
void mbl_write_h5_value(lua_State *L, mb_h5 *file, const char *path, int index, int options);

#endif
