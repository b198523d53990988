/*
** HDF5 files in Lua: opening, creating, closing, and their structure. Closing is idempotent; close
** and __gc abandon a created file that was not finished.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_table.h"
#include "files/lua_h5.h"
#include <string.h>

/* ---- opening and closing ---- */

/* open(path [, {mode = "r" | "r+", allow_external = false, allow_missing = false, swmr = false,
** replaceable = false}]): the file, or nil and an error object. */
static int h5_open(lua_State *L)
{
    static const char *const names[] = {"mode", "allow_external", "allow_missing",
                                        "swmr", "replaceable",    NULL};
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
        .allow_external = mbl_option_flag(L, 2, "allow_external"),
        .allow_missing = mbl_option_flag(L, 2, "allow_missing"),
        .swmr = mbl_option_flag(L, 2, "swmr"),
        .replaceable = mbl_option_flag(L, 2, "replaceable"),
    };
    mb_h5 **slot = mbl_new_h5(L);
    if (mb_h5_open(path, &how, slot) != MB_STATUS_OK) {
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
    const bool overwrite = mbl_option_flag(L, 2, "overwrite");
    mb_h5 **slot = mbl_new_h5(L);
    mbl_check(L, mb_h5_create(path, overwrite, slot));
    return 1;
}

/* scratch(folder): a file without a name; it disappears when it is closed or the process ends. */
static int h5_scratch(lua_State *L)
{
    const char *folder = mbl_check_string(L, 1, "folder");
    mb_h5 **slot = mbl_new_h5(L);
    mbl_check(L, mb_h5_scratch(folder, slot));
    return 1;
}

/* make_folder(): makes the folder of slices beside a created file; returns its path. */
static int file_make_folder(lua_State *L)
{
    const char *folder;
    mbl_check(L, mb_h5_make_folder(mbl_check_h5(L, 1), &folder));
    lua_pushstring(L, folder);
    return 1;
}

/* rest(): has libhdf5 close a created file until more than bytes of its datasets is written to it;
** false where it must stay open. */
static int file_rest(lua_State *L)
{
    bool rests = false;
    mbl_check(L, mb_h5_rest(mbl_check_h5(L, 1), &rests));
    lua_pushboolean(L, rests);
    return 1;
}

/* finish([marker [, {sync = true, hold = false}]]): completes a created file. `marker` is the path
** of its completion time. sync = false: the caller waits for the disk. hold: the file that was
** replaced is kept until close(); returns its name, or nil. */
static int file_finish(lua_State *L)
{
    static const char *const names[] = {"sync", "hold", NULL};
    mb_h5 *file = mbl_check_h5(L, 1);
    const char *marker = lua_isnoneornil(L, 2) ? NULL : mbl_check_string(L, 2, "marker");
    const char *held = NULL;
    mbl_check_options(L, 3, names, "file:finish");
    const bool sync = !mbl_option(L, 3, "sync") || lua_toboolean(L, -1);
    const bool hold = mbl_option_flag(L, 3, "hold");
    mbl_check(L, mb_h5_finish(file, marker, sync, hold ? &held : NULL));
    lua_pushstring(L, held); /* nil for NULL */
    return 1;
}

int mbl_close_h5(lua_State *L)
{
    mb_h5 **slot = mbl_h5_slot(L, 1);
    if (!*slot)
        return 0;
    mbl_check(L, mb_h5_close(*slot));
    return 0;
}

/* ---- structure ---- */

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
    const bool attributes = mbl_option_flag(L, options, "attributes");
    mbl_check(L, mb_h5_walk(file, path, &list, &count));
    lua_createtable(L, (int)count, 0);
    for (int64_t i = 0; i < count; i++) {
        lua_createtable(L, 0, 8);
        mbl_set_string(L, "path", list[i].path);
        mbl_set_string(L, "link", list[i].link);
        mbl_set_h5_info(L, &list[i].info);
        if (attributes && list[i].info.kind != MB_H5_DANGLING) {
            mbl_push_h5_attributes(L, file, list[i].path);
            lua_setfield(L, -2, "attributes");
        }
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* exists(path): raises for damage and for a link that is refused; see mb_h5_find. */
static int file_exists(lua_State *L)
{
    mb_h5 *file = mbl_check_h5(L, 1);
    bool found = false;
    mbl_check(L, mb_h5_find(file, mbl_check_string(L, 2, "path"), &found));
    lua_pushboolean(L, found);
    return 1;
}

/* group(path [, nxclass]): creates the group and its parents if they do not exist. */
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
    const bool soft = mbl_option_flag(L, 4, "soft");
    mbl_check(L, mb_h5_link(file, target, path, soft));
    return 0;
}

const luaL_Reg mbl_h5_file_functions[] = {
    {"open", h5_open}, {"create", h5_create}, {"scratch", h5_scratch}, {NULL, NULL}};
const luaL_Reg mbl_h5_file_methods[] = {
    {"finish", file_finish},
    {"make_folder", file_make_folder},
    {"rest", file_rest},
    {"close", mbl_close_h5},
    {"walk", file_walk},
    {"exists", file_exists},
    {"group", file_group},
    {"link", file_link},
    {NULL, NULL},
};
