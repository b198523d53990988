/*
** Writing datasets of HDF5 files in Lua: new datasets, virtual ones, and slabs of existing ones.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_table.h"
#include "files/lua_h5.h"
#include "array/lua_range.h"
#include "memory/lua_array_box.h"
#include <string.h>

/* Extents that differ from 1, for comparing an array with a part of a file. */
static mb_shape squeezed(const mb_shape *shape)
{
    mb_shape result = {0, {0}};
    for (int axis = 0; axis < shape->rank; axis++)
        if (shape->dims[axis] != 1)
            result.dims[result.rank++] = shape->dims[axis];
    return result;
}

/* dataset:write(array, range, ...) */
static int dataset_write(lua_State *L)
{
    mb_h5_dataset *dataset = mbl_check_h5_dataset(L, 1);
    mb_array *array = mbl_check_array(L, 2);
    mb_range ranges[MB_H5_MAX_RANK];
    const mb_shape shape =
        mbl_check_h5_ranges(L, 3, lua_gettop(L), mb_h5_dataset_info(dataset), ranges);
    const mb_shape have = squeezed(&array->shape), want = squeezed(&shape);
    if (!mb_shape_equal(&have, &want)) {
        char a[128], b[128];
        return mbl_fail(L, MB_STATUS_SHAPE, NULL,
                        "the array has shape %s, but the selected part of '%s' has shape %s",
                        mb_shape_format(&array->shape, a, sizeof a), mb_h5_dataset_path(dataset),
                        mb_shape_format(&shape, b, sizeof b));
    }
    mbl_check(L, mb_h5_dataset_write(dataset, ranges, array));
    return 0;
}

/* dataset:place(): {offset, bytes}, where the bytes of a contiguous dataset are in a file that is
** at rest or is read without libhdf5; nil for any other, and why, if that is known. */
static int dataset_place(lua_State *L)
{
    uint64_t offset = 0, bytes = 0;
    const mb_h5_dataset *dataset = mbl_check_h5_dataset(L, 1);
    if (!mb_h5_raw_place(dataset, &offset, &bytes)) {
        lua_pushnil(L);
        lua_pushstring(L, mb_h5_raw_why(dataset));
        return 2;
    }
    lua_createtable(L, 0, 2);
    mbl_set_integer(L, "offset", (int64_t)offset);
    mbl_set_integer(L, "bytes", (int64_t)bytes);
    return 1;
}

static const char *const layout_names[] = {"chunks", "deflate",    "sparse", "early",
                                           "dtype",  "attributes", NULL};

/* chunks and deflate of the option table; `chunks` has room for MB_MAX_RANK extents. */
static mb_h5_layout check_layout(lua_State *L, int options, int rank, int64_t *chunks)
{
    mb_h5_layout layout = {.deflate = (int)mbl_option_integer(L, options, "deflate", 0)};
    layout.sparse = mbl_option_flag(L, options, "sparse");
    layout.early = mbl_option_flag(L, options, "early");
    if (mbl_option(L, options, "chunks")) {
        const mb_shape shape = mbl_check_shape(L, -1, "chunks");
        if (shape.rank != rank)
            mbl_fail(L, MB_STATUS_ARGUMENT, "chunks",
                     "chunks has %d extents, the dataset has %d axes", shape.rank, rank);
        memcpy(chunks, shape.dims, sizeof shape.dims);
        layout.chunks = chunks;
        lua_pop(L, 1);
    }
    return layout;
}

/* The options at 3 of a new dataset: its shape, and its element type. */
static mb_dtype check_new(lua_State *L, const char *const *names, const char *what, mb_shape *shape)
{
    mbl_check_options(L, 3, names, what);
    if (!mbl_option(L, 3, "shape"))
        mbl_fail(L, MB_STATUS_ARGUMENT, "shape", "%s needs a shape", what);
    *shape = mbl_check_shape(L, -1, "shape");
    return mbl_option_dtype(L, 3, MB_F32);
}

/* create_dataset(path, {shape =, dtype =, chunks =, deflate =, sparse =, early =, attributes =}) */
static int file_create_dataset(lua_State *L)
{
    static const char *const names[] = {"shape", "chunks", "deflate",    "sparse",
                                        "early", "dtype",  "attributes", NULL};
    mb_shape shape;
    int64_t chunks[MB_MAX_RANK];
    mb_h5 *file = mbl_check_h5(L, 1);
    const char *path = mbl_check_string(L, 2, "path");
    const mb_dtype dtype = check_new(L, names, "h5:create_dataset", &shape);
    const mb_h5_layout layout = check_layout(L, 3, shape.rank, chunks);
    mb_h5_dataset **slot = mbl_new_h5_dataset(L, 1);
    mbl_check(L, mb_h5_dataset_create(file, path, dtype, shape.rank, shape.dims, &layout, slot));
    mbl_write_h5_attributes(L, file, path, 3);
    return 1;
}

/* create_virtual(path, {shape =, dtype =, sources = {{file =, path =, first =, last =}, ...},
** attributes =}): each source is indices first to last of axis 1. */
static int file_create_virtual(lua_State *L)
{
    static const char *const names[] = {"shape", "dtype", "sources", "attributes", NULL};
    static const char *const members[] = {"file", "path", "first", "last"};
    mb_shape shape;
    mb_h5 *file = mbl_check_h5(L, 1);
    const char *path = mbl_check_string(L, 2, "path");
    const mb_dtype dtype = check_new(L, names, "h5:create_virtual", &shape);
    if (!mbl_option(L, 3, "sources") || !lua_istable(L, -1))
        return mbl_fail(L, MB_STATUS_ARGUMENT, "sources",
                        "h5:create_virtual needs a list of sources");
    const int list = lua_gettop(L);
    const lua_Integer count = (lua_Integer)mbl_length(L, list);
    mb_h5_source *sources =
        lua_newuserdatauv(L, (size_t)(count > 0 ? count : 1) * sizeof *sources, 0);
    int64_t next = 1;
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(L, list, i + 1);
        const int source = lua_gettop(L);
        if (!lua_istable(L, source))
            return mbl_fail(L, MB_STATUS_ARGUMENT, "sources",
                            "source %d is a %s; it must be {file =, path =, first =, last =}",
                            (int)i + 1, luaL_typename(L, source));
        for (int m = 0; m < 4; m++)
            lua_getfield(L, source, members[m]);
        const int64_t first = mbl_check_integer(L, source + 3, "first");
        const int64_t last = mbl_check_integer(L, source + 4, "last");
        if (first != next || last < first)
            return mbl_fail(L, MB_STATUS_ARGUMENT, "sources",
                            "source %d has indices %lld to %lld, but the previous one ends at %lld",
                            (int)i + 1, (long long)first, (long long)last, (long long)next - 1);
        next = last + 1;
        sources[i] =
            (mb_h5_source){mbl_check_string(L, source + 1, "file"),
                           mbl_check_string(L, source + 2, "path"), first - 1, last - first + 1};
        lua_settop(L, source - 1); /* the list keeps the texts */
    }
    if (shape.rank < 1 || next - 1 != shape.dims[0])
        return mbl_fail(L, MB_STATUS_SHAPE, "sources",
                        "the sources end at index %lld of axis 1, but the shape has %lld",
                        (long long)next - 1, shape.rank < 1 ? 0LL : (long long)shape.dims[0]);
    mb_h5_dataset **slot = mbl_new_h5_dataset(L, 1);
    mbl_check(
        L, mb_h5_virtual_create(file, path, dtype, shape.rank, shape.dims, sources, count, slot));
    mbl_write_h5_attributes(L, file, path, 3);
    return 1;
}

/* Writes the array at 3 as a new dataset. */
static void write_array(lua_State *L, mb_h5 *file, const char *path)
{
    int64_t chunks[MB_MAX_RANK];
    mb_range ranges[MB_MAX_RANK];
    mb_array *array = mbl_check_array(L, 3);
    const mb_dtype dtype = mbl_option_dtype(L, 4, array->dtype);
    const mb_h5_layout layout = check_layout(L, 4, array->shape.rank, chunks);
    if (array->device->dry)
        return;
    mb_h5_dataset **slot = mbl_new_h5_dataset(L, 1);
    mbl_check(L, mb_h5_dataset_create(file, path, dtype, array->shape.rank, array->shape.dims,
                                      &layout, slot));
    for (int axis = 0; axis < array->shape.rank; axis++)
        ranges[axis] = mbl_full_range(array->shape.dims[axis]);
    mbl_check(L, mb_h5_dataset_write(*slot, ranges, array));
    mbl_close_h5_dataset(L, -1);
    mbl_write_h5_attributes(L, file, path, 4);
}

/* write(path, array | number | string | list [, {chunks =, deflate =, dtype =, attributes =}]) */
static int file_write(lua_State *L)
{
    mb_h5 *file = mbl_check_h5(L, 1);
    const char *path = mbl_check_string(L, 2, "path");
    mbl_check_options(L, 4, layout_names, "h5:write");
    lua_settop(L, 4);
    if (mbl_array_slot(L, 3) != NULL) {
        write_array(L, file, path);
        return 0;
    }
    mbl_write_h5_value(L, file, path, 3, 4);
    mbl_write_h5_attributes(L, file, path, 4);
    return 0;
}

const luaL_Reg mbl_h5_write_methods[] = {
    {"write", file_write},
    {"create_dataset", file_create_dataset},
    {"create_virtual", file_create_virtual},
    {NULL, NULL},
};
const luaL_Reg mbl_h5_dataset_write_methods[] = {
    {"write", dataset_write}, {"place", dataset_place}, {NULL, NULL}};
