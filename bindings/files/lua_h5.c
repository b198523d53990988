/*
** HDF5 in Lua: userdata "moonbeam.h5" (a file) and "moonbeam.h5dataset", and the module table
** {open, create, ...}. The rules are those of runtime/files/h5/h5file.h; this file turns arguments
** into calls. Values and attributes: lua_h5_value.c.
**
** A dataset keeps its file's userdata alive (user value 1). Finalizers may come in any order:
** closing a file leaves its dataset handles closed. Closing is idempotent; a created file that was
** not finished is abandoned by close and __gc.
*/
#include "files/lua_h5.h"
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_type.h"
#include "device/lua_device.h"
#include "lua_modules.h"
#include "memory/lua_allocate.h"
#include "memory/lua_array_box.h"
#include <stdio.h>
#include <string.h>

typedef struct file_box {
    mb_h5 *file; /* NULL until filled, and after the finalizer */
} file_box;

typedef struct dataset_box {
    mb_h5_dataset *dataset;
} dataset_box;

mb_h5 *mbl_check_h5(lua_State *L, int index)
{
    file_box *box = luaL_testudata(L, index, MBL_H5);
    if (box == NULL)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                 "expected an HDF5 file, not a %s (call methods with a colon)",
                 mbl_type_name(L, index));
    if (box->file == NULL)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "the HDF5 file was never opened");
    return box->file;
}

mb_h5_dataset *mbl_check_h5_dataset(lua_State *L, int index)
{
    dataset_box *box = luaL_testudata(L, index, MBL_H5_DATASET);
    if (box == NULL || box->dataset == NULL)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                 "expected an HDF5 dataset, not a %s (call methods with a colon)",
                 mbl_type_name(L, index));
    return box->dataset;
}

/* ---- opening and closing ---- */

static file_box *new_file(lua_State *L)
{
    file_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->file = NULL;
    luaL_setmetatable(L, MBL_H5);
    return box;
}

static bool option_flag(lua_State *L, int options, const char *name)
{
    return mbl_option(L, options, name) && lua_toboolean(L, -1);
}

/* open(path [, {mode = "r" | "r+", allow_external = false, allow_missing = false}]): the file, or
** nil and an error object. */
static int h5_open(lua_State *L)
{
    static const char *const names[] = {"mode", "allow_external", "allow_missing", NULL};
    const char *path = mbl_check_string(L, 1, "path");
    const char *mode = "r";
    mbl_check_options(L, 2, names, "h5.open");
    if (mbl_option(L, 2, "mode"))
        mode = mbl_check_string(L, -1, "mode");
    if (strcmp(mode, "r") != 0 && strcmp(mode, "r+") != 0)
        return mbl_fail(
            L, MB_STATUS_ARGUMENT, "mode",
            "mode is \"r\" (read) or \"r+\" (change), not \"%s\"; new files are made by h5.create",
            mode);
    const mb_h5_access how = {
        .writable = mode[1] == '+',
        .allow_external = option_flag(L, 2, "allow_external"),
        .allow_missing = option_flag(L, 2, "allow_missing"),
    };
    file_box *box = new_file(L);
    if (mb_h5_open(path, &how, &box->file) != MB_STATUS_OK) {
        mb_error_name_op("h5.open");
        lua_pushnil(L);
        mbl_push_error(L);
        return 2;
    }
    return 1;
}

/* create(path [, {overwrite = false}]): a file that gets its name by finish(). */
static int h5_create(lua_State *L)
{
    static const char *const names[] = {"overwrite", NULL};
    const char *path = mbl_check_string(L, 1, "path");
    mbl_check_options(L, 2, names, "h5.create");
    const bool overwrite = mbl_option(L, 2, "overwrite") && lua_toboolean(L, -1);
    file_box *box = new_file(L);
    mbl_check(L, mb_h5_create(path, overwrite, &box->file));
    return 1;
}

/* scratch(folder): a file without a name; it is gone when it is closed, or with the process. */
static int h5_scratch(lua_State *L)
{
    const char *folder = mbl_check_string(L, 1, "folder");
    file_box *box = new_file(L);
    mbl_check(L, mb_h5_scratch(folder, &box->file));
    return 1;
}

/* make_folder(): makes the folder of slices beside a created file; its path. */
static int file_make_folder(lua_State *L)
{
    const char *folder;
    mbl_check(L, mb_h5_make_folder(mbl_check_h5(L, 1), &folder));
    lua_pushstring(L, folder);
    return 1;
}

/* finish([marker [, {sync = true, hold = false}]]): completes a created file; `marker` is the
** path of its completion time; sync = false: the disk is the caller's to wait for; hold: returns
** the name that the file which it replaced has until close(), or nil. */
static int file_finish(lua_State *L)
{
    static const char *const names[] = {"sync", "hold", NULL};
    mb_h5 *file = mbl_check_h5(L, 1);
    const char *marker = lua_isnoneornil(L, 2) ? NULL : mbl_check_string(L, 2, "marker");
    const char *held = NULL;
    mbl_check_options(L, 3, names, "file:finish");
    const bool sync = !mbl_option(L, 3, "sync") || lua_toboolean(L, -1);
    const bool hold = mbl_option(L, 3, "hold") && lua_toboolean(L, -1);
    mbl_check(L, mb_h5_finish(file, marker, sync, hold ? &held : NULL));
    lua_pushstring(L, held); /* nil for NULL */
    return 1;
}

static int file_close(lua_State *L)
{
    file_box *box = mbl_check_object(L, 1, MBL_H5);
    if (box->file == NULL)
        return 0;
    mbl_check(L, mb_h5_close(box->file));
    return 0;
}

static int file_gc(lua_State *L)
{
    file_box *box = mbl_check_object(L, 1, MBL_H5);
    mb_h5 *file = box->file;
    box->file = NULL;
    mb_h5_destroy(file);
    return 0;
}

/* ---- structure ---- */

static const char *kind_name(mb_h5_kind kind)
{
    static const char *const names[] = {"group", "dataset", "datatype", "dangling"};
    return names[kind];
}

static void push_extents(lua_State *L, int rank, const int64_t *dims)
{
    lua_createtable(L, rank, 0);
    for (int axis = 0; axis < rank; axis++) {
        lua_pushinteger(L, dims[axis]);
        lua_rawseti(L, -2, axis + 1);
    }
}

static void set_info(lua_State *L, const mb_h5_info *info)
{
    lua_pushstring(L, kind_name(info->kind));
    lua_setfield(L, -2, "kind");
    if (info->kind != MB_H5_DATASET)
        return;
    push_extents(L, info->rank, info->dims);
    lua_setfield(L, -2, "shape");
    lua_pushstring(L, info->stored);
    lua_setfield(L, -2, "stored");
    if (info->numeric) {
        lua_pushstring(L, mb_dtype_name(info->dtype));
        lua_setfield(L, -2, "dtype");
    }
    if (info->chunked) {
        push_extents(L, info->rank, info->chunks);
        lua_setfield(L, -2, "chunks");
    }
    if (info->filtered) {
        lua_pushstring(L, info->filters);
        lua_setfield(L, -2, "filters");
    }
    lua_pushinteger(L, (lua_Integer)info->stored_bytes);
    lua_setfield(L, -2, "stored_bytes");
}

/* walk([path [, {attributes = false}]]): a list of {path, kind, shape, dtype, stored, chunks,
** filters, link, ...}. */
static int file_walk(lua_State *L)
{
    static const char *const names[] = {"attributes", NULL};
    mb_h5 *file = mbl_check_h5(L, 1);
    const int options = lua_istable(L, 2) ? 2 : 3;
    const char *path = options == 2 || lua_isnoneornil(L, 2) ? "/" : mbl_check_string(L, 2, "path");
    const mb_h5_entry *list;
    int64_t count;
    mbl_check_options(L, options, names, "h5:walk");
    const bool attributes = mbl_option(L, options, "attributes") && lua_toboolean(L, -1);
    mbl_check(L, mb_h5_walk(file, path, &list, &count));
    lua_createtable(L, (int)count, 0);
    for (int64_t i = 0; i < count; i++) {
        lua_createtable(L, 0, 8);
        lua_pushstring(L, list[i].path);
        lua_setfield(L, -2, "path");
        if (list[i].link != NULL) {
            lua_pushstring(L, list[i].link);
            lua_setfield(L, -2, "link");
        }
        set_info(L, &list[i].info);
        if (attributes && list[i].info.kind != MB_H5_DANGLING) {
            mbl_push_h5_attributes(L, file, list[i].path);
            lua_setfield(L, -2, "attributes");
        }
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* exists(path): damage, and a link that is refused, raise; see mb_h5_find. */
static int file_exists(lua_State *L)
{
    mb_h5 *file = mbl_check_h5(L, 1);
    bool found = false;
    mbl_check(L, mb_h5_find(file, mbl_check_string(L, 2, "path"), &found));
    lua_pushboolean(L, found);
    return 1;
}

/* group(path [, nxclass]): creates it (and its parents) if need be. */
static int file_group(lua_State *L)
{
    mb_h5 *file = mbl_check_h5(L, 1);
    const char *path = mbl_check_string(L, 2, "path");
    mbl_check(L, mb_h5_group(file, path));
    if (!lua_isnoneornil(L, 3)) {
        char *text = (char *)mbl_check_string(L, 3, "nxclass");
        const mb_h5_value value = {.text = true, .count = 1, .strings = &text};
        mbl_check(L, mb_h5_attribute_write(file, path, "NX_class", &value));
    }
    return 0;
}

/* link(target, path [, {soft = false}]) */
static int file_link(lua_State *L)
{
    static const char *const names[] = {"soft", NULL};
    mb_h5 *file = mbl_check_h5(L, 1);
    const char *target = mbl_check_string(L, 2, "target");
    const char *path = mbl_check_string(L, 3, "path");
    mbl_check_options(L, 4, names, "h5:link");
    const bool soft = mbl_option(L, 4, "soft") && lua_toboolean(L, -1);
    mbl_check(L, mb_h5_link(file, target, path, soft));
    return 0;
}

/* ---- datasets ---- */

/* An empty dataset userdata on the stack that keeps the file at `file_index`. */
static dataset_box *new_dataset(lua_State *L, int file_index)
{
    file_index = lua_absindex(L, file_index);
    dataset_box *box = lua_newuserdatauv(L, sizeof *box, 1);
    box->dataset = NULL;
    luaL_setmetatable(L, MBL_H5_DATASET);
    lua_pushvalue(L, file_index);
    lua_setiuservalue(L, -2, 1);
    return box;
}

static mb_h5_dataset *open_dataset(lua_State *L)
{
    mb_h5 *file = mbl_check_h5(L, 1);
    const char *path = mbl_check_string(L, 2, "path");
    dataset_box *box = new_dataset(L, 1);
    mbl_check(L, mb_h5_dataset_open(file, path, &box->dataset));
    return box->dataset;
}

static int file_dataset(lua_State *L)
{
    open_dataset(L);
    return 1;
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

/* Integer, mb.all (or nil), or {first, last [, step]}: 1-based, inclusive, negative from the end.
** */
static mb_range check_range(lua_State *L, int index, int64_t extent, int axis)
{
    mb_range range = {.count = extent, .step = 1};
    if (lua_isnoneornil(L, index) || lua_islightuserdata(L, index))
        return range;
    int64_t first = 1, last = extent;
    if (lua_type(L, index) == LUA_TNUMBER) {
        first = last = mbl_check_integer(L, index, "index");
        range.drop = true;
    } else if (lua_istable(L, index)) {
        first = mbl_range_member(L, index, 1, 1);
        last = mbl_range_member(L, index, 2, extent);
        range.step = mbl_range_member(L, index, 3, 1);
        if (range.step < 1)
            mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                     "axis %d: the step of a range in a file is at least 1", axis + 1);
    } else {
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                 "axis %d: a range is an integer, mb.all or {first, last [, step]}, not a %s",
                 axis + 1, mbl_type_name(L, index));
    }
    const int64_t from = first < 0 ? first + extent : first - 1;
    const int64_t to = last < 0 ? last + extent : last - 1;
    if (!range.drop && to == from - 1 && from >= 0 && from <= extent) {
        range.first = from;
        range.count = 0;
        return range;
    }
    if (from < 0 || from >= extent || to < 0 || to >= extent || to < from) {
        if (range.drop)
            mbl_fail(L, MB_STATUS_SHAPE, NULL, "index %lld is outside axis %d, which has %lld",
                     (long long)first, axis + 1, (long long)extent);
        mbl_fail(L, MB_STATUS_SHAPE, NULL, "range {%lld, %lld} is outside axis %d, which has %lld",
                 (long long)first, (long long)last, axis + 1, (long long)extent);
    }
    range.first = from;
    range.count = (to - from) / range.step + 1;
    return range;
}

mb_shape mbl_check_h5_ranges(lua_State *L, int first, int last, const mb_h5_info *info,
                             mb_range *ranges)
{
    mb_shape shape = {0, {0}};
    if (last - first + 1 > info->rank)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "%d ranges for a dataset of rank %d",
                 last - first + 1, info->rank);
    for (int axis = 0; axis < info->rank; axis++) {
        if (first + axis <= last)
            ranges[axis] = check_range(L, first + axis, info->dims[axis], axis);
        else
            ranges[axis] = (mb_range){.count = info->dims[axis], .step = 1};
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

/* The rest of read: ranges from `first` on, then options. */
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
                            "out has shape %s, the part that is read has %s",
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
    const int last = options != 0 ? options - 1 : lua_gettop(L);
    const int top = lua_gettop(L);
    mb_h5_dataset *dataset = open_dataset(L);
    const int opened = top + 1;
    read_dataset(L, dataset, 3, last, options != 0 ? options : opened + 1);
    dataset_box *box = lua_touserdata(L, opened);
    mb_h5_dataset_destroy(box->dataset);
    box->dataset = NULL;
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
** why, or an empty list. Raises where the data would come from a file that may not be read. */
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
        push_extents(L, 2, run);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushstring(L, why);
    return 2;
}

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
        return mbl_fail(L, MB_STATUS_SHAPE, NULL, "the array has shape %s, the part of '%s' has %s",
                        mb_shape_format(&array->shape, a, sizeof a), mb_h5_dataset_path(dataset),
                        mb_shape_format(&shape, b, sizeof b));
    }
    mbl_check(L, mb_h5_dataset_write(dataset, ranges, array));
    return 0;
}

static const char *const layout_names[] = {"chunks", "deflate",    "sparse",
                                           "dtype",  "attributes", NULL};

/* chunks and deflate of the option table; `chunks` has room for MB_MAX_RANK extents. */
static mb_h5_layout check_layout(lua_State *L, int options, int rank, int64_t *chunks)
{
    mb_h5_layout layout = {.deflate = (int)mbl_option_integer(L, options, "deflate", 0)};
    layout.sparse = mbl_option(L, options, "sparse") && lua_toboolean(L, -1);
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

/* create_dataset(path, {shape =, dtype =, chunks =, deflate =, sparse =, attributes =}) */
static int file_create_dataset(lua_State *L)
{
    static const char *const names[] = {"shape", "chunks",     "deflate", "sparse",
                                        "dtype", "attributes", NULL};
    int64_t chunks[MB_MAX_RANK];
    mb_h5 *file = mbl_check_h5(L, 1);
    const char *path = mbl_check_string(L, 2, "path");
    mbl_check_options(L, 3, names, "h5:create_dataset");
    if (!mbl_option(L, 3, "shape"))
        return mbl_fail(L, MB_STATUS_ARGUMENT, "shape", "h5:create_dataset needs a shape");
    const mb_shape shape = mbl_check_shape(L, -1, "shape");
    const mb_dtype dtype = mbl_option_dtype(L, 3, MB_F32);
    const mb_h5_layout layout = check_layout(L, 3, shape.rank, chunks);
    dataset_box *box = new_dataset(L, 1);
    mbl_check(
        L, mb_h5_dataset_create(file, path, dtype, shape.rank, shape.dims, &layout, &box->dataset));
    mbl_write_h5_attributes(L, file, path, 3);
    return 1;
}

/* The member of a source, which the list on the stack keeps alive. */
static const char *source_text(lua_State *L, int source, const char *name)
{
    lua_getfield(L, source, name);
    const char *text = mbl_check_string(L, -1, name);
    lua_pop(L, 1);
    return text;
}

static int64_t source_index(lua_State *L, int source, const char *name)
{
    lua_getfield(L, source, name);
    const int64_t index = mbl_check_integer(L, -1, name);
    lua_pop(L, 1);
    return index;
}

/* create_virtual(path, {shape =, dtype =, sources = {{file =, path =, first =, last =}, ...},
** attributes =}): each source is indices first to last of axis 1. */
static int file_create_virtual(lua_State *L)
{
    static const char *const names[] = {"shape", "dtype", "sources", "attributes", NULL};
    mb_h5 *file = mbl_check_h5(L, 1);
    const char *path = mbl_check_string(L, 2, "path");
    mbl_check_options(L, 3, names, "h5:create_virtual");
    if (!mbl_option(L, 3, "shape"))
        return mbl_fail(L, MB_STATUS_ARGUMENT, "shape", "h5:create_virtual needs a shape");
    const mb_shape shape = mbl_check_shape(L, -1, "shape");
    const mb_dtype dtype = mbl_option_dtype(L, 3, MB_F32);
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
        luaL_checktype(L, source, LUA_TTABLE);
        const int64_t first = source_index(L, source, "first"),
                      last = source_index(L, source, "last");
        if (first != next || last < first)
            return mbl_fail(L, MB_STATUS_ARGUMENT, "sources",
                            "source %d has indices %lld to %lld; the one before it ends at %lld",
                            (int)i + 1, (long long)first, (long long)last, (long long)next - 1);
        next = last + 1;
        sources[i] = (mb_h5_source){source_text(L, source, "file"), source_text(L, source, "path"),
                                    first - 1, last - first + 1};
        lua_settop(L, source - 1);
    }
    if (shape.rank < 1 || next - 1 != shape.dims[0])
        return mbl_fail(L, MB_STATUS_SHAPE, "sources", "the sources end at index %lld of axis 1",
                        (long long)next - 1);
    dataset_box *box = new_dataset(L, 1);
    mbl_check(L, mb_h5_virtual_create(file, path, dtype, shape.rank, shape.dims, sources, count,
                                      &box->dataset));
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
    dataset_box *box = new_dataset(L, 1);
    mbl_check(L, mb_h5_dataset_create(file, path, dtype, array->shape.rank, array->shape.dims,
                                      &layout, &box->dataset));
    for (int axis = 0; axis < array->shape.rank; axis++)
        ranges[axis] = (mb_range){.count = array->shape.dims[axis], .step = 1};
    mbl_check(L, mb_h5_dataset_write(box->dataset, ranges, array));
    mb_h5_dataset_destroy(box->dataset);
    box->dataset = NULL;
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

/* ---- properties ---- */

static int file_index(lua_State *L)
{
    file_box *box = mbl_check_object(L, 1, MBL_H5);
    const char *key = mbl_check_string(L, 2, "name");
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    lua_pop(L, 1);
    if (box->file == NULL)
        lua_pushnil(L);
    else if (strcmp(key, "path") == 0)
        lua_pushstring(L, mb_h5_path(box->file));
    else if (strcmp(key, "part_path") == 0)
        lua_pushstring(L, mb_h5_part_path(box->file));
    else if (strcmp(key, "is_open") == 0)
        lua_pushboolean(L, mb_h5_is_open(box->file));
    else
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "an HDF5 file has no '%s'", key);
    return 1;
}

static int file_tostring(lua_State *L)
{
    file_box *box = mbl_check_object(L, 1, MBL_H5);
    if (box->file == NULL)
        lua_pushliteral(L, "h5 file (closed)");
    else
        lua_pushfstring(L, "h5 file '%s' (%s)", mb_h5_path(box->file),
                        !mb_h5_is_open(box->file)      ? "closed"
                        : mb_h5_is_writable(box->file) ? "writable"
                                                       : "read-only");
    return 1;
}

static int dataset_index(lua_State *L)
{
    const mb_h5_dataset *dataset = mbl_check_h5_dataset(L, 1);
    const mb_h5_info *info = mb_h5_dataset_info(dataset);
    const char *key = mbl_check_string(L, 2, "name");
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    lua_pop(L, 1);
    if (strcmp(key, "path") == 0) {
        lua_pushstring(L, mb_h5_dataset_path(dataset));
        return 1;
    }
    if (strcmp(key, "rank") == 0) {
        lua_pushinteger(L, info->rank);
        return 1;
    }
    if (strcmp(key, "is_open") == 0) {
        lua_pushboolean(L, mb_h5_dataset_is_open(dataset));
        return 1;
    }
    static const char *const known[] = {"shape",   "dtype",        "stored", "chunks",
                                        "filters", "stored_bytes", NULL};
    bool found = false;
    for (int i = 0; known[i] != NULL && !found; i++)
        found = strcmp(key, known[i]) == 0;
    if (!found)
        return mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "an HDF5 dataset has no '%s'", key);
    lua_createtable(L, 0, 8);
    set_info(L, info);
    lua_getfield(L, -1, key);
    return 1;
}

static int dataset_tostring(lua_State *L)
{
    const mb_h5_dataset *dataset = mbl_check_h5_dataset(L, 1);
    const mb_h5_info *info = mb_h5_dataset_info(dataset);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addstring(&b, "h5 dataset '");
    luaL_addstring(&b, mb_h5_dataset_path(dataset));
    luaL_addstring(&b, "' ");
    luaL_addstring(&b, info->stored);
    for (int axis = 0; axis < info->rank; axis++) {
        char text[32];
        snprintf(text, sizeof text, "%s%lld", axis > 0 ? " x " : " ", (long long)info->dims[axis]);
        luaL_addstring(&b, text);
    }
    if (!mb_h5_dataset_is_open(dataset))
        luaL_addstring(&b, " (closed)");
    luaL_pushresult(&b);
    return 1;
}

static int dataset_gc(lua_State *L)
{
    dataset_box *box = mbl_check_object(L, 1, MBL_H5_DATASET);
    mb_h5_dataset *dataset = box->dataset;
    box->dataset = NULL;
    mb_h5_dataset_destroy(dataset);
    return 0;
}

static void make_class(lua_State *L, const char *name, const luaL_Reg *metamethods,
                       const luaL_Reg *methods, lua_CFunction index)
{
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, metamethods, 0);
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_pushcclosure(L, index, 1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

int mbl_open_h5(lua_State *L)
{
    static const luaL_Reg file_meta[] = {
        {"__gc", file_gc},
        {"__close", file_close},
        {"__tostring", file_tostring},
        {NULL, NULL},
    };
    static const luaL_Reg file_methods[] = {
        {"finish", file_finish},
        {"make_folder", file_make_folder},
        {"close", file_close},
        {"walk", file_walk},
        {"exists", file_exists},
        {"group", file_group},
        {"link", file_link},
        {"dataset", file_dataset},
        {"read", file_read},
        {"write", file_write},
        {"create_dataset", file_create_dataset},
        {"create_virtual", file_create_virtual},
        {"value", mbl_h5_value},
        {"attribute", mbl_h5_attribute},
        {"attributes", mbl_h5_attributes},
        {"set_attribute", mbl_h5_set_attribute},
        {NULL, NULL},
    };
    static const luaL_Reg dataset_meta[] = {
        {"__gc", dataset_gc},
        {"__close", dataset_gc},
        {"__tostring", dataset_tostring},
        {NULL, NULL},
    };
    static const luaL_Reg dataset_methods[] = {
        {"read", dataset_read},
        {"write", dataset_write},
        {"missing", dataset_missing},
        {"close", dataset_gc},
        {NULL, NULL},
    };
    static const luaL_Reg functions[] = {
        {"open", h5_open},
        {"create", h5_create},
        {"scratch", h5_scratch},
        {NULL, NULL},
    };
    make_class(L, MBL_H5, file_meta, file_methods, file_index);
    make_class(L, MBL_H5_DATASET, dataset_meta, dataset_methods, dataset_index);
    luaL_newlib(L, functions);
    lua_pushstring(L, mb_h5_version());
    lua_setfield(L, -2, "version");
    return 1;
}
