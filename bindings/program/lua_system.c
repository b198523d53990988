/*
** What the Lua half needs of POSIX: clock, terminal, file names, limits. Ctrl-C: lua_interrupt.c.
*/
#define _GNU_SOURCE
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_table.h"
#include "core/clock.h"
#include "call/lua_owner.h"
#include "device/device.h"
#include "device/host/host_limits.h"
#include "device/numa.h"
#include "lua_modules.h"
#include "program/lua_interrupt.h"
#include "program/lua_terminal.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define MOST_FILES 65536 /* open at a time: more than any part of the program needs */

/* stop_signal(): the number of the signal that stopped the last call, or nil. */
static int system_stop_signal(lua_State *L)
{
    if (mbl_stop_signal() == 0)
        return 0;
    lua_pushinteger(L, mbl_stop_signal());
    return 1;
}

/* call(f, ...): like pcall, interruptible and with tracebacks. */
static int system_call(lua_State *L)
{
    if (lua_isnone(L, 1))
        return mbl_fail(L, MB_STATUS_ARGUMENT, "f", "f is missing; give a function");
    int status = mbl_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    lua_pushboolean(L, status == LUA_OK);
    lua_insert(L, 1);
    return lua_gettop(L);
}

/* cancelled(): whether the cancel flag is set (Ctrl-C). */
static int system_cancelled(lua_State *L)
{
    lua_pushboolean(L, mb_cancelled());
    return 1;
}

/* cancel([on]): sets the flag as Ctrl-C does; false clears it. */
static int system_cancel(lua_State *L)
{
    if (lua_isnone(L, 1) || lua_toboolean(L, 1))
        mbl_ask_stop();
    else
        mb_cancel_set(false);
    return 0;
}

/* hold_stop(on): true: the first Ctrl-C or other stop waits from now on. false: no more; one that
** has waited is raised. */
static int system_hold_stop(lua_State *L)
{
    if (!lua_toboolean(L, 1))
        return mbl_let_stop(L);
    mbl_hold_stop();
    return 0;
}

/* stop_waits(): whether a stop that is held back has come. */
static int system_stop_waits(lua_State *L)
{
    lua_pushboolean(L, mbl_stop_waits());
    return 1;
}

/* clock(): seconds, monotonic. */
static int system_clock(lua_State *L)
{
    lua_pushnumber(L, 1e-9 * (double)mb_now_ns());
    return 1;
}

/* age(): seconds since the process began, to about 10 ms; nil if the system does not say. */
static int system_age(lua_State *L)
{
    struct timespec now;
    char text[1024];
    FILE *file = fopen("/proc/self/stat", "r");
    const char *at = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
    if (file)
        fclose(file);
    for (int field = 2; at && field < 22; field++) /* field 2 is the name, in parentheses */
        at = strchr(at + 1, ' ');
    if (!at)
        return 0;
    clock_gettime(CLOCK_BOOTTIME, &now);
    lua_pushnumber(L, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec -
                          strtod(at, NULL) / (double)sysconf(_SC_CLK_TCK));
    return 1;
}

/* sleep(seconds): returns early if a signal arrives. */
static int system_sleep(lua_State *L)
{
    double seconds = mbl_check_number(L, 1, "seconds");
    struct timespec time = {0, 0};
    if (seconds > 0 && seconds < 1e9) {
        time.tv_sec = (time_t)seconds;
        time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
        nanosleep(&time, NULL);
    }
    return 0;
}

/* The file descriptor of "stdin", "stdout", "stderr" (default stdout). */
static int check_descriptor(lua_State *L, int index)
{
    static const char *const names[] = {"stdin", "stdout", "stderr"};
    const char *name = lua_isnoneornil(L, index) ? "stdout" : mbl_check_string(L, index, "stream");
    for (int i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return mbl_fail(L, MB_STATUS_ARGUMENT, "stream",
                    "stream is '%s'; it is stdin, stdout or stderr", name);
}

static int system_isatty(lua_State *L)
{
    lua_pushboolean(L, isatty(check_descriptor(L, 1)));
    return 1;
}

/* terminal_width([stream]): columns, or nil if the stream is not a terminal. */
static int system_terminal_width(lua_State *L)
{
    struct winsize size;
    if (ioctl(check_descriptor(L, 1), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        lua_pushinteger(L, size.ws_col);
    else
        lua_pushnil(L);
    return 1;
}

static int push_failure(lua_State *L, const char *name)
{
    int number = errno;
    mb_fail(MB_STATUS_IO, NULL, "%s: %s", name, strerror(number));
    lua_pushnil(L);
    mbl_push_error(L);
    return 2;
}

static int system_working_folder(lua_State *L)
{
    char name[PATH_MAX];
    if (!getcwd(name, sizeof name))
        return push_failure(L, "working folder");
    lua_pushstring(L, name);
    return 1;
}

/* program(): the absolute name of the running program. */
static int system_program(lua_State *L)
{
    char name[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", name, sizeof name);
    if (length < 0 || (size_t)length >= sizeof name)
        return push_failure(L, "/proc/self/exe");
    lua_pushlstring(L, name, (size_t)length);
    return 1;
}

static int system_real_path(lua_State *L)
{
    char real[PATH_MAX];
    const char *name = mbl_check_string(L, 1, "name");
    if (!realpath(name, real))
        return push_failure(L, name);
    lua_pushstring(L, real);
    return 1;
}

/* mkdir(name): makes a folder and its parents; also true if the folder exists. */
static int system_mkdir(lua_State *L)
{
    char part[PATH_MAX];
    struct stat facts;
    const char *name = mbl_check_string(L, 1, "name");
    size_t length = strlen(name);
    if (length == 0 || length >= sizeof part) {
        errno = length == 0 ? ENOENT : ENAMETOOLONG;
        return push_failure(L, name);
    }
    memcpy(part, name, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        char keep = part[i];
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && (errno != EEXIST || stat(part, &facts) != 0)) {
            int number = errno;
            lua_pushstring(L, part);
            errno = number;
            return push_failure(L, lua_tostring(L, -1));
        }
        part[i] = keep;
    }
    if (stat(name, &facts) != 0 || !S_ISDIR(facts.st_mode)) {
        errno = ENOTDIR;
        return push_failure(L, name);
    }
    lua_pushboolean(L, 1);
    return 1;
}

/* stat(name): {kind, bytes, modified, device, inode}, or nil and an error. */
static int system_stat(lua_State *L)
{
    struct stat facts;
    const char *name = mbl_check_string(L, 1, "name");
    if (stat(name, &facts) != 0)
        return push_failure(L, name);
    lua_createtable(L, 0, 5);
    mbl_set_string(L, "kind",
                   S_ISREG(facts.st_mode)   ? "file"
                   : S_ISDIR(facts.st_mode) ? "folder"
                                            : "other");
    mbl_set_integer(L, "bytes", facts.st_size);
    mbl_set_number(L, "modified",
                   (double)facts.st_mtim.tv_sec + 1e-9 * (double)facts.st_mtim.tv_nsec);
    mbl_set_integer(L, "device", facts.st_dev);
    mbl_set_integer(L, "inode", facts.st_ino);
    return 1;
}

/* space(folder): {free, total, memory, network} of the folder's file system: the bytes that a user
** may still write to it, its size, whether it is in memory (tmpfs, ramfs), and whether it is a
** network's, of which two machines must not write the same file (NFS, SMB). Or nil and an error. */
static int system_space(lua_State *L)
{
    struct statfs facts;
    const char *name = mbl_check_string(L, 1, "folder");
    if (statfs(name, &facts) != 0)
        return push_failure(L, name);
    const uint64_t block = (uint64_t)(facts.f_frsize ? facts.f_frsize : facts.f_bsize);
    lua_createtable(L, 0, 4);
    mbl_set_integer(L, "free", mb_bytes_mul((uint64_t)facts.f_bavail, block));
    mbl_set_integer(L, "total", mb_bytes_mul((uint64_t)facts.f_blocks, block));
    mbl_set_boolean(L, "memory", facts.f_type == TMPFS_MAGIC || facts.f_type == RAMFS_MAGIC);
    const unsigned type = (unsigned)facts.f_type;
    mbl_set_boolean(L, "network",
                    type == NFS_SUPER_MAGIC || type == SMB_SUPER_MAGIC ||
                        type == CIFS_SUPER_MAGIC || type == SMB2_SUPER_MAGIC);
    return 1;
}

static int system_pid(lua_State *L)
{
    lua_pushinteger(L, getpid());
    return 1;
}

static int system_host_name(lua_State *L)
{
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    lua_pushstring(L, name);
    return 1;
}

static int system_processors(lua_State *L)
{
    lua_pushinteger(L, mb_processors_count());
    return 1;
}

/* memory_limits([root]): what the control groups and resource limits of the process allow, {most,
** left, name}: the smallest limit, what the limits still leave (page cache counts as left), and the
** limit that decides `left`. Returns nil if nothing limits the process. With `root`, a folder, only
** the groups are read, in ROOT/proc/self/cgroup and ROOT/sys/fs/cgroup. */
static int system_memory_limits(lua_State *L)
{
    mb_host_limits limits;
    if (lua_isnoneornil(L, 1))
        mb_host_limits_read(omp_get_max_threads(), 0, &limits);
    else
        mb_host_limits_of_groups(mbl_check_string(L, 1, "root"), &limits);
    if (limits.most == UINT64_MAX)
        return 0;
    lua_createtable(L, 0, 3);
    mbl_set_integer(L, "most", limits.most);
    mbl_set_integer(L, "left", limits.left);
    mbl_set_string(L, "name", limits.name);
    return 1;
}

static void set_limit(lua_State *L, const char *key, uint64_t most, uint64_t left, const char *name)
{
    if (most == UINT64_MAX)
        return;
    lua_createtable(L, 0, 3);
    mbl_set_integer(L, "most", (int64_t)most);
    mbl_set_integer(L, "left", (int64_t)left);
    mbl_set_string(L, "name", name);
    lua_setfield(L, -2, key);
}

/* process_limits(): {used, addresses: each nil or {most, left, name}, the limit that leaves least
** of the memory that is used, and that of addresses; kept: addresses that a pool leaves at least;
** processes: those of a run that share the machine, this one included; available: bytes on the
** machine}. What is left of addresses is beside the pools of the devices that are open. */
static int system_process_limits(lua_State *L)
{
    mb_host_limits limits;
    mb_host_limits_read(omp_get_max_threads(), 0, &limits);
    lua_createtable(L, 0, 5);
    set_limit(L, "used", limits.used_most, limits.used_left, limits.used_name);
    set_limit(L, "addresses", limits.address_most, limits.address_left, "RLIMIT_AS (ulimit -v)");
    mbl_set_integer(L, "kept", (int64_t)limits.address_kept);
    mbl_set_integer(L, "processes", mb_device_sharing());
    mbl_set_integer(L, "available", (int64_t)mb_host_available());
    return 1;
}

/* set_home(folder): where the module's own Lua files are; called by init.lua. */
static int system_set_home(lua_State *L)
{
    mbl_set_home(mbl_check_string(L, 1, "folder"));
    return 0;
}

/* folder(path): the names in a folder, or nil if it does not exist. */
static int system_folder(lua_State *L)
{
    DIR *folder = opendir(mbl_check_string(L, 1, "path"));
    if (!folder) {
        lua_pushnil(L);
        return 1;
    }
    lua_newtable(L);
    lua_Integer count = 0;
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            lua_pushstring(L, entry->d_name);
            lua_rawseti(L, -2, ++count);
        }
    closedir(folder);
    return 1;
}

/* file_limit(): raises the number of files that the process may have open as far as the system
** allows, and returns it. */
static int system_file_limit(lua_State *L)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    const rlim_t most = limit.rlim_max < MOST_FILES ? limit.rlim_max : MOST_FILES;
    if (limit.rlim_cur < most) {
        limit.rlim_cur = most;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            getrlimit(RLIMIT_NOFILE, &limit);
    }
    lua_pushinteger(L, limit.rlim_cur < MOST_FILES ? (lua_Integer)limit.rlim_cur : MOST_FILES);
    return 1;
}

/* sync_files(path): waits until everything written to the file system of a folder is on the disk;
** raises an error if that fails. */
static int system_sync_files(lua_State *L)
{
    const char *path = mbl_check_string(L, 1, "path");
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int cause = fd < 0 || (syncfs(fd) != 0 && errno != ENOSYS && errno != EINVAL) ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (cause != 0)
        return mbl_fail(L, MB_STATUS_IO, "path", "cannot write the files of '%s' to the disk: %s",
                        path, strerror(cause));
    return 0;
}

/* sync_folder(path): makes its names survive a power cut, as far as the file system can. */
static int system_sync_folder(lua_State *L)
{
    int fd = open(mbl_check_string(L, 1, "path"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    return 0;
}

int mbl_open_system(lua_State *L)
{
    static const luaL_Reg functions[] = {{"call", system_call},
                                         {"cancelled", system_cancelled},
                                         {"cancel", system_cancel},
                                         {"hold_stop", system_hold_stop},
                                         {"stop_waits", system_stop_waits},
                                         {"clock", system_clock},
                                         {"age", system_age},
                                         {"sleep", system_sleep},
                                         {"isatty", system_isatty},
                                         {"terminal_width", system_terminal_width},
                                         {"terminal_pixels", mbl_terminal_pixels},
                                         {"ask_terminal", mbl_ask_terminal},
                                         {"cwd", system_working_folder},
                                         {"program", system_program},
                                         {"real_path", system_real_path},
                                         {"mkdir", system_mkdir},
                                         {"stat", system_stat},
                                         {"space", system_space},
                                         {"folder", system_folder},
                                         {"file_limit", system_file_limit},
                                         {"sync_files", system_sync_files},
                                         {"sync_folder", system_sync_folder},
                                         {"pid", system_pid},
                                         {"hostname", system_host_name},
                                         {"processors", system_processors},
                                         {"stop_signal", system_stop_signal},
                                         {"memory_limits", system_memory_limits},
                                         {"process_limits", system_process_limits},
                                         {"set_home", system_set_home},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
