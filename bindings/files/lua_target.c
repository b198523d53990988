/*
** Targets in Lua: the module table core.target, for the names of files that will be written. The
** rules are in runtime/files/target.h; the files themselves are written through core.h5,
** core.rawfile and core.picture.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "files/folder_target.h"
#include "files/inputs/inputs.h"
#include "files/target.h"
#include "lua_modules.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <limits.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* check(path [, overwrite]): raises unless the file, or the folder of a Zarr group, could be
** created now. Creates nothing. */
static int target_check(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path");
    const bool overwrite = lua_toboolean(L, 2), folder = mb_folder_target_is(path);
    mbl_check(L,
              folder ? mb_folder_target_check(path, overwrite) : mb_target_check(path, overwrite));
    return 0;
}

/* declare(path): the file will be written; no target is created, and none gets its name, where it
** is an input. */
static int target_declare(lua_State *L)
{
    mb_input_declare(mbl_check_string(L, 1, "path"));
    return 0;
}

/* reads(path): a file, or a folder with all that lies in it, is an input from now on. */
static int target_reads(lua_State *L)
{
    mb_input_note_name(mbl_check_string(L, 1, "path"));
    return 0;
}

/* name_folder(now, path, overwrite): gives a complete folder its name. */
static int target_name_folder(lua_State *L)
{
    const char *now = mbl_check_string(L, 1, "now"), *path = mbl_check_string(L, 2, "path");
    mbl_check(L, mb_folder_target_name(now, path, lua_toboolean(L, 3)));
    return 0;
}

/* scavenge(path, current): removes the remains of dead processes for `path`; `current` is the name
** of the slices folder that `path` refers to, or "". */
static int target_scavenge(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path");
    mb_target_scavenge(path, mbl_check_string(L, 2, "current"));
    return 0;
}

/* dead_swap(path): the name of a file that a dead process exchanged with `path`, or was about to;
** or nil. */
static int target_dead_swap(lua_State *L)
{
    char name[PATH_MAX];
    if (!mb_target_dead_swap(mbl_check_string(L, 1, "path"), name))
        return 0;
    lua_pushstring(L, name);
    return 1;
}

/* remove_folder(folder): removes a slices folder that no file refers to. */
static int target_remove_folder(lua_State *L)
{
    mb_target_remove_folder(mbl_check_string(L, 1, "folder"));
    return 0;
}

static int close_stream(lua_State *L)
{
    luaL_Stream *stream = luaL_checkudata(L, 1, LUA_FILEHANDLE);
    return luaL_fileresult(L, fclose(stream->f) == 0, NULL);
}

/* append(path): a Lua file that is appended to; nil and the reason where there is none. It does
** not wait for somebody who reads a pipe. */
static int target_append(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path");
    luaL_Stream *stream = lua_newuserdatauv(L, sizeof *stream, 0);
    stream->closef = NULL; /* closed, as yet */
    stream->f = NULL;
    luaL_setmetatable(L, LUA_FILEHANDLE);
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd >= 0 && fcntl(fd, F_SETFL, O_APPEND) == 0)
        stream->f = fdopen(fd, "a");
    if (!stream->f) {
        const int cause = errno;
        if (fd >= 0)
            close(fd);
        luaL_pushfail(L);
        lua_pushstring(L, cause == ENXIO ? "it is a pipe that nobody reads" : strerror(cause));
        return 2;
    }
    stream->closef = close_stream;
    return 1;
}

int mbl_open_target(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"check", target_check},
        {"declare", target_declare},
        {"append", target_append},
        {"reads", target_reads},
        {"name_folder", target_name_folder},
        {"scavenge", target_scavenge},
        {"dead_swap", target_dead_swap},
        {"remove_folder", target_remove_folder},
        {NULL, NULL},
    };
    luaL_newlib(L, functions);
    return 1;
}
