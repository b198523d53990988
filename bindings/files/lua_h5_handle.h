/*
** The userdata of HDF5: "moonbeam.h5" (a file) and "moonbeam.h5dataset".
*/
#ifndef MB_BINDINGS_LUA_H5_HANDLE_H
#define MB_BINDINGS_LUA_H5_HANDLE_H

#include "files/h5/library/h5types.h"
#include <lua.h>

#define MBL_H5 "moonbeam.h5"
#define MBL_H5_DATASET "moonbeam.h5dataset"

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
/* Pushes a list of extents. */
void mbl_push_extents(lua_State *L, int rank, const int64_t *dims);
/* Sets those of the members kind, shape, stored, dtype, chunks, filters and stored_bytes that the
** object has, in the table on the top of the stack. */
void mbl_set_h5_info(lua_State *L, const mb_h5_info *info);

#endif
