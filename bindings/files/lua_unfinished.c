/*
** Unfinished runs in Lua: userdata "moonbeam.unfinished", the folder with the journal
** (runtime/files/unfinished.h), and the module table core.unfinished with the files in it: HDF5
** files that stay where they are when a process ends, and the heads and hashes by which a later
** process goes on with them. Closing is idempotent and leaves the folder alone.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_type.h"
#include "files/lua_h5.h"
#include "files/regions.h"
#include "files/unfinished.h"
#include "lua_modules.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define UNFINISHED "moonbeam.unfinished"

typedef struct run_box {
    mb_unfinished *run; /* NULL: closed */
} run_box;

static mb_unfinished *check_run(lua_State *L)
{
    const run_box *box = mbl_check_object(L, 1, UNFINISHED);
    if (!box->run)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "this unfinished run has been closed");
    return box->run;
}

static run_box *new_box(lua_State *L)
{
    run_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->run = NULL;
    luaL_setmetatable(L, UNFINISHED);
    return box;
}

/* ---- the folder ---- */

/* state(path): of the folder of this result: "kept" (a run), "damaged" (files without a journal that
** has a beginning), "other" (no folder, or a link); nil: nothing is kept. */
static int unfinished_state(lua_State *L)
{
    static const char *const names[] = {[MB_UNFINISHED_KEPT] = "kept",
                                        [MB_UNFINISHED_DAMAGED] = "damaged",
                                        [MB_UNFINISHED_OTHER] = "other"};
    lua_pushstring(L, names[mb_unfinished_look(mbl_check_string(L, 1, "path"))]);
    return 1;
}

/* exists(path): is something kept, so that no other run can begin? */
static int unfinished_exists(lua_State *L)
{
    lua_pushboolean(L, mb_unfinished_look(mbl_check_string(L, 1, "path")) != MB_UNFINISHED_NONE);
    return 1;
}

/* begin(path [, scratch]): a new one; an error where there is one. `scratch`: it keeps nothing. */
static int unfinished_begin(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path");
    const bool scratch = lua_toboolean(L, 2); /* before the box takes its place */
    mbl_check(L, mb_unfinished_begin(path, scratch, &new_box(L)->run));
    return 1;
}

/* take(path): that of an earlier process, to remove it. */
static int unfinished_take(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path");
    mbl_check(L, mb_unfinished_take(path, &new_box(L)->run));
    return 1;
}

/* entries(folder): {name = "file", "folder" or "other" (links)} of all that is in it; empty where
** there is none. */
static int unfinished_entries(lua_State *L)
{
    struct stat facts;
    const char *folder = mbl_check_string(L, 1, "folder");
    DIR *list = opendir(folder);
    const int cause = errno;
    lua_newtable(L);
    if (!list && cause != ENOENT && cause != ENOTDIR)
        mbl_fail(L, MB_STATUS_IO, "path", "cannot read '%s': %s", folder, strerror(cause));
    if (!list)
        return 1;
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            fstatat(dirfd(list), name, &facts, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        lua_pushstring(L, S_ISREG(facts.st_mode)   ? "file"
                          : S_ISDIR(facts.st_mode) ? "folder"
                                                   : "other");
        lua_setfield(L, -2, name);
    }
    closedir(list);
    return 1;
}

/* resume(path): that of an earlier process. */
static int unfinished_resume(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path");
    mbl_check(L, mb_unfinished_resume(path, &new_box(L)->run));
    return 1;
}

/* join(folder, name, fresh): a journal of its own in the folder of another process's run. */
static int unfinished_join(lua_State *L)
{
    const char *folder = mbl_check_string(L, 1, "folder"), *name = mbl_check_string(L, 2, "name");
    const bool fresh = lua_toboolean(L, 3);
    mbl_check(L, mb_unfinished_join(folder, name, fresh, &new_box(L)->run));
    return 1;
}

/* run:folder() */
static int run_folder(lua_State *L)
{
    lua_pushstring(L, mb_unfinished_folder(check_run(L)));
    return 1;
}

/* run:read(): the records of the journal, one a line. */
static int run_read(lua_State *L)
{
    char *text = NULL;
    size_t bytes = 0;
    mbl_check(L, mb_unfinished_read(check_run(L), &text, &bytes));
    lua_pushlstring(L, text, bytes);
    free(text);
    return 1;
}

/* run:append(record) */
static int run_append(lua_State *L)
{
    size_t bytes;
    mb_unfinished *run = check_run(L);
    const char *record = luaL_checklstring(L, 2, &bytes);
    mbl_check(L, mb_unfinished_append(run, record, bytes));
    return 0;
}

/* run:sync() */
static int run_sync(lua_State *L)
{
    mbl_check(L, mb_unfinished_sync(check_run(L)));
    return 0;
}

/* run:end_journal(): closes the journal: nothing is noted any more. */
static int run_end_journal(lua_State *L)
{
    mb_unfinished_end_journal(check_run(L));
    return 0;
}

/* run:remove([others]): removes the folder with all that is in it, and closes. What these names have
** stays, and the folder with it. */
static int run_remove(lua_State *L)
{
    run_box *box = mbl_check_object(L, 1, UNFINISHED);
    mb_unfinished *run = check_run(L);
    const size_t count = lua_istable(L, 2) ? lua_rawlen(L, 2) : 0;
    const char **others = lua_newuserdatauv(L, (count + 1) * sizeof *others, 0);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        others[i] = mbl_check_string(L, -1, "others");
        lua_pop(L, 1); /* the table has it */
    }
    others[count] = NULL;
    box->run = NULL;
    mbl_check(L, mb_unfinished_remove(run, others));
    return 0;
}

static int run_close(lua_State *L)
{
    run_box *box = mbl_check_object(L, 1, UNFINISHED);
    mb_unfinished *run = box->run;
    box->run = NULL;
    mb_unfinished_destroy(run);
    return 0;
}

/* ---- files in it ---- */

/* keep_h5(path, now, overwrite): a new HDF5 file that is called `now` until it is finished. */
static int unfinished_keep_h5(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path"), *now = mbl_check_string(L, 2, "now");
    const bool overwrite = lua_toboolean(L, 3);
    mb_h5 **slot = mbl_new_h5(L);
    mbl_check(L, mb_h5_keep(path, now, overwrite, slot));
    return 1;
}

/* resume_h5(path, now, overwrite [, folder]): the same of an earlier process, with its slices
** folder. */
static int unfinished_resume_h5(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path"), *now = mbl_check_string(L, 2, "now");
    const bool overwrite = lua_toboolean(L, 3);
    const char *folder = lua_isnoneornil(L, 4) ? NULL : mbl_check_string(L, 4, "folder");
    mb_h5 **slot = mbl_new_h5(L);
    mbl_check(L, mb_h5_resume(path, now, folder, overwrite, slot));
    return 1;
}

static uint64_t check_number(lua_State *L, int index, const char *name)
{
    lua_getfield(L, index, name);
    const uint64_t value = (uint64_t)mbl_check_integer(L, -1, name);
    lua_pop(L, 1);
    return value;
}

static mb_head check_head(lua_State *L, int index)
{
    luaL_checktype(L, index, LUA_TTABLE);
    return (mb_head){.offset = check_number(L, index, "offset"),
                     .bytes = check_number(L, index, "bytes")};
}

/* save_head(path, to, {offset, bytes}, sync): writes all but these bytes of a file to another one.
** Returns the file's length and the checksum. */
static int unfinished_save_head(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path"), *to = mbl_check_string(L, 2, "to");
    mb_head head = check_head(L, 3);
    mbl_check(L, mb_head_save(path, to, lua_toboolean(L, 4), &head));
    lua_pushinteger(L, (lua_Integer)head.length);
    lua_pushinteger(L, (lua_Integer)head.sum);
    return 2;
}

/* restore_head(path, from, {offset, bytes, length, sum}) */
static int unfinished_restore_head(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path"), *from = mbl_check_string(L, 2, "from");
    mb_head head = check_head(L, 3);
    head.length = check_number(L, 3, "length");
    head.sum = check_number(L, 3, "sum");
    mbl_check(L, mb_head_restore(path, from, &head));
    return 0;
}

/* hash(path, {offset, base, frames, lines, line_bytes, frame_pitch, line_pitch}): the sum of the
** hashes of these lines, or nil where the file does not have them all. */
static int unfinished_hash(lua_State *L)
{
    uint64_t sum;
    bool whole;
    const char *path = mbl_check_string(L, 1, "path");
    luaL_checktype(L, 2, LUA_TTABLE);
    const mb_region region = {.path = path,
                              .offset = check_number(L, 2, "offset"),
                              .base = check_number(L, 2, "base"),
                              .frames = check_number(L, 2, "frames"),
                              .lines = check_number(L, 2, "lines"),
                              .line_bytes = check_number(L, 2, "line_bytes"),
                              .frame_pitch = check_number(L, 2, "frame_pitch"),
                              .line_pitch = check_number(L, 2, "line_pitch")};
    mbl_check(L, mb_region_hash(&region, &sum, &whole));
    if (!whole)
        return 0;
    lua_pushinteger(L, (lua_Integer)sum);
    return 1;
}

int mbl_open_unfinished(lua_State *L)
{
    static const luaL_Reg functions[] = {{"state", unfinished_state},
                                         {"entries", unfinished_entries},
                                         {"take", unfinished_take},
                                         {"exists", unfinished_exists},
                                         {"begin", unfinished_begin},
                                         {"resume", unfinished_resume},
                                         {"join", unfinished_join},
                                         {"keep_h5", unfinished_keep_h5},
                                         {"resume_h5", unfinished_resume_h5},
                                         {"save_head", unfinished_save_head},
                                         {"restore_head", unfinished_restore_head},
                                         {"hash", unfinished_hash},
                                         {NULL, NULL}};
    static const luaL_Reg metamethods[] = {
        {"__gc", run_close}, {"__close", run_close}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"folder", run_folder},
                                       {"read", run_read},
                                       {"append", run_append},
                                       {"sync", run_sync},
                                       {"end_journal", run_end_journal},
                                       {"remove", run_remove},
                                       {"close", run_close},
                                       {NULL, NULL}};
    mbl_register_type(L, UNFINISHED, metamethods, methods);
    luaL_newlib(L, functions);
    return 1;
}
