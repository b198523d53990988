/*
** Where the program's files are, the commands that it runs by name, and the text of --help. The
** files are in one of three places: beside the program in a bundle, under the prefix of an
** installation, or in the source tree that the program was built in.
*/
#define _GNU_SOURCE
#include "program.h"
#include "core/nearest.h"
#include "device/device.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name, *summary;
} COMMANDS[] = {
    {"reconstruct", "a volume from a tomographic scan (HDF5)"},
    {"batch", "volumes from several scans, with one summary"},
    {"join", "one result from the parts of a run (reconstruct --part K/N)"},
    {"stitch", "one volume from those of overlapping scans at different heights"},
    {"deconvolve", "a sharper image stack (TIFF or HDF5), by its point-spread function"},
    {"convolve", "an image stack blurred by a point-spread function"},
    {"psf", "a point-spread function from the optics of a microscope"},
    {"simulate", "a scan of a phantom, to try the others with"},
    {"import_recipe", "a recipe from a nabu.conf or a process list of HTTomo"},
};
enum { COMMAND_COUNT = sizeof COMMANDS / sizeof COMMANDS[0] };

/* Those that several ranks can work on together. */
static const char *const OF_RANKS[] = {"reconstruct", "deconvolve"};

/* Where the files may be, relative to the program's folder. */
static const struct {
    const char *lua, *scripts, *plugin;
} PLACES[] = {
    {"../lua", "../scripts", "."},                                             /* a bundle */
    {"../share/moonbeam/lua", "../share/moonbeam/scripts", "../lib/moonbeam"}, /* installed */
    {"../../bindings", "../../scripts", "."},                                  /* build/bin */
    {"../../../bindings", "../../../scripts", "."},                            /* build/debug/bin */
};

static char scripts_folder[PATH_MAX], plugins_folder[PATH_MAX];

/* Sets `path` to FOLDER/PART without links and dots, or to "" if the file does not exist. */
static void resolve(const char *folder, const char *part, char path[PATH_MAX])
{
    char name[PATH_MAX + 64];
    snprintf(name, sizeof name, "%s/%s", folder, part);
    if (!realpath(name, path))
        path[0] = '\0';
}

static void add_to_path(lua_State *L, const char *folder)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "path");
    lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;%s", folder, folder, lua_tostring(L, -1));
    lua_setfield(L, -3, "path");
    lua_pop(L, 2);
}

/* Does an environment variable of the search path name a place in the current folder? */
static bool chosen_by(const char *variable)
{
    const char *path = getenv(variable);
    return path && (strncmp(path, "./", 2) == 0 || strstr(path, ";./"));
}

/* Takes what lies in the current folder out of package.path or package.cpath: that may be a folder
** of data, which must run nothing. Whoever wants it names it in the environment. */
static void drop_current_folder(lua_State *L, const char *field)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, field);
    const char *path = lua_tostring(L, -1);
    luaL_Buffer kept;
    luaL_buffinit(L, &kept);
    bool first = true;
    for (const char *end; path && *path; path = *end ? end + 1 : end) {
        end = strchr(path, ';');
        end = end ? end : path + strlen(path);
        if (strncmp(path, "./", 2) == 0)
            continue;
        if (!first)
            luaL_addchar(&kept, ';');
        luaL_addlstring(&kept, path, (size_t)(end - path));
        first = false;
    }
    luaL_pushresult(&kept);
    lua_setfield(L, -3, field);
    lua_pop(L, 2);
}

/* The last of package.searchers: what `require` says where nothing was found. */
static int say_remedy(lua_State *L)
{
    lua_pushliteral(L, "modules are also looked for beside the script; other folders are added by "
                       "LUA_PATH='FOLDER/?.lua;;' in the environment");
    return 1;
}

static void add_remedy(lua_State *L)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "searchers");
    lua_pushcfunction(L, say_remedy);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 2);
}

void mbm_add_script_folder(lua_State *L, const char *script)
{
    const char *slash = strrchr(script, '/');
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "path");
    if (slash)
        lua_pushlstring(L, script, (size_t)(slash - script) + (slash == script));
    else
        lua_pushliteral(L, ".");
    const char *folder = lua_tostring(L, -1);
    lua_pushfstring(L, "%s;%s/?.lua;%s/?/init.lua", lua_tostring(L, -2), folder, folder);
    lua_setfield(L, -4, "path");
    lua_pop(L, 3);
}

void mbm_find_files(lua_State *L, bool environment)
{
    if (!environment || !(chosen_by("LUA_PATH_5_4") || chosen_by("LUA_PATH")))
        drop_current_folder(L, "path");
    if (!environment || !(chosen_by("LUA_CPATH_5_4") || chosen_by("LUA_CPATH")))
        drop_current_folder(L, "cpath");
    add_remedy(L);
    char folder[PATH_MAX], lua[PATH_MAX] = "", plugin[PATH_MAX], init[PATH_MAX];
    const char *chosen = environment ? getenv("MOONBEAM_LUA") : NULL;
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    mb_device_set_plugin_folder(folder);
    snprintf(plugins_folder, sizeof plugins_folder, "%s", folder);
    for (size_t i = 0; i < sizeof PLACES / sizeof PLACES[0] && lua[0] == '\0'; i++) {
        resolve(folder, PLACES[i].lua, lua);
        resolve(lua, "moonbeam/init.lua", init);
        if (init[0] == '\0') {
            lua[0] = '\0';
            continue;
        }
        resolve(folder, PLACES[i].scripts, scripts_folder);
        resolve(folder, PLACES[i].plugin, plugin);
        if (plugin[0] != '\0') {
            mb_device_set_plugin_folder(plugin);
            snprintf(plugins_folder, sizeof plugins_folder, "%s", plugin);
        }
    }
    if (chosen && chosen[0] != '\0')
        add_to_path(L, chosen);
    else if (lua[0] != '\0')
        add_to_path(L, lua);
}

void mbm_plugin(const char *name, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/%s", plugins_folder, name);
}

bool mbm_is_command(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(name, COMMANDS[i].name) == 0)
            return true;
    return false;
}

bool mbm_command_has_ranks(const char *name)
{
    const bool known = mbm_is_command(name);
    for (size_t i = 0; known && i < sizeof OF_RANKS / sizeof OF_RANKS[0]; i++)
        if (strcmp(name, OF_RANKS[i]) == 0)
            return true;
    return !known;
}

/* Files that are often given in place of a script: their first bytes, and what works on them. */
static const struct {
    const char *bytes, *kind, *command, *more, *does;
    size_t count;
} INPUTS[] = {
    {"\x89HDF\r\n\x1a\n", "an HDF5", "reconstruct", "", "reconstructs the scan in it", 8},
    {"II*\0", "a TIFF", "deconvolve", " PSF -o OUT", "deconvolves it", 4},
    {"MM\0*", "a TIFF", "deconvolve", " PSF -o OUT", "deconvolves it", 4},
};

/* Returns the name; or NULL, after an explanation, if the file is missing or is not a script. */
static const char *script_file(const char *name)
{
    char head[8] = "";
    struct stat facts;
    FILE *file = fopen(name, "rb");
    if (!file) {
        fprintf(stderr,
                "%s: cannot open '%s': %s; give the name of a Lua script or of a command ('%s "
                "--help' lists them)\n",
                mbm_program, name, strerror(errno), mbm_program);
        mbm_failure_status = MBM_STATUS_MISUSE;
        return NULL;
    }
    /* Bytes read from a pipe cannot be read again. */
    if (fstat(fileno(file), &facts) == 0 && S_ISREG(facts.st_mode))
        (void)!fread(head, 1, sizeof head, file);
    fclose(file);
    for (size_t i = 0; i < sizeof INPUTS / sizeof INPUTS[0]; i++)
        if (memcmp(head, INPUTS[i].bytes, INPUTS[i].count) == 0) {
            fprintf(stderr, "%s: '%s' is %s file, not a Lua script; '%s %s %s%s' %s\n", mbm_program,
                    name, INPUTS[i].kind, mbm_program, INPUTS[i].command, name, INPUTS[i].more,
                    INPUTS[i].does);
            mbm_failure_status = MBM_STATUS_MISUSE;
            return NULL;
        }
    return name;
}

const char *mbm_command(const char *name, bool file)
{
    static char path[PATH_MAX];
    char script[80];
    struct stat facts;
    if (strcmp(name, "-") == 0 && !file)
        return name;
    if (file || name[0] == '\0' || strpbrk(name, "/.-"))
        return script_file(name);
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(name, COMMANDS[i].name) == 0) {
            snprintf(script, sizeof script, "%s.lua", name);
            resolve(scripts_folder, script, path);
            if (path[0] != '\0')
                return path;
            fprintf(stderr,
                    "%s: the command '%s' was not found: the program has no folder of "
                    "scripts beside it\n",
                    mbm_program, name);
            return NULL;
        }
    const char *names[COMMAND_COUNT + 1] = {NULL};
    for (int i = 0; i < COMMAND_COUNT; i++)
        names[i] = COMMANDS[i].name;
    const char *near = mb_nearest(name, names);
    if (stat(name, &facts) == 0 && S_ISREG(facts.st_mode))
        fprintf(stderr,
                "%s: '%s' is no command; the script of this name in the current folder runs as "
                "./%s\n",
                mbm_program, name, name);
    else
        fprintf(stderr, "%s: there is no command '%s'%s%s%s; '%s --help' lists the commands\n",
                mbm_program, name, near ? " (did you mean '" : "", near ? near : "",
                near ? "'?)" : "", mbm_program);
    mbm_failure_status = MBM_STATUS_MISUSE;
    return NULL;
}

void mbm_print_help(void)
{
    printf("usage: %s [options] [script or command [args]]\n"
           "Runs Lua 5.4 scripts that reconstruct and deconvolve images on a GPU or on the host.\n"
           "Without a script it shows a prompt.\n"
           "\n"
           "Commands:\n",
           mbm_program);
    for (int i = 0; i < COMMAND_COUNT; i++)
        printf("  %-13s %s\n", COMMANDS[i].name, COMMANDS[i].summary);
    printf(
        "  '%s COMMAND --help' shows the options of a command. A file in the current folder\n"
        "  that has the name of a command is run instead of the command.\n"
        "\n"
        "Options:\n"
        "  -e stat       execute string 'stat'\n"
        "  -i            enter interactive mode after executing 'script'\n"
        "  -l mod        require library 'mod' into global 'mod'\n"
        "  -l g=mod      require library 'mod' into global 'g'\n"
        "  -v, --version show version information\n"
        "  -E            ignore environment variables\n"
        "  -W            turn warnings on\n"
        "  --device ID   the default device: host, cuda:0, ...\n"
        "  --budget SIZE the most memory that the default device may use, e.g. 8G\n"
        "  --plan        dry-run 'script' and the 'stat' of -e: print the memory of every step\n"
        "  --ledger      dry-run them, run them, and compare the memory of every step\n"
        "  --mpi         be a rank of an MPI run (the default when mpirun or srun has started it)\n"
        "  --no-mpi      work alone, whatever has started it\n"
        "  --leaks       fail if arrays are still live after 'script', and list them by line\n"
        "  -h, --help    show this text\n"
        "  --            stop handling options\n"
        "  -             stop handling options and execute stdin\n",
        mbm_program);
}
