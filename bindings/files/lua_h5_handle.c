/*
** Handles of HDF5 in Lua. A dataset keeps its file's userdata alive (user value 1). Finalizers may
** run in any order: closing a file also closes the handles of its datasets.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_table.h"
#include "call/lua_type.h"
#include "files/lua_h5.h"

mb_h5 *mbl_check_h5(lua_State *L, int index)
{
    mb_h5 **slot = luaL_testudata(L, index, MBL_H5);
    if (!slot)
        mbl_fail(L, MB_STATUS_ARGUMENT, "file",
                 "expected an HDF5 file, not a %s (call methods with a colon)",
                 mbl_type_name(L, index));
    if (!*slot)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "the HDF5 file was never opened");
    return *slot;
}

mb_h5_dataset *mbl_check_h5_dataset(lua_State *L, int index)
{
    mb_h5_dataset **slot = luaL_testudata(L, index, MBL_H5_DATASET);
    if (slot && !*slot)
        mbl_fail(L, MB_STATUS_ARGUMENT, "dataset",
                 "the HDF5 dataset has been closed; file:dataset(path) opens it again");
    if (!slot)
        mbl_fail(L, MB_STATUS_ARGUMENT, "dataset",
                 "expected an HDF5 dataset, not a %s (call methods with a colon)",
                 mbl_type_name(L, index));
    return *slot;
}

mb_h5 **mbl_new_h5(lua_State *L)
{
    mb_h5 **slot = lua_newuserdatauv(L, sizeof *slot, 0);
    *slot = NULL;
    luaL_setmetatable(L, MBL_H5);
    return slot;
}

mb_h5 **mbl_h5_slot(lua_State *L, int index)
{
    return mbl_check_object(L, index, MBL_H5);
}

mb_h5_dataset **mbl_new_h5_dataset(lua_State *L, int file_index)
{
    file_index = lua_absindex(L, file_index);
    mb_h5_dataset **slot = lua_newuserdatauv(L, sizeof *slot, 1);
    *slot = NULL;
    luaL_setmetatable(L, MBL_H5_DATASET);
    lua_pushvalue(L, file_index);
    lua_setiuservalue(L, -2, 1);
    return slot;
}

void mbl_close_h5_dataset(lua_State *L, int index)
{
    mb_h5_dataset **slot = mbl_check_object(L, index, MBL_H5_DATASET);
    mb_h5_dataset *dataset = *slot;
    *slot = NULL;
    mb_h5_dataset_destroy(dataset);
}

void mbl_set_h5_info(lua_State *L, const mb_h5_info *info)
{
    static const char *const kinds[] = {"group", "dataset", "datatype", "dangling"};
    mbl_set_string(L, "kind", kinds[info->kind]);
    if (info->kind != MB_H5_DATASET)
        return;
    mbl_set_extents(L, "shape", info->rank, info->dims);
    mbl_set_string(L, "stored", info->stored);
    if (info->numeric)
        mbl_set_string(L, "dtype", mb_dtype_name(info->dtype));
    if (info->chunked)
        mbl_set_extents(L, "chunks", info->rank, info->chunks);
    if (info->filtered)
        mbl_set_string(L, "filters", info->filters);
    mbl_set_integer(L, "stored_bytes", info->stored_bytes);
}
