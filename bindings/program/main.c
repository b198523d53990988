/*
** The moonbeam interpreter: Lua 5.4 with the module built in. Its command line is that of `lua`
** with more options, and with commands that are run by name. The prompt is written in Lua
** (moonbeam/internal/repl.lua).
*/
#include "program.h"
#include "call/lua_error.h"
#include "files/h5/h5.h"
#include "lua_core.h"
#include "memory/garbage_list.h"
#include "memory/lua_array_box.h"
#include "program/lua_interrupt.h"
#include "program/lua_memory.h"
#include "program/lua_print.h"
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sets the global `arg`: the script is arg[0], and the words before it have negative indices. */
static void set_arg(lua_State *L, char **argv, int argc, int script)
{
    if (script == argc)
        script = 0;
    lua_createtable(L, argc - script > 1 ? argc - script - 1 : 0, script + 1);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i - script);
    }
    lua_setglobal(L, "arg");
}

static void open_libraries(lua_State *L, bool environment)
{
    if (!environment) {
        lua_pushboolean(L, 1);
        lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
    }
    luaL_openlibs(L);
    mbl_open_print(L);
    mbl_release_at_close(L);
    mbl_open_coroutines(L);
    mbl_register_error(L); /* a script that does not load the module can be interrupted too */
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, luaopen_moonbeam_core);
    lua_setfield(L, -2, "moonbeam.core");
    lua_pop(L, 1);
}

/* Runs the script, then the check for leaks and the prompt; without a script, standard input.
** Returns whether everything succeeded. */
static bool run_rest(lua_State *L, char **argv, int argc, const mbm_options *options)
{
    const unsigned flags = options->flags;
    const int script = options->script;
    bool ok = true;
    if (flags & (MBM_PLAN | MBM_LEDGER)) {
        const char *how = flags & MBM_PLAN ? "plan" : "ledger";
        if (mbm_run_recorded(L, how, argv[script]) != LUA_OK)
            return false;
    } else if (script < argc) {
        ok = mbm_run_script(L, argv, script) == LUA_OK;
    }
    if ((flags & MBM_LEAKS) && mbm_check_leaks(L) != LUA_OK)
        return false;
    if (!ok)
        return false;
    if (flags & MBM_INTERACTIVE)
        return mbm_run_prompt(L) == LUA_OK;
    if (script < argc || flags & (MBM_EXECUTE | MBM_VERSION))
        return true;
    if (!isatty(STDIN_FILENO) || mbm_several_ranks())
        return mbm_run_stdin(L) == LUA_OK;
    mbm_print_version();
    return mbm_run_prompt(L) == LUA_OK;
}

/* Returns true to Lua if everything succeeded. */
static int protected_main(lua_State *L)
{
    const int argc = (int)lua_tointeger(L, 1);
    char **argv = lua_touserdata(L, 2);
    mbm_options options = {0};
    luaL_checkversion(L);
    lua_settop(L, 0);
    if (!mbm_read_options(argv, &options))
        return 0;
    if (options.flags & MBM_HELP) {
        mbm_print_help();
        lua_pushboolean(L, 1);
        return 1;
    }
    const bool environment = !(options.flags & MBM_NO_ENVIRONMENT);
    /* As in lua. The incremental collector takes for live what it has just finalized: where objects
    ** have finalizers, as arrays do, it waits twice as long each time, and the heap only grows. */
    lua_gc(L, LUA_GCGEN, 0, 0);
    open_libraries(L, environment);
    mbm_find_files(L, environment);
    if (!mbm_start_ranks(options.flags, argv + options.script) || !mbm_check_prompt(options.flags))
        return 0;
    if (options.flags & MBM_VERSION)
        mbm_print_version();
    if (options.script < argc) {
        const bool file = strcmp(argv[options.script - 1], "--") == 0;
        const char *script = mbm_command(argv[options.script], file);
        if (!script || !mbm_check_ranks(argv[options.script]))
            return 0;
        if (script == argv[options.script] && (file || strcmp(script, "-") != 0))
            mbm_add_script_folder(L, script);
        argv[options.script] = (char *)script;
    }
    set_arg(L, argv, argc, options.script);
    if (environment && mbm_run_init(L) != LUA_OK)
        return 0;
    if (mbm_run_options(L, argv, &options) != LUA_OK)
        return 0;
    lua_pushboolean(L, run_rest(L, argv, argc, &options));
    return 1;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], MB_H5_PROBE_OPTION) == 0)
        return mb_h5_probe_child(argv[2], argv[3]);
    mb_h5_probe_by_self();
    lua_State *L = luaL_newstate();
    if (argv[0] && argv[0][0] != '\0')
        mbm_program = argv[0];
    mbm_prepare_process();
    if (!L) {
        fprintf(stderr, "%s: cannot create state: not enough memory\n", mbm_program);
        return EXIT_FAILURE;
    }
    mbm_use_small_blocks(L);
    lua_pushcfunction(L, protected_main);
    lua_pushinteger(L, argc);
    lua_pushlightuserdata(L, argv);
    int status = lua_pcall(L, 2, 1, 0);
    bool ok = status == LUA_OK && lua_toboolean(L, -1);
    mbm_report(L, status);
    lua_close(L);
    mbm_drop_small_blocks();
    mbl_garbage_drain(NULL);
    uint64_t left = mb_devices_close();
    if (left > 0) { /* nothing refers to these blocks now, so the script is not at fault */
        fprintf(stderr, "%s: the runtime itself has lost %llu blocks\n", mbm_program,
                (unsigned long long)left);
        ok = false;
    }
    return ok ? mbm_exit_status : mbm_failure_status;
}
