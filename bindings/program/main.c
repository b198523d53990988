/*
** The moonbeam interpreter: Lua 5.4 with the module inside. The command line is that of `lua`, plus
** --help and --device. The Lua half of the module is found through MOONBEAM_LUA, or beside the
** program (../lua), or in the source tree above it; the prompt itself is Lua (moonbeam/internal/repl.lua).
*/
#define _GNU_SOURCE
#include "lua_moonbeam.h"
#include "files/target.h"
#include "files/h5/h5probe.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lualib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *program = "moonbeam";

/* What the options ask for; bits of collect_arguments. */
enum {
    BAD = 1,
    INTERACTIVE = 2,
    VERSION = 4,
    EXECUTE = 8,
    NO_ENVIRONMENT = 16,
    HELP = 32,
    PLAN = 64,
    LEDGER = 128,
    LEAKS = 256
};

static void print_usage(FILE *stream)
{
    fprintf(stream,
            "usage: %s [options] [script [args]]\n"
            "Available options are:\n"
            "  -e stat       execute string 'stat'\n"
            "  -i            enter interactive mode after executing 'script'\n"
            "  -l mod        require library 'mod' into global 'mod'\n"
            "  -l g=mod      require library 'mod' into global 'g'\n"
            "  -v, --version show version information\n"
            "  -E            ignore environment variables\n"
            "  -W            turn warnings on\n"
            "  --device ID   the default device: host, cuda:0, ...\n"
            "  --budget SIZE what the default device may use, e.g. 8G\n"
            "  --plan        dry-run 'script', and 'stat' of -e: print what every step would take\n"
            "  --ledger      dry-run them, run them, compare every step\n"
            "  --leaks       fail when arrays are still live after 'script': list them by line\n"
            "  -h, --help    show this text\n"
            "  --            stop handling options\n"
            "  -             stop handling options and execute stdin\n",
            program);
}

#define STATUS_MISUSE 2 /* the exit status of wrong use */

static int failure_status = EXIT_FAILURE;

static void print_bad_option(const char *option)
{
    const char *problem = "is no option";
    if (option[1] == 'e' || option[1] == 'l' || strcmp(option, "--device") == 0 ||
        strcmp(option, "--budget") == 0)
        problem = "needs an argument";
    else if (strcmp(option, "--plan") == 0 || strcmp(option, "--ledger") == 0 ||
             strcmp(option, "--leaks") == 0)
        problem = "needs a script";
    fprintf(stderr, "%s: '%s' %s; '%s --help' shows the options\n", program, option, problem,
            program);
    fflush(stderr);
    failure_status = STATUS_MISUSE;
}

static void print_version(void)
{
    printf("Moonbeam %s, %s\n", MB_VERSION, LUA_COPYRIGHT);
    fflush(stdout);
}

/* ---- threads ---- */

/*
** OpenMP threads that wait for work sleep, unless the user says otherwise: threads that spin take
** the processor from other programs, and from this one where there are more threads than free
** processors (ten times slower on a busy machine). libgomp reads the environment once, in a
** constructor. The program contains a libgomp of its own (premake5.lua), whose constructor has no
** priority, so this one runs before it. A shared libgomp, which a stock Lua loads with our
** module, is ready before anything of ours runs: there the policy is the user's
** (OMP_WAIT_POLICY=passive).
*/
static bool policy_is_ours;

__attribute__((constructor(101))) static void choose_wait_policy(void)
{
    if (getenv("OMP_WAIT_POLICY") == NULL && getenv("GOMP_SPINCOUNT") == NULL)
        policy_is_ours = setenv("OMP_WAIT_POLICY", "passive", 1) == 0;
}

/* What the program starts inherits the environment that the user made. */
static void restore_environment(void)
{
    if (policy_is_ours)
        unsetenv("OMP_WAIT_POLICY");
}

/* ---- standard streams ---- */

/* A file that is opened later must not become the standard output because that was closed:
** whatever is printed would go into it. What stands in for a closed stream refuses to be written.
** */
static void occupy_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* At exit, also by os.exit: a plan or a table that could not be written is no success. */
static void check_output(int status, void *unused)
{
    (void)unused;
    errno = 0;
    const bool failed = ferror(stdout) != 0;
    const bool flushed = fflush(stdout) == 0;
    if (flushed && !failed && !mbl_output_lost())
        return;
    if (!mbl_output_lost()) /* `print` has told it */
        fprintf(stderr, "%s: cannot write all of the standard output: %s\n", program,
                errno != 0 ? strerror(errno) : "an earlier write failed");
    if (status == EXIT_SUCCESS)
        _exit(EXIT_FAILURE);
}

static void stay_alive(int number)
{
    (void)number;
}

/* A reader that has gone, and a limit on the size of files (ulimit -f): the write fails, and that
** ends the program in order, not the signal. By handlers, which the programs that are started do
** not inherit. */
static void outlive_failed_writes(void)
{
    static const int SIGNALS[] = {SIGPIPE, SIGXFSZ};
    struct sigaction action = {.sa_handler = stay_alive, .sa_flags = SA_RESTART}, before;
    for (size_t i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++)
        if (sigaction(SIGNALS[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(SIGNALS[i], &action, NULL);
}

/* ---- crashes ---- */

#ifdef __SANITIZE_ADDRESS__
static void watch_for_crashes(void) {} /* the sanitizer tells more */
#else
static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* nobody listens */
}

/* Only what a signal handler may do. libhdf5 crashes on some damaged files; that is told. Whatever
** else crashes goes on to do so: the signal has its default action by now. */
static void crashed(int number)
{
    const char *path = mb_h5_inside();
    mb_target_remove_parts();
    if (path == NULL) {
        raise(number);
        return;
    }
    say(program);
    say(": '");
    say(path);
    say("' has made libhdf5 crash, so it is damaged, most likely: copy it again, or take another "
        "copy\n");
    _exit(EXIT_FAILURE);
}

/* On a stack of its own, for the main thread's may be what has run out. */
static void watch_for_crashes(void)
{
    static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
    static char memory[1 << 16];
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction action = {.sa_handler = crashed, .sa_flags = SA_ONSTACK | (int)SA_RESETHAND};
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++)
        sigaction(SIGNALS[i], &action, NULL);
}
#endif

/* Is it an error object with this code? */
static bool has_code(lua_State *L, int index, mb_status status)
{
    if (!lua_istable(L, index))
        return false;
    lua_getfield(L, index, "code");
    const char *code = lua_tostring(L, -1);
    bool found = code != NULL && strcmp(code, mb_status_name(status)) == 0;
    lua_pop(L, 1);
    return found;
}

/* Prints the error on the top of the stack, if there is one. */
static int report(lua_State *L, int status)
{
    if (status != LUA_OK) {
        if (has_code(L, -1, MB_STATUS_CANCELLED))
            failure_status = 128 + mbl_stop_signal(); /* as shells say it */
        size_t length;
        const char *message = luaL_tolstring(L, -1, &length);
        mbl_push_printable(L, message, length, true);
        fprintf(stderr, "%s: %s\n", program, lua_tostring(L, -1));
        fflush(stderr);
        lua_pop(L, 3);
    }
    return status;
}

static int run_chunk(lua_State *L, int status)
{
    if (status == LUA_OK)
        status = mbl_call(L, 0, 0);
    return report(L, status);
}

static int run_file(lua_State *L, const char *name)
{
    return run_chunk(L, luaL_loadfile(L, name));
}

static int run_string(lua_State *L, const char *text, const char *name)
{
    return run_chunk(L, luaL_loadbuffer(L, text, strlen(text), name));
}

/* -l mod, -l g=mod */
static int run_library(lua_State *L, const char *name)
{
    const char *module = strchr(name, '=');
    if (module != NULL)
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
    report(L, status);
    lua_pop(L, 1);
    return status;
}

/* Sorts the options out; *first is the index of the script, or of argc when there is none. */
static int collect_arguments(char **argv, int *first)
{
    int flags = 0, i;
    for (i = 1; argv[i] != NULL; i++) {
        *first = i;
        if (argv[i][0] != '-')
            return flags;
        switch (argv[i][1]) {
        case '-':
            if (strcmp(argv[i], "--help") == 0) {
                flags |= HELP;
                break;
            }
            if (strcmp(argv[i], "--version") == 0) {
                flags |= VERSION;
                break;
            }
            if (strcmp(argv[i], "--plan") == 0) {
                flags |= PLAN;
                break;
            }
            if (strcmp(argv[i], "--ledger") == 0) {
                flags |= LEDGER;
                break;
            }
            if (strcmp(argv[i], "--leaks") == 0) {
                flags |= LEAKS;
                break;
            }
            if (strcmp(argv[i], "--device") == 0 || strcmp(argv[i], "--budget") == 0) {
                if (argv[++i] == NULL)
                    return BAD;
                break;
            }
            if (strncmp(argv[i], "--device=", 9) == 0 || strncmp(argv[i], "--budget=", 9) == 0)
                break;
            if (argv[i][2] != '\0')
                return BAD;
            *first = i + 1;
            return flags;
        case '\0': return flags;
        case 'h':
            if (argv[i][2] != '\0')
                return BAD;
            flags |= HELP;
            break;
        case 'E':
            if (argv[i][2] != '\0')
                return BAD;
            flags |= NO_ENVIRONMENT;
            break;
        case 'W':
            if (argv[i][2] != '\0')
                return BAD;
            break;
        case 'i':
            if (argv[i][2] != '\0')
                return BAD;
            flags |= INTERACTIVE | VERSION;
            break;
        case 'v':
            if (argv[i][2] != '\0')
                return BAD;
            flags |= VERSION;
            break;
        case 'e':
            flags |= EXECUTE;
            /* fall through */
        case 'l':
            if (argv[i][2] == '\0' && (argv[++i] == NULL || argv[i][0] == '-'))
                return BAD;
            break;
        default: return BAD;
        }
    }
    *first = i;
    return flags;
}

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

static int set_device(lua_State *L, const char *id, const char *budget)
{
    lua_pushcfunction(L, apply_device);
    lua_pushstring(L, id);
    lua_pushstring(L, budget);
    int status = mbl_call(L, 2, 0);
    if (status != LUA_OK && has_code(L, -1, MB_STATUS_ARGUMENT))
        failure_status = STATUS_MISUSE;
    report(L, status);
    lua_settop(L, 0);
    return status;
}

/* The value of the option NAME at argv[*i], NAME=VALUE or NAME VALUE (then *i moves on to it), or
** NULL. */
static const char *option_value(char **argv, int *i, const char *name)
{
    const size_t length = strlen(name);
    if (argv[*i] == NULL || strncmp(argv[*i], name, length) != 0)
        return NULL;
    if (argv[*i][length] == '=')
        return argv[*i] + length + 1;
    return argv[*i][length] == '\0' ? argv[++*i] : NULL;
}

/* Statements of -e that are not run but planned, or recorded, as the beginning of the script: a
** list in the registry. */
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

/* The options that do something: the device first, then the rest in order. False after the first
** failure. */
static bool run_options(lua_State *L, char **argv, int count, bool recorded)
{
    const char *device = NULL, *budget = NULL;
    for (int i = 1; i < count; i++) {
        const char *value = option_value(argv, &i, "--device");
        if (value != NULL)
            device = value;
        else if ((value = option_value(argv, &i, "--budget")) != NULL)
            budget = value;
        else if ((argv[i][1] == 'e' || argv[i][1] == 'l') && argv[i][2] == '\0')
            i++;
    }
    if ((device != NULL || budget != NULL) && set_device(L, device, budget) != LUA_OK)
        return false;
    for (int i = 1; i < count; i++) {
        char option = argv[i][1];
        int status = LUA_OK;
        if (option == 'e' || option == 'l') {
            const char *extra = argv[i][2] != '\0' ? argv[i] + 2 : argv[++i];
            if (option == 'l')
                status = run_library(L, extra);
            else if (recorded)
                keep_statement(L, extra);
            else
                status = run_string(L, extra, "=(command line)");
        } else if (option == 'W') {
            lua_warning(L, "@on", 0);
        } else if (strcmp(argv[i], "--device") == 0 || strcmp(argv[i], "--budget") == 0) {
            i++;
        }
        if (status != LUA_OK)
            return false;
    }
    return true;
}

static int run_init(lua_State *L)
{
    const char *name = "=LUA_INIT_5_4";
    const char *init = getenv(name + 1);
    if (init == NULL) {
        name = "=LUA_INIT";
        init = getenv(name + 1);
    }
    if (init == NULL)
        return LUA_OK;
    return init[0] == '@' ? run_file(L, init + 1) : run_string(L, init, name);
}

/* arg: the script is arg[0], what comes before it has negative indices. */
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

static int run_script(lua_State *L, char **argv)
{
    const char *name = argv[0];
    if (strcmp(name, "-") == 0 && strcmp(argv[-1], "--") != 0)
        name = NULL;
    int status = luaL_loadfile(L, name);
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
    return report(L, status);
}

/* The script under moonbeam.script: "plan" or "ledger". Its exit status is the program's. */
static int exit_status = EXIT_SUCCESS;

static int run_recorded(lua_State *L, const char *how, const char *name)
{
    lua_getglobal(L, "require");
    lua_pushliteral(L, "moonbeam.internal.script");
    int status = lua_pcall(L, 1, 1, 0);
    if (status == LUA_OK) {
        lua_getfield(L, -1, how);
        lua_pushstring(L, name); /* nil where there are only statements */
        lua_rawgetp(L, LUA_REGISTRYINDEX, &statements_key);
        status = lua_pcall(L, 2, 1, 0);
    }
    if (status == LUA_OK)
        exit_status = (int)lua_tointeger(L, -1);
    return report(L, status);
}

/* Whether nothing is live on any device now that the script has ended; else says what is. */
static int check_leaks(lua_State *L)
{
    lua_getglobal(L, "require");
    lua_pushliteral(L, "moonbeam.internal.script");
    int status = lua_pcall(L, 1, 1, 0);
    if (status == LUA_OK) {
        lua_getfield(L, -1, "leaks");
        status = lua_pcall(L, 0, 1, 0);
    }
    if (status == LUA_OK && lua_toboolean(L, -1) && exit_status == EXIT_SUCCESS)
        exit_status = EXIT_FAILURE;
    return report(L, status);
}

/* The prompt, or plain execution of stdin when it is not a terminal and nobody asked for a prompt.
** */
static int run_prompt(lua_State *L)
{
    lua_getglobal(L, "require");
    lua_pushliteral(L, "moonbeam.internal.repl");
    int status = lua_pcall(L, 1, 1, 0);
    if (status == LUA_OK) {
        lua_getfield(L, -1, "run");
        status = lua_pcall(L, 0, 0, 0);
    }
    return report(L, status);
}

/*
** Where the Lua half is
*/

static bool readable(const char *name)
{
    return access(name, R_OK) == 0;
}

static void add_to_path(lua_State *L, const char *folder)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "path");
    lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;%s", folder, folder, lua_tostring(L, -1));
    lua_setfield(L, -3, "path");
    lua_pop(L, 2);
}

static void find_lua_half(lua_State *L, bool environment)
{
    char folder[PATH_MAX], name[PATH_MAX + 64];
    const char *chosen = environment ? getenv("MOONBEAM_LUA") : NULL;
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        *slash = '\0';
    mb_device_set_plugin_folder(folder);
    if (chosen != NULL && chosen[0] != '\0') {
        add_to_path(L, chosen);
        return;
    }
    snprintf(name, sizeof name, "%s/../lua/moonbeam/init.lua", folder);
    if (readable(name)) {
        snprintf(name, sizeof name, "%s/../lua", folder);
        char *real = realpath(name, NULL);
        add_to_path(L, real != NULL ? real : name);
        free(real);
        return;
    }
    while ((slash = strrchr(folder, '/')) != NULL) {
        snprintf(name, sizeof name, "%s/bindings/moonbeam/init.lua", folder);
        if (readable(name)) {
            snprintf(name, sizeof name, "%s/bindings", folder);
            add_to_path(L, name);
            return;
        }
        *slash = '\0';
    }
}

static int protected_main(lua_State *L)
{
    int argc = (int)lua_tointeger(L, 1), script = 0;
    bool failed = false;
    char **argv = lua_touserdata(L, 2);
    int flags = collect_arguments(argv, &script);
    luaL_checkversion(L);
    lua_settop(L, 0);
    if (flags == BAD) {
        print_bad_option(argv[script]);
        return 0;
    }
    if (flags & HELP) {
        print_usage(stdout);
        lua_pushboolean(L, 1);
        return 1;
    }
    if (flags & VERSION)
        print_version();
    if (flags & NO_ENVIRONMENT) {
        lua_pushboolean(L, 1);
        lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
    }
    luaL_openlibs(L);
    mbl_open_print(L);
    mbl_release_at_close(L);
    mbl_open_coroutines(L);
    mbl_open_error(L); /* a script that does not load the module can be interrupted, too */
    lua_pop(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, luaopen_moonbeam_core);
    lua_setfield(L, -2, "moonbeam.core");
    lua_pop(L, 1);
    find_lua_half(L, !(flags & NO_ENVIRONMENT));
    set_arg(L, argv, argc, script);
    if (!(flags & NO_ENVIRONMENT) && run_init(L) != LUA_OK)
        return 0;
    if (!run_options(L, argv, script, flags & (PLAN | LEDGER)))
        return 0;
    bool needs_script = flags & (PLAN | LEDGER | LEAKS) && !(flags & EXECUTE);
    if (needs_script && script == argc) {
        print_bad_option(flags & PLAN ? "--plan" : flags & LEDGER ? "--ledger" : "--leaks");
        return 0;
    }
    if (flags & (PLAN | LEDGER)) {
        if (run_recorded(L, flags & PLAN ? "plan" : "ledger", argv[script]) != LUA_OK)
            return 0;
    } else if (script < argc && run_script(L, argv + script) != LUA_OK) {
        failed = true;
    }
    if ((flags & LEAKS) && check_leaks(L) != LUA_OK)
        return 0;
    if (failed)
        return 0;
    if (flags & INTERACTIVE) {
        if (run_prompt(L) != LUA_OK)
            return 0;
    } else if (script == argc && !(flags & (EXECUTE | VERSION))) {
        if (isatty(STDIN_FILENO)) {
            print_version();
            if (run_prompt(L) != LUA_OK)
                return 0;
        } else if (run_file(L, NULL) != LUA_OK) {
            return 0;
        }
    }
    lua_pushboolean(L, 1);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], MB_H5_PROBE_OPTION) == 0)
        return mb_h5_probe_child(argv[2], argv[3]);
    mb_h5_probe_by_self();
    lua_State *L = luaL_newstate();
    if (argv[0] != NULL && argv[0][0] != '\0')
        program = argv[0];
    restore_environment();
    occupy_standard_streams();
    on_exit(check_output, NULL);
    outlive_failed_writes();
    watch_for_crashes();
    if (L == NULL) {
        fprintf(stderr, "%s: cannot create state: not enough memory\n", program);
        return EXIT_FAILURE;
    }
    lua_pushcfunction(L, protected_main);
    lua_pushinteger(L, argc);
    lua_pushlightuserdata(L, argv);
    int status = lua_pcall(L, 2, 1, 0);
    bool ok = status == LUA_OK && lua_toboolean(L, -1);
    report(L, status);
    lua_close(L);
    mbl_garbage_drain();
    uint64_t left = mb_devices_close();
    if (left > 0) { /* nothing refers to them any more: that is no mistake of the script's */
        fprintf(stderr, "%s: the runtime itself has lost %llu blocks\n", program,
                (unsigned long long)left);
        ok = false;
    }
    return ok ? exit_status : failure_status;
}
