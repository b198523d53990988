/*
** Reading a line at the prompt: with GNU readline or libedit if one can be loaded at run time, and
** plainly otherwise. The program does not link them, so it neither takes on their license nor needs
** them installed. The callback interface is used because it lets Ctrl-C abandon the line without a
** long jump out of the library. One thread, one prompt.
*/
#define _GNU_SOURCE
#include "lua_modules.h"
#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMPLETER "moonbeam.completer"
#define HISTORY_KEPT 2000 /* statements */

typedef char **completion_function(const char *text, int start, int end);
typedef char *generator_function(const char *text, int state);

/* The functions and variables that are used; NULL if no library was loaded. */
static struct {
    bool tried;
    const char *name;
    void (*install)(const char *prompt, void (*handler)(char *line));
    void (*remove)(void);
    void (*read_char)(void);
    void (*add_history)(const char *line);
    void (*stifle_history)(int lines);
    char **(*matches)(const char *text, generator_function *generator);
    char **line_buffer;
    int *over, *append;
} editor;

static lua_State *active; /* the state whose line is being read, for completion */
static char *finished_line;
static bool line_finished;
static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static void take_line(char *line)
{
    finished_line = line;
    line_finished = true;
    editor.remove();
}

/* Returns candidate number `state` of the completer's last answer, the table on the top of the
** active stack. */
static char *next_candidate(const char *text, int state)
{
    char *copy = NULL;
    (void)text;
    if (lua_rawgeti(active, -1, state + 1) == LUA_TSTRING)
        copy = strdup(lua_tostring(active, -1));
    lua_pop(active, 1);
    return copy;
}

static char *numbered_candidate(const char *text, int state)
{
    static int number;
    number = state == 0 ? 0 : number + 1;
    return next_candidate(text, number);
}

static char **complete(const char *text, int start, int end)
{
    char **matches = NULL;
    int top = lua_gettop(active);
    if (editor.over)
        *editor.over = 1; /* no file names */
    if (editor.append)
        *editor.append = '\0'; /* the library sets it again before each completion */
    (void)end;
    if (lua_checkstack(active, 8) &&
        lua_getfield(active, LUA_REGISTRYINDEX, COMPLETER) == LUA_TFUNCTION) {
        lua_pushstring(active, text);
        lua_pushlstring(active, *editor.line_buffer, (size_t)start);
        if (lua_pcall(active, 2, 1, 0) == LUA_OK && lua_istable(active, -1))
            matches = editor.matches(text, numbered_candidate);
    }
    lua_settop(active, top);
    return matches;
}

static bool load_editor(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    if (!handle)
        return false;
    *(void **)&editor.install = dlsym(handle, "rl_callback_handler_install");
    *(void **)&editor.remove = dlsym(handle, "rl_callback_handler_remove");
    *(void **)&editor.read_char = dlsym(handle, "rl_callback_read_char");
    *(void **)&editor.add_history = dlsym(handle, "add_history");
    *(void **)&editor.stifle_history = dlsym(handle, "stifle_history");
    *(void **)&editor.matches = dlsym(handle, "rl_completion_matches");
    editor.line_buffer = dlsym(handle, "rl_line_buffer");
    if (!editor.install || !editor.remove || !editor.read_char || !editor.add_history) {
        dlclose(handle);
        return false;
    }
    int *catch_signals = dlsym(handle, "rl_catch_signals");
    if (catch_signals)
        *catch_signals = 0;
    editor.append = dlsym(handle, "rl_completion_append_character");
    editor.over = dlsym(handle, "rl_attempted_completion_over");
    const char **name = dlsym(handle, "rl_readline_name");
    if (name)
        *name = "moonbeam";
    const char **breaks = dlsym(handle, "rl_completer_word_break_characters");
    if (breaks)
        *breaks = " \t\n\"'`@$><=;|&{}()[]+-*/%^#~,?!";
    completion_function **completer = dlsym(handle, "rl_attempted_completion_function");
    if (completer && editor.matches && editor.line_buffer)
        *completer = complete;
    if (editor.stifle_history)
        editor.stifle_history(HISTORY_KEPT);
    editor.name = library;
    return true;
}

static bool have_editor(void)
{
    static const char *const libraries[] = {"libreadline.so.8", "libreadline.so.7", "libedit.so.2",
                                            "libedit.so.0", NULL};
    const char *term = getenv("TERM");
    if (!editor.tried) {
        editor.tried = true;
        if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !(term && strcmp(term, "dumb") == 0) &&
            !getenv("MOONBEAM_NO_READLINE"))
            for (int i = 0; libraries[i] && !load_editor(libraries[i]); i++)
                ;
        if (!editor.name)
            memset(&editor, 0, sizeof editor);
        editor.tried = true;
    }
    return editor.name != NULL;
}

/* Returns the edited line (malloc), or NULL at the end of input or after an interrupt. */
static char *edit_line(lua_State *L, const char *prompt)
{
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    active = L;
    finished_line = NULL;
    line_finished = false;
    editor.install(prompt, take_line);
    while (!line_finished && !interrupted) {
        int ready = poll(&input, 1, -1);
        if (ready > 0)
            editor.read_char();
        else if (ready < 0 && errno != EINTR)
            break;
    }
    if (!line_finished)
        editor.remove();
    active = NULL;
    return finished_line;
}

/* Returns a line of any length without its newline (malloc), or NULL. */
static char *plain_line(const char *prompt)
{
    char *line = NULL;
    size_t room = 0;
    fputs(prompt, stdout);
    fflush(stdout);
    ssize_t length = getline(&line, &room, stdin);
    if (length < 0) {
        free(line);
        clearerr(stdin);
        return NULL;
    }
    if (length > 0 && line[length - 1] == '\n')
        line[length - 1] = '\0';
    return line;
}

/* read_line(prompt): the line; nil at the end of input; nil, "interrupted" after Ctrl-C. */
static int input_read_line(lua_State *L)
{
    struct sigaction action, before;
    const char *prompt = luaL_checkstring(L, 1);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    sigemptyset(&action.sa_mask); /* no SA_RESTART: reading must return */
    interrupted = 0;
    sigaction(SIGINT, &action, &before);
    char *line = have_editor() ? edit_line(L, prompt) : plain_line(prompt);
    sigaction(SIGINT, &before, NULL);
    if (interrupted) {
        free(line);
        lua_pushnil(L);
        lua_pushliteral(L, "interrupted");
        return 2;
    }
    if (!line) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushstring(L, line); /* a memory error here ends the prompt; the line is lost with it */
    free(line);
    return 1;
}

static int input_add_history(lua_State *L)
{
    const char *line = luaL_checkstring(L, 1);
    if (have_editor())
        editor.add_history(line);
    return 0;
}

/*
** The file of the history: one statement a line. The line breaks within a statement are vertical
** tabs there, which no one types and which are white space to Lua. Statements are appended, so that
** two prompts can share the file.
*/

static void exchange(char *text, char from, char to)
{
    for (char *c = strchr(text, from); c; c = strchr(c, from))
        *c = to;
}

/* load_history(name): adds the latest statements of the file, and shortens a long file. */
static int input_load_history(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    FILE *file = have_editor() ? fopen(name, "r+") : NULL;
    char *line = NULL;
    size_t room = 0, count = 0;
    ssize_t length;
    if (!file)
        return 0;
    while (getline(&line, &room, file) >= 0)
        count++;
    const size_t skipped = count > HISTORY_KEPT ? count - HISTORY_KEPT : 0;
    char *kept = NULL;
    size_t kept_bytes = 0;
    FILE *copy = skipped > HISTORY_KEPT ? open_memstream(&kept, &kept_bytes) : NULL;
    rewind(file);
    for (size_t i = 0; (length = getline(&line, &room, file)) >= 0; i++) {
        if (i < skipped)
            continue;
        if (copy)
            fwrite(line, 1, (size_t)length, copy);
        if (length > 0 && line[length - 1] == '\n')
            line[length - 1] = '\0';
        exchange(line, '\v', '\n');
        editor.add_history(line);
    }
    if (copy && fclose(copy) == 0) {
        rewind(file);
        if (fwrite(kept, 1, kept_bytes, file) == kept_bytes && fflush(file) == 0 &&
            ftruncate(fileno(file), (off_t)kept_bytes) != 0)
            clearerr(file); /* a history that stays too long does no harm */
    }
    free(kept);
    free(line);
    fclose(file);
    return 0;
}

/* save_history(name, statement): appends the statement to the file. */
static int input_save_history(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1), *statement = luaL_checkstring(L, 2);
    char *line = have_editor() ? strdup(statement) : NULL;
    if (!line)
        return 0;
    const int fd = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "a") : NULL;
    exchange(line, '\n', '\v');
    if (file) {
        fprintf(file, "%s\n", line);
        fclose(file);
    } else if (fd >= 0) {
        close(fd);
    }
    free(line);
    return 0;
}

/* set_completer(f): f(word, line before it) returns a list of whole words. */
static int input_set_completer(lua_State *L)
{
    lua_settop(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, COMPLETER);
    return 0;
}

/* editor(): the library in use, or nil. */
static int input_editor(lua_State *L)
{
    if (have_editor())
        lua_pushstring(L, editor.name);
    else
        lua_pushnil(L);
    return 1;
}

int mbl_open_input(lua_State *L)
{
    static const luaL_Reg functions[] = {{"read_line", input_read_line},
                                         {"add_history", input_add_history},
                                         {"load_history", input_load_history},
                                         {"save_history", input_save_history},
                                         {"set_completer", input_set_completer},
                                         {"editor", input_editor},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
