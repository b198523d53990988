/*
** Reading datasets of HDF5 files in Lua: ranges, slabs, missing parts.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_table.h"
#include "files/lua_h5.h"
#include "array/lua_range.h"
#include "device/lua_device.h"
#include "memory/lua_allocate.h"
#include "memory/lua_array_box.h"
#include <string.h>

mb_shape mbl_check_h5_ranges(lua_State *L, int first, int last, const mb_h5_info *info,
                             mb_range *ranges)
{
    mb_shape shape = {0, {0}};
    if (last - first + 1 > info->rank)
        mbl_fail(L, MB_STATUS_ARGUMENT, "range",
                 "%d ranges for a dataset of rank %d; give one for each axis", last - first + 1,
                 info->rank);
    for (int axis = 0; axis < info->rank; axis++) {
        if (first + axis <= last)
            ranges[axis] =
                mbl_check_file_range(L, first + axis, info->dims[axis], mbl_axis_name(axis));
        else
            ranges[axis] = mbl_full_range(info->dims[axis]);
        if (ranges[axis].drop)
            continue;
        if (shape.rank == MB_MAX_RANK)
            mbl_fail(
                L, MB_STATUS_SHAPE, NULL,
                "the dataset has %d axes and an array at most %d: give integers for some of them",
                info->rank, MB_MAX_RANK);
        shape.dims[shape.rank++] = ranges[axis].count;
    }
    return shape;
}

/* The index of a trailing option table (only named keys, or empty), or 0. */
static int option_index(lua_State *L, int first)
{
    const int top = lua_gettop(L);
    if (top < first || !lua_istable(L, top))
        return 0;
    lua_pushnil(L);
    if (lua_next(L, top) == 0)
        return top;
    const bool named = lua_type(L, -2) == LUA_TSTRING;
    lua_pop(L, 2);
    return named ? top : 0;
}

static mb_h5_dataset *open_dataset(lua_State *L)
{
    mb_h5 *file = mbl_check_h5(L, 1);
    const char *path = mbl_check_string(L, 2, "path");
    mb_h5_dataset **slot = mbl_new_h5_dataset(L, 1);
    mbl_check(L, mb_h5_dataset_open(file, path, slot));
    return *slot;
}

static int file_dataset(lua_State *L)
{
    open_dataset(L);
    return 1;
}

/* The common part of both read methods: ranges from `first` on, then options. */
static int read_dataset(lua_State *L, mb_h5_dataset *dataset, int first, int last, int options)
{
    static const char *const names[] = {"device", "dtype", "out", NULL};
    const mb_h5_info *info = mb_h5_dataset_info(dataset);
    mb_range ranges[MB_H5_MAX_RANK];
    mb_array *array;

    mbl_check_options(L, options, names, "h5:read");
    if (info->text)
        return mbl_fail(L, MB_STATUS_DTYPE, NULL,
                        "'%s' holds strings: read it with file:value(path)",
                        mb_h5_dataset_path(dataset));
    const mb_shape shape = mbl_check_h5_ranges(L, first, last, info, ranges);
    if (options != 0 && mbl_option(L, options, "out")) {
        array = mbl_check_array(L, -1);
        if (!mb_shape_equal(&array->shape, &shape)) {
            char have[128], want[128];
            return mbl_fail(L, MB_STATUS_SHAPE, "out",
                            "out has shape %s, but the selected part has shape %s",
                            mb_shape_format(&array->shape, have, sizeof have),
                            mb_shape_format(&shape, want, sizeof want));
        }
        mbl_check(L, mb_h5_dataset_read(dataset, ranges, array));
        return 1;
    }
    const mb_dtype dtype = mbl_option_dtype(L, options, info->dtype);
    array = mbl_create_array(L, mbl_option_device(L, options), dtype, &shape);
    if (mb_h5_dataset_read(dataset, ranges, array) != MB_STATUS_OK) {
        const mb_error cause = *mb_error_last();
        lua_pushcfunction(L, mbl_array_release);
        lua_pushvalue(L, -2);
        lua_call(L, 1, 0);
        mb_error_put(&cause);
        return mbl_raise(L);
    }
    return 1;
}

/* file:read(path, range, ... [, {device =, dtype =, out =}]) */
static int file_read(lua_State *L)
{
    const int options = option_index(L, 3);
    const int top = lua_gettop(L);
    mb_h5_dataset *dataset = open_dataset(L);
    const int opened = top + 1;
    read_dataset(L, dataset, 3, options != 0 ? options - 1 : top,
                 options != 0 ? options : opened + 1);
    mbl_close_h5_dataset(L, opened);
    return 1;
}

/* dataset:read(range, ... [, options]) */
static int dataset_read(lua_State *L)
{
    mb_h5_dataset *dataset = mbl_check_h5_dataset(L, 1);
    const int options = option_index(L, 2);
    const int last = options != 0 ? options - 1 : lua_gettop(L);
    return read_dataset(L, dataset, 2, last, options != 0 ? options : lua_gettop(L) + 1);
}

/* dataset:missing(): a list of {first, last}, the indices of axis 1 that were never written, and
** the reason; or an empty list. Raises if the data is in another file that may not be read. */
static int dataset_missing(lua_State *L)
{
    mb_h5_dataset *dataset = mbl_check_h5_dataset(L, 1);
    const int64_t(*runs)[2];
    const char *why;
    int64_t count;
    mbl_check(L, mb_h5_dataset_missing(dataset, &runs, &count, &why));
    lua_createtable(L, (int)count, 0);
    for (int64_t i = 0; i < count; i++) {
        const int64_t run[2] = {runs[i][0] + 1, runs[i][1] + 1};
        mbl_push_extents(L, 2, run);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushstring(L, why);
    return 2;
}

/* dataset:take("unsigned" or "swapped") */
static int dataset_take(lua_State *L)
{
    mb_h5_dataset *dataset = mbl_check_h5_dataset(L, 1);
    const char *how = mbl_check_string(L, 2, "how");
    const bool swapped = strcmp(how, "swapped") == 0;
    if (!swapped && strcmp(how, "unsigned") != 0)
        return mbl_fail(L, MB_STATUS_ARGUMENT, "how",
                        "how is '%s'; it must be \"unsigned\" or \"swapped\"", how);
    mbl_check(L, mb_h5_dataset_take(dataset, swapped));
    return 0;
}

/* dataset:show({frames, rows, columns}): the axes of the file that these are */
static int dataset_show(lua_State *L)
{
    int axes[3];
    mb_h5_dataset *dataset = mbl_check_h5_dataset(L, 1);
    if (!lua_istable(L, 2))
        return mbl_fail(L, MB_STATUS_ARGUMENT, "axes",
                        "axes must be a table of the numbers of three axes, not a %s",
                        luaL_typename(L, 2));
    for (int i = 0; i < 3; i++) {
        lua_rawgeti(L, 2, i + 1);
        axes[i] = (int)mbl_check_integer(L, -1, "axes") - 1;
    }
    mbl_check(L, mb_h5_dataset_show(dataset, axes));
    return 0;
}

/* dataset:sources(): the other files that its data are in, as a list */
static int dataset_sources(lua_State *L)
{
    mb_h5_dataset *dataset = mbl_check_h5_dataset(L, 1);
    const char *path;
    lua_newtable(L);
    for (int64_t i = 0;; i++) {
        mbl_check(L, mb_h5_dataset_source(dataset, i, &path));
        if (!path)
            return 1;
        lua_pushstring(L, path);
        lua_rawseti(L, -2, i + 1);
    }
}

const luaL_Reg mbl_h5_read_methods[] = {
    {"dataset", file_dataset}, {"read", file_read}, {NULL, NULL}};
const luaL_Reg mbl_h5_dataset_read_methods[] = {
    {"read", dataset_read}, {"missing", dataset_missing}, {"take", dataset_take},
    {"show", dataset_show}, {"sources", dataset_sources}, {NULL, NULL}};
