/*
** Running Lua code for the command line: statements, libraries, scripts, the prompt, and scripts
** that are planned or recorded. Every function reports its own failures on the standard error.
*/
#include "program.h"
#include "call/lua_table.h"
#include "program/lua_interrupt.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

/* Whether the value is an error object with this code. */
static bool has_code(lua_State *L, int index, mb_status status)
{
    if (!lua_istable(L, index))
        return false;
    lua_getfield(L, index, "code");
    const char *code = lua_tostring(L, -1);
    bool found = code && strcmp(code, mb_status_name(status)) == 0;
    lua_pop(L, 1);
    return found;
}

/* Pushes a function of moonbeam/internal/log.lua; false, with other values pushed, if that module
** is not loaded. */
static bool push_log(lua_State *L, const char *function)
{
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, "moonbeam.internal.log");
    return lua_istable(L, -1) && lua_getfield(L, -1, function) == LUA_TFUNCTION;
}

/* Writes the text on the top of the stack to the log, if --log FILE opened one. */
static void log_failure(lua_State *L, bool named)
{
    const int top = lua_gettop(L);
    if (push_log(L, "write")) {
        lua_pushfstring(L, "%s%s%s", named ? "" : mbm_program, named ? "" : ": ",
                        lua_tostring(L, top));
        (void)lua_pcall(L, 1, 0, 0);
    }
    lua_settop(L, top);
}

/* Writes the lines that led to the line that the error object names, if the call recorded them. */
static void print_callers(lua_State *L, int index)
{
    const int top = lua_gettop(L);
    if (!lua_istable(L, index))
        return;
    index = lua_absindex(L, index);
    lua_pushliteral(L, "callers");
    if (lua_rawget(L, index) == LUA_TTABLE)
        for (lua_Integer i = 1; lua_rawgeti(L, top + 1, i) == LUA_TSTRING; i++) {
            size_t length;
            const char *line = lua_tolstring(L, -1, &length);
            mbl_push_printable(L, line, length, false);
            fprintf(stderr, "%s%s", i == 1 ? "  called from " : ", ", lua_tostring(L, -1));
            lua_pop(L, 2);
        }
    if (lua_istable(L, top + 1))
        fputc('\n', stderr);
    lua_settop(L, top);
}

/* Replaces the error on the top of the stack by what the command that runs says about it, if there
** is one. Returns false, and leaves the error, if not. */
static bool spoken(lua_State *L)
{
    const int top = lua_gettop(L);
    bool found = push_log(L, "speak");
    if (found) {
        lua_pushvalue(L, top);
        found = lua_pcall(L, 1, 1, 0) == LUA_OK && lua_isstring(L, -1);
    }
    if (found)
        lua_replace(L, top);
    lua_settop(L, top);
    return found;
}

int mbm_report(lua_State *L, int status)
{
    if (status != LUA_OK) {
        if (has_code(L, -1, MB_STATUS_CANCELLED))
            mbm_failure_status = 128 + mbl_stop_signal(); /* the convention of shells */
        const bool named = spoken(L);
        size_t length;
        const char *message = luaL_tolstring(L, -1, &length);
        mbl_push_printable(L, message, length, true);
        lua_pushfstring(L, "%s%s%s", named ? "" : mbm_program, named ? "" : ": ",
                        lua_tostring(L, -1));
        mbm_say_failure(lua_tostring(L, -1));
        lua_pop(L, 1);
        print_callers(L, -3);
        fflush(stderr);
        log_failure(L, named);
        lua_pop(L, 3);
    }
    return status;
}

/* ---- chunks and libraries ---- */

static int run_chunk(lua_State *L, int status)
{
    if (status == LUA_OK)
        status = mbl_call(L, 0, 0);
    return mbm_report(L, status);
}

static int run_string(lua_State *L, const char *text, const char *name)
{
    return run_chunk(L, luaL_loadbuffer(L, text, strlen(text), name));
}

/* Pushes a function of a Lua module. On failure the error is on the stack. */
static int push_function(lua_State *L, const char *module, const char *function)
{
    lua_getglobal(L, "require");
    lua_pushstring(L, module);
    int status = lua_pcall(L, 1, 1, 0);
    if (status == LUA_OK)
        lua_getfield(L, -1, function);
    return status;
}

/* Loads standard input, which a launcher gives to rank 0, or to all ranks. Pushes the chunk, or the
** error. */
static int load_stdin(lua_State *L)
{
    if (!mbm_several_ranks())
        return luaL_loadfile(L, NULL);
    int status = push_function(L, "moonbeam.internal.script", "standard_input");
    if (status == LUA_OK)
        status = mbl_call(L, 0, 1);
    return status == LUA_OK && !lua_isfunction(L, -1) ? LUA_ERRSYNTAX : status;
}

int mbm_run_stdin(lua_State *L)
{
    return run_chunk(L, load_stdin(L));
}

int mbm_run_init(lua_State *L)
{
    const char *name = "=LUA_INIT_5_4";
    const char *init = getenv(name + 1);
    if (!init) {
        name = "=LUA_INIT";
        init = getenv(name + 1);
    }
    if (!init)
        return LUA_OK;
    return init[0] == '@' ? run_chunk(L, luaL_loadfile(L, init + 1)) : run_string(L, init, name);
}

/* -l mod, -l g=mod */
static int run_library(lua_State *L, const char *name)
{
    const char *module = strchr(name, '=');
    if (module)
        lua_pushlstring(L, name, (size_t)(module++ - name));
    else
        lua_pushstring(L, module = name);
    lua_getglobal(L, "require");
    lua_pushstring(L, module);
    int status = mbl_call(L, 1, 1);
    if (status == LUA_OK) {
        lua_pushglobaltable(L);
        lua_insert(L, -3);
        lua_settable(L, -3);
        lua_pop(L, 1);
        return LUA_OK;
    }
    mbm_report(L, status);
    lua_pop(L, 1);
    return status;
}

/* ---- options ---- */

/* apply_device(id, budget): opens the default device, with a budget. Either may be nil. */
static int apply_device(lua_State *L)
{
    lua_settop(L, 2);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "moonbeam.core");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "device");
    lua_getfield(L, -1, "open");
    lua_getfield(L, -2, "default");
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    if (lua_isnil(L, 2))
        return 0;
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, 2);
    lua_setfield(L, -2, "budget");
    lua_call(L, 2, 0);
    return 0;
}

static int set_device(lua_State *L, const mbm_options *options)
{
    lua_pushcfunction(L, apply_device);
    lua_pushstring(L, options->device);
    lua_pushstring(L, options->budget);
    int status = mbl_call(L, 2, 0);
    if (status != LUA_OK && has_code(L, -1, MB_STATUS_ARGUMENT))
        mbm_failure_status = MBM_STATUS_MISUSE;
    mbm_report(L, status);
    lua_settop(L, 0);
    return status;
}

/* Statements of -e that are planned or recorded run as the beginning of the script. They are kept
** as a list in the registry, under the address of this variable. */
static const char statements_key = 0;

static void keep_statement(lua_State *L, const char *text)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &statements_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &statements_key);
    }
    lua_pushstring(L, text);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
}

int mbm_run_options(lua_State *L, char **argv, const mbm_options *options)
{
    int status = LUA_OK;
    if (options->device || options->budget)
        status = set_device(L, options);
    for (int i = 1; i < options->script && status == LUA_OK; i++) {
        char letter;
        const char *statement = mbm_statement(argv, &i, &letter);
        if (strcmp(argv[i], "-W") == 0 && !statement)
            lua_warning(L, "@on", 0);
        else if (statement && letter == 'l')
            status = run_library(L, statement);
        else if (statement && options->flags & (MBM_PLAN | MBM_LEDGER))
            keep_statement(L, statement);
        else if (statement)
            status = run_string(L, statement, "=(command line)");
    }
    return status;
}

/* ---- scripts ---- */

int mbm_run_script(lua_State *L, char **argv, int script)
{
    const char *name = argv[script];
    if (strcmp(name, "-") == 0 && strcmp(argv[script - 1], "--") != 0)
        name = NULL;
    int status = name ? luaL_loadfile(L, name) : load_stdin(L);
    if (status == LUA_OK) {
        if (lua_getglobal(L, "arg") != LUA_TTABLE)
            luaL_error(L, "'arg' is not a table");
        int count = (int)luaL_len(L, -1);
        luaL_checkstack(L, count + 3, "too many arguments to script");
        for (int i = 1; i <= count; i++)
            lua_rawgeti(L, -i, i);
        lua_remove(L, -count - 1);
        status = mbl_call(L, count, 0);
    }
    const int top = lua_gettop(L);
    if (status == LUA_OK && push_log(L, "exit_status") && lua_pcall(L, 0, 1, 0) == LUA_OK)
        mbm_exit_status = (int)lua_tointeger(L, -1);
    lua_settop(L, top);
    return mbm_report(L, status);
}

int mbm_run_recorded(lua_State *L, const char *how, const char *name)
{
    int status = push_function(L, "moonbeam.internal.script", how);
    if (status == LUA_OK) {
        lua_pushstring(L, name); /* nil if there are only statements */
        lua_rawgetp(L, LUA_REGISTRYINDEX, &statements_key);
        status = lua_pcall(L, 2, 1, 0);
    }
    if (status == LUA_OK)
        mbm_exit_status = (int)lua_tointeger(L, -1);
    return mbm_report(L, status);
}

int mbm_check_leaks(lua_State *L)
{
    int status = push_function(L, "moonbeam.internal.script", "leaks");
    if (status == LUA_OK)
        status = lua_pcall(L, 0, 1, 0);
    if (status == LUA_OK && lua_toboolean(L, -1) && mbm_exit_status == EXIT_SUCCESS)
        mbm_exit_status = EXIT_FAILURE;
    return mbm_report(L, status);
}

int mbm_run_prompt(lua_State *L)
{
    int status = push_function(L, "moonbeam.internal.repl", "run");
    if (status == LUA_OK)
        status = lua_pcall(L, 0, 0, 0);
    return mbm_report(L, status);
}
