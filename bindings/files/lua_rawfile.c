/*
** Files of plain elements in Lua: userdata "moonbeam.rawfile" and the module table {open, create,
** scratch, tiff_scratch_bytes, ...}. The rules are in runtime/files/rawfile.h and tiff_segments.h; this
** file turns arguments into calls. Closing is idempotent; close, __close and __gc remove a created
** file that was not finished.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_type.h"
#include "files/codecs/chunk_codecs.h"
#include "files/halve.h"
#include "files/inputs/unchecked.h"
#include "files/lua_rawfile.h"
#include "files/tiff_segments.h"
#include "lua_modules.h"
#include "memory/lua_array_box.h"
#include <string.h>

#define MBL_RAWFILE "moonbeam.rawfile"

typedef struct rawfile_box {
    mb_rawfile *file;
} rawfile_box;

mb_rawfile *mbl_test_rawfile(lua_State *L, int index)
{
    const rawfile_box *box = luaL_testudata(L, index, MBL_RAWFILE);
    return box ? box->file : NULL;
}

static mb_rawfile *check_file(lua_State *L)
{
    rawfile_box *box = luaL_testudata(L, 1, MBL_RAWFILE);
    if (!box || !box->file)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "expected an open file, not a %s",
                 mbl_type_name(L, 1));
    return box->file;
}

static rawfile_box *new_box(lua_State *L)
{
    rawfile_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->file = NULL;
    luaL_setmetatable(L, MBL_RAWFILE);
    return box;
}

/* open(path [, op [, part]]): `op` is the function that the user called, for the error; `part`: the
** file is one of a folder that is noted as an input. */
static int rawfile_open(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path"), *op = luaL_optstring(L, 2, "rawfile.open");
    const bool part = lua_toboolean(L, 3);
    const mb_status status = mb_rawfile_open(path, part, &new_box(L)->file);
    if (status != MB_STATUS_OK)
        mb_error_name_op(op);
    mbl_check(L, status);
    return 1;
}

/* create(path [, overwrite]): a file that gets its name by finish(). */
static int rawfile_create(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path");
    const bool overwrite = lua_toboolean(L, 2);
    mbl_check(L, mb_rawfile_create(path, overwrite, &new_box(L)->file));
    return 1;
}

/* create_kept(path, now, overwrite): the same for a file that is called `now` until then, and stays
** when it is closed. */
static int rawfile_create_kept(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path"), *now = mbl_check_string(L, 2, "now");
    const bool overwrite = lua_toboolean(L, 3);
    mbl_check(L, mb_rawfile_create_kept(path, now, overwrite, &new_box(L)->file));
    return 1;
}

/* resume_kept(path, now, overwrite): the same with the file of an earlier process. */
static int rawfile_resume_kept(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path"), *now = mbl_check_string(L, 2, "now");
    const bool overwrite = lua_toboolean(L, 3);
    mbl_check(L, mb_rawfile_resume_kept(path, now, overwrite, &new_box(L)->file));
    return 1;
}

/* keep(path [, shared [, brief]]): the file of that name, new unless it is there; it stays when it
** is closed. */
static int rawfile_keep(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path");
    const bool shared = lua_toboolean(L, 2), brief = lua_toboolean(L, 3);
    mbl_check(L, mb_rawfile_keep(path, shared, brief, &new_box(L)->file));
    return 1;
}

/* scratch(beside): a file without a name, in the folder of `beside`. */
static int rawfile_scratch(lua_State *L)
{
    const char *beside = mbl_check_string(L, 1, "beside");
    mbl_check(L, mb_rawfile_scratch(beside, &new_box(L)->file));
    return 1;
}

static int file_resize(lua_State *L)
{
    mb_rawfile *file = check_file(L);
    mbl_check(L, mb_rawfile_resize(file, mbl_check_bytes(L, 2, "bytes")));
    return 0;
}

uint64_t mbl_check_offset(lua_State *L, int index)
{
    const int64_t offset = mbl_check_integer(L, index, "offset");
    if (offset < 0)
        mbl_fail(L, MB_STATUS_ARGUMENT, "offset", "offset must be 0 or more, got %lld",
                 (long long)offset);
    return (uint64_t)offset;
}

void mbl_check_steps(lua_State *L, int index, const mb_array *array, int64_t *steps)
{
    if (!lua_istable(L, index) || lua_rawlen(L, index) != (lua_Unsigned)array->shape.rank)
        mbl_fail(L, MB_STATUS_ARGUMENT, "steps",
                 "steps must be a list with one number of bytes for each axis");
    for (int axis = 0; axis < array->shape.rank; axis++) {
        lua_rawgeti(L, index, axis + 1);
        steps[axis] = mbl_check_integer(L, -1, "steps");
        lua_pop(L, 1);
    }
}

/* The array at 2, and its steps in the list at 4. */
static mb_array *check_block(lua_State *L, int64_t *steps)
{
    mb_array *array = mbl_check_array(L, 2);
    mbl_check_steps(L, 4, array, steps);
    return array;
}

/* The samples whose name is on top of the stack, "" or nil for elements. */
static mb_samples check_samples(lua_State *L)
{
    static const char *const kinds[] = {"",    "i8",  "i16",  "u32",
                                        "i64", "u64", "bits", NULL}; /* as mb_samples */
    return (mb_samples)luaL_checkoption(L, -1, "", kinds);
}

/* The list of numbers in the field `name` of the table at `index`, of which there are `count`;
** false where there is no list. */
static bool check_indices(lua_State *L, int index, const char *name, int count, int64_t *values)
{
    const bool there = lua_getfield(L, index, name) == LUA_TTABLE;
    if (there && lua_rawlen(L, -1) != (lua_Unsigned)count)
        mbl_fail(L, MB_STATUS_ARGUMENT, name, "%s must be a list of %d numbers", name, count);
    for (int i = 0; there && i < count; i++) {
        lua_rawgeti(L, -1, i + 1);
        values[i] = mbl_check_integer(L, -1, name);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return there;
}

/* read(array, offset, steps [, {swap, samples, first}]): as mb_stored has them. */
static int file_read(lua_State *L)
{
    int64_t steps[MB_MAX_RANK], first[MB_MAX_RANK];
    mb_stored stored = {.samples = MB_SAMPLES_AS_STORED};
    mb_rawfile *file = check_file(L);
    mb_array *array = check_block(L, steps);
    const uint64_t offset = mbl_check_offset(L, 3);
    if (lua_istable(L, 5)) {
        lua_getfield(L, 5, "swap");
        stored.swap = lua_toboolean(L, -1);
        lua_getfield(L, 5, "samples");
        stored.samples = check_samples(L);
        if (check_indices(L, 5, "first", array->shape.rank, first))
            stored.first = first;
    }
    mbl_check(L, mb_rawfile_read(file, offset, steps, &stored, array));
    return 0;
}

/* write(array, offset, steps) */
static int file_write(lua_State *L)
{
    int64_t steps[MB_MAX_RANK];
    mb_rawfile *file = check_file(L);
    mb_array *array = check_block(L, steps);
    const uint64_t offset = mbl_check_offset(L, 3);
    mbl_check(L, mb_rawfile_write(file, offset, steps, array));
    return 0;
}

/* get(offset, count): bytes as a string, for headers. */
static int file_get(lua_State *L)
{
    luaL_Buffer b;
    mb_rawfile *file = check_file(L);
    const uint64_t offset = mbl_check_offset(L, 2);
    const int64_t count = mbl_check_integer(L, 3, "count");
    if (count < 0 || (uint64_t)count > mb_rawfile_bytes(file) ||
        offset > mb_rawfile_bytes(file) - (uint64_t)count)
        return mbl_fail(L, MB_STATUS_IO, NULL,
                        "'%s' is truncated: %lld bytes are expected at offset %llu, but the file "
                        "has %llu bytes",
                        mb_rawfile_path(file), (long long)count, (unsigned long long)offset,
                        (unsigned long long)mb_rawfile_bytes(file));
    char *to = luaL_buffinitsize(L, &b, (size_t)count);
    mbl_check(L, mb_rawfile_get(file, offset, to, (uint64_t)count));
    luaL_pushresultsize(&b, (size_t)count);
    return 1;
}

/* put(offset, string) */
static int file_put(lua_State *L)
{
    size_t length;
    mb_rawfile *file = check_file(L);
    const uint64_t offset = mbl_check_offset(L, 2);
    const char *text = luaL_checklstring(L, 3, &length);
    mbl_check(L, mb_rawfile_put(file, offset, text, length));
    return 0;
}

static int file_finish(lua_State *L)
{
    mbl_check(L, mb_rawfile_finish(check_file(L)));
    return 0;
}

static int file_close(lua_State *L)
{
    rawfile_box *box = mbl_check_object(L, 1, MBL_RAWFILE);
    if (box->file)
        mb_rawfile_close(box->file);
    return 0;
}

static int file_gc(lua_State *L)
{
    rawfile_box *box = mbl_check_object(L, 1, MBL_RAWFILE);
    mb_rawfile *file = box->file;
    box->file = NULL;
    mb_rawfile_destroy(file);
    return 0;
}

/* now(): the name that the file has now, or nil. */
static int file_now(lua_State *L)
{
    lua_pushstring(L, mb_rawfile_now(check_file(L)));
    return 1;
}

static int file_bytes(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)mb_rawfile_bytes(check_file(L)));
    return 1;
}

/* The integer `i` of the list at `index`. */
static int64_t check_item(lua_State *L, int index, int i, const char *name)
{
    luaL_checktype(L, index, LUA_TTABLE);
    lua_rawgeti(L, index, i);
    const int64_t value = mbl_check_integer(L, -1, name);
    lua_pop(L, 1);
    return value;
}

/* halve({out, one, two}, {offset of each}, {rows, columns}, dtype): files with dense slices. */
static int rawfile_halve(lua_State *L)
{
    mb_file_slice slices[3];
    luaL_checktype(L, 1, LUA_TTABLE);
    for (int i = 0; i < 3; i++) {
        lua_rawgeti(L, 1, i + 1);
        slices[i].file = mbl_test_rawfile(L, -1);
        lua_pop(L, 1);
        if (!slices[i].file)
            return mbl_fail(L, MB_STATUS_ARGUMENT, "files", "halve takes three open files");
        slices[i].offset = (uint64_t)check_item(L, 2, i + 1, "offset");
    }
    const int64_t rows = check_item(L, 3, 1, "rows"), columns = check_item(L, 3, 2, "columns");
    mbl_check(L,
              mb_halve_slices(slices, slices + 1, rows, columns, mbl_check_dtype(L, 4, "dtype")));
    return 0;
}

/* ---- pages of TIFFs ---- */

/* A list of whole numbers as userdata on the stack. */
static const uint64_t *check_list(lua_State *L, int index, const char *name, int64_t *count)
{
    if (lua_getfield(L, index, name) != LUA_TTABLE)
        mbl_fail(L, MB_STATUS_ARGUMENT, name, "a page needs the list '%s'", name);
    const int list = lua_gettop(L);
    *count = (int64_t)lua_rawlen(L, list);
    uint64_t *values = lua_newuserdatauv(L, (size_t)(*count + 1) * sizeof *values, 0);
    for (int64_t i = 0; i < *count; i++) {
        lua_rawgeti(L, list, i + 1);
        const int64_t value = mbl_check_integer(L, -1, name);
        if (value < 0)
            mbl_fail(L, MB_STATUS_IO, name, "element %lld of '%s' is %lld", (long long)i + 1, name,
                     (long long)value);
        values[i] = (uint64_t)value;
        lua_pop(L, 1);
    }
    return values;
}

/* The place of a page in the table at `index`: {origin, extents, first, count, name} as
** mb_samples_place has them; `first` and `count` may be left out, and so may the name, which is
** that of the file then. The table keeps the text of a name. */
static mb_samples_place check_place(lua_State *L, int index)
{
    int64_t extents[MB_MAX_RANK] = {0};
    lua_getfield(L, index, "extents");
    luaL_checktype(L, -1, LUA_TTABLE);
    const lua_Unsigned rank = lua_rawlen(L, -1);
    if (rank > MB_MAX_RANK)
        mbl_fail(L, MB_STATUS_SHAPE, "extents", "a page has %d axes at most", MB_MAX_RANK);
    check_indices(L, index, "extents", (int)rank, extents);
    for (lua_Unsigned axis = 0; axis < rank; axis++)
        if (extents[axis] < 1)
            mbl_fail(L, MB_STATUS_SHAPE, "extents", "a page has the extent %lld",
                     (long long)extents[axis]);
    lua_getfield(L, index, "name");
    mb_samples_place place = mb_samples_place_of(luaL_optstring(L, -1, NULL), (int)rank, extents);
    check_indices(L, index, "origin", (int)rank, place.origin);
    check_indices(L, index, "first", (int)rank, place.first);
    check_indices(L, index, "count", (int)rank, place.count);
    return place;
}

/* The page in the table at `index`: {swap, samples, bits, compression, predictor, rows, columns,
** segment_rows, segment_columns, offsets, bytes, place (may be nil)}. Leaves its lists and its place
** on the stack. */
static mb_tiff_page check_page(lua_State *L, int index)
{
    int64_t offsets = 0, bytes = 0;
    luaL_checktype(L, index, LUA_TTABLE);
    lua_getfield(L, index, "samples");
    mb_tiff_page page = {
        .samples = check_samples(L),
        .bits = mbl_option_integer(L, index, "bits", 0),
        .compression = mbl_option_integer(L, index, "compression", MB_TIFF_PLAIN),
        .predictor = mbl_option_integer(L, index, "predictor", 1),
        .rows = mbl_option_integer(L, index, "rows", 0),
        .columns = mbl_option_integer(L, index, "columns", 0),
        .segment_rows = mbl_option_integer(L, index, "segment_rows", 0),
        .segment_columns = mbl_option_integer(L, index, "segment_columns", 0),
    };
    lua_getfield(L, index, "swap");
    page.swap = lua_toboolean(L, -1);
    page.offsets = check_list(L, index, "offsets", &offsets);
    page.bytes = check_list(L, index, "bytes", &bytes);
    if (offsets != bytes)
        mbl_fail(L, MB_STATUS_IO, NULL, "the TIFF page has %lld offsets and %lld byte counts",
                 (long long)offsets, (long long)bytes);
    page.count = offsets;
    if (lua_getfield(L, index, "place") == LUA_TTABLE) {
        const mb_samples_place place = check_place(L, lua_gettop(L));
        mb_samples_place *kept = lua_newuserdatauv(L, sizeof *kept, 0);
        *kept = place;
        page.place = kept;
    }
    return page;
}

/* read_tiff(array, page, first_row, first_column [, scratch]); rows and columns are 0-based. */
static int file_read_tiff(lua_State *L)
{
    mb_rawfile *file = check_file(L);
    mb_array *array = mbl_check_array(L, 2);
    const int64_t row = mbl_check_integer(L, 4, "first_row");
    const int64_t column = mbl_check_integer(L, 5, "first_column");
    mb_array *scratch = lua_isnoneornil(L, 6) ? NULL : mbl_check_array(L, 6);
    lua_settop(L, 6);
    const mb_tiff_page page = check_page(L, 3);
    mbl_check(L, mb_tiff_read(file, &page, row, column, array, scratch));
    return 0;
}

/* unchecked(): the first file of which a checksum was cut off, and whether there are others; nil. */
static int rawfile_unchecked(lua_State *L)
{
    bool others;
    lua_pushstring(L, mb_unchecked_take(&others));
    lua_pushboolean(L, others);
    return 2;
}

/* read_chunks(files, array, pages [, scratch]): a chunk of each open file, a page of one strip, to
** the first elements of the array (chunk, row, column). */
static int rawfile_read_chunks(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TTABLE);
    mb_array *array = mbl_check_array(L, 2);
    mb_array *scratch = lua_isnoneornil(L, 4) ? NULL : mbl_check_array(L, 4);
    lua_settop(L, 4);
    const int64_t count = (int64_t)lua_rawlen(L, 3);
    mb_tiff_chunk *chunks = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *chunks, 0);
    for (int64_t i = 0; i < count; i++) {
        luaL_checkstack(L, 16, "too many chunks");
        lua_rawgeti(L, 1, i + 1);
        chunks[i].file = mbl_test_rawfile(L, -1);
        lua_pop(L, 1);
        if (!chunks[i].file)
            return mbl_fail(L, MB_STATUS_ARGUMENT, "files", "a chunk needs an open file");
        lua_rawgeti(L, 3, i + 1);
        chunks[i].page = check_page(L, lua_gettop(L));
    }
    mbl_check(L, mb_tiff_read_chunks(chunks, count, array, scratch));
    return 0;
}

/* lacks(codec [, inner]): why "lz4", "zstd" or "blosc" (with the compressor `inner` in it) cannot be
** decoded on this machine, with the remedy; nil where it can. */
static int rawfile_lacks(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1), *inner = luaL_optstring(L, 2, NULL);
    for (mb_codec codec = 0; codec < MB_CODEC_COUNT; codec++)
        if (strcmp(mb_codec_name(codec), name) == 0) {
            lua_pushstring(L, mb_codec_missing(codec, inner));
            return 1;
        }
    return mbl_fail(L, MB_STATUS_ARGUMENT, "codec", "there is no codec '%s'", name);
}

/* tiff_scratch_bytes(page, dtype): for one thread. */
static int tiff_scratch_bytes(lua_State *L)
{
    const mb_dtype dtype = mbl_check_dtype(L, 2, "dtype");
    const mb_tiff_page page = check_page(L, 1);
    lua_pushinteger(L, (lua_Integer)mb_tiff_scratch_bytes(&page, dtype));
    return 1;
}

static int file_tostring(lua_State *L)
{
    const rawfile_box *box = mbl_check_object(L, 1, MBL_RAWFILE);
    if (!box->file)
        lua_pushliteral(L, "file (closed)");
    else
        lua_pushfstring(L, "file '%s'%s", mb_rawfile_path(box->file),
                        mb_rawfile_is_open(box->file) ? "" : " (closed)");
    return 1;
}

int mbl_open_rawfile(lua_State *L)
{
    static const luaL_Reg metamethods[] = {
        {"__gc", file_gc},
        {"__close", file_close},
        {"__tostring", file_tostring},
        {NULL, NULL},
    };
    static const luaL_Reg methods[] = {
        {"read", file_read},
        {"write", file_write},
        {"get", file_get},
        {"put", file_put},
        {"resize", file_resize},
        {"finish", file_finish},
        {"close", file_close},
        {"bytes", file_bytes},
        {"read_tiff", file_read_tiff},
        {"now", file_now},
        {NULL, NULL},
    };
    static const luaL_Reg functions[] = {
        {"open", rawfile_open},
        {"create", rawfile_create},
        {"create_kept", rawfile_create_kept},
        {"resume_kept", rawfile_resume_kept},
        {"keep", rawfile_keep},
        {"scratch", rawfile_scratch},
        {"halve", rawfile_halve},
        {"tiff_scratch_bytes", tiff_scratch_bytes},
        {"read_chunks", rawfile_read_chunks},
        {"lacks", rawfile_lacks},
        {"unchecked", rawfile_unchecked},
        {NULL, NULL},
    };
    mbl_register_type(L, MBL_RAWFILE, metamethods, methods);
    luaL_newlib(L, functions);
    return 1;
}
