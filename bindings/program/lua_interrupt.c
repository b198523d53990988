/*
** Signals that stop Lua code.
**
** `mbl_call` is the one place where code runs interruptibly (scripts from main.c, statements from
** the REPL). The first SIGINT sets the runtime's cancel flag, so that an operator stops between
** chunks, and a Lua hook, so that Lua code stops at its next instruction with a "cancelled" error
** object. SIGTERM, by which batch systems end a job, and SIGHUP do the same unless they are
** ignored; unfinished files are removed before the program ends. A second signal ends a process
** that does not react (it may be in a long C function, such as string.rep): the handler removes
** the files that the exit handlers would remove, and the signal then has its default action.
**
** Code that is about to finish what it has begun holds stops back (mbl_hold_stop): the first signal
** then waits until the code lets it go. A second signal stops the code as the first one would have
** done, and a third one ends the process.
**
** A hook belongs to one Lua thread, so the handler must know which coroutine runs. The program
** therefore has its own coroutine.resume and coroutine.wrap, which record it. An error in a
** coroutine ends there, so the stop is raised again in the state that resumed the coroutine, up to
** the state that mbl_call was given.
**
** Code that catches the error and goes on gets it again: after PATIENCE_NS at each of its
** instructions, so that it leaves one protected call after the other. The module's own Lua half is
** left alone, and its time does not count: it is ending what it has begun.
*/
#define _GNU_SOURCE
#include "program/lua_interrupt.h"
#include "program/lua_advice.h"
#include "cluster/cluster.h"
#include "core/clock.h"
#include "call/lua_error.h"
#include "call/lua_owner.h"
#include "files/target.h"
#include <lualib.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_NS UINT64_C(300000000)
#define SOME 1000 /* instructions between two looks at the clock */

static lua_State *base_state; /* the state of the innermost mbl_call; NULL: none runs */
static lua_State
    *running_state;      /* base_state, or the coroutine that runs in it: gets the handler's hook */
static int base_depth;   /* the functions that run when the innermost mbl_call begins */
static bool fired;       /* the stop has been raised in some state */
static bool raised;      /* the stop has been raised in base_state, which completes it */
static uint64_t gone_on; /* ns that code has gone on since the stop was raised */
static uint64_t looked;  /* when that was counted last */
static volatile sig_atomic_t stop_signal; /* the signal that stopped the last mbl_call, or 0 */
static volatile sig_atomic_t holding;     /* stops are held back */
static volatile sig_atomic_t waiting;     /* one is */
static volatile sig_atomic_t by_ranks;    /* it is that of ranks that end, and of no one else yet */

static const struct {
    int number;
    const char *message;
} STOPS[] = {
    {SIGINT, "interrupted by Ctrl-C"},
    {SIGTERM, "interrupted by SIGTERM"},
    {SIGHUP, "interrupted by SIGHUP"},
};
enum { STOP_COUNT = sizeof STOPS / sizeof STOPS[0] };

/* Has a stop come that is neither held back nor handled? */
static bool stopping(void)
{
    return stop_signal != 0 && !waiting && !raised;
}

static void insist_hook(lua_State *L, lua_Debug *ar);

static bool impatient(void)
{
    return gone_on >= PATIENCE_NS;
}

/* Has the state looked at: whether it goes on after the stop. */
static void insist(lua_State *L)
{
    lua_sethook(L, insist_hook, LUA_MASKCOUNT, impatient() ? 1 : SOME);
}

/* Raises the stop in the state, and insists. */
static int raise_stop(lua_State *L)
{
    if (!fired)
        looked = mb_now_ns();
    fired = true;
    raised = raised || L == base_state;
    insist(L);
    for (int i = 0; i < STOP_COUNT; i++)
        if (STOPS[i].number == stop_signal)
            mb_fail(MB_STATUS_CANCELLED, NULL, "%s", STOPS[i].message);
    mbl_push_error(L);
    return lua_error(L);
}

/* Raises the stop again in a state that goes on after it. */
static void insist_hook(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    const uint64_t now = mb_now_ns();
    const bool ours = mbl_in_library(L);
    gone_on += ours ? 0 : now - looked;
    looked = now;
    if (impatient() && !ours)
        raise_stop(L);
}

static void stop_hook(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    lua_sethook(L, NULL, 0, 0);
    if (stopping()) /* else: a coroutine that was suspended while the stop was handled */
        raise_stop(L);
}

/* Makes Lua code of the state stop at its next instruction. Safe in a signal handler. */
static void stop_soon(lua_State *L)
{
    lua_sethook(L, stop_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
}

/* Does only what is allowed in a signal handler. */
static void hold_back(void)
{
    static const char note[] = "\ninterrupted: ends when the blocks in flight are finished; once "
                               "more ends it now\n";
    waiting = 1;
    if (mb_cluster_place()->rank > 0 || mb_cluster_ending())
        return; /* rank 0 says it, or has said why */
    if (write(STDERR_FILENO, note, sizeof note - 1) < 0)
        return; /* nobody reads the message */
}

/* Ranks that end stop each other, and their launcher stops them, too: that is one stop. Returns
** whether this is the second half of it. */
static bool is_same_stop(const siginfo_t *info)
{
    const mb_cluster_stop_kind kind = mb_cluster_stops(info);
    const bool first = stop_signal == 0;
    if (kind == MB_CLUSTER_NO_STOP)
        mb_cluster_stopped();
    const bool same = !first && (kind == MB_CLUSTER_STOP || by_ranks);
    by_ranks = kind == MB_CLUSTER_STOP && first;
    return kind == MB_CLUSTER_STOP_NOW ? !first && !waiting : same;
}

/* Does only what is allowed in a signal handler. */
static void on_interrupt(int number, siginfo_t *info, void *unused)
{
    (void)unused;
    if (is_same_stop(info))
        return;
    if (stop_signal != 0 && !waiting) { /* the default action follows when the handler returns */
        mb_target_remove_parts();
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    const bool first = stop_signal == 0;
    if (first)
        stop_signal = number;
    if (first && holding) {
        hold_back();
        return;
    }
    waiting = 0;
    mb_cancel_set(true);
    if (running_state)
        stop_soon(running_state);
}

void mbl_hold_stop(void)
{
    holding = 1;
}

int mbl_let_stop(lua_State *L)
{
    holding = 0;
    if (!waiting)
        return 0;
    waiting = 0;
    mb_cancel_set(true);
    if (stop_signal != 0 && running_state == L)
        return raise_stop(L);
    mb_cancel_check();
    mbl_push_error(L);
    return lua_error(L);
}

bool mbl_stop_waits(void)
{
    return waiting != 0;
}

void mbl_ask_stop(void)
{
    if (holding)
        waiting = 1;
    else
        mb_cancel_set(true);
}

/* The number of functions that are running. */
static int stack_depth(lua_State *L)
{
    lua_Debug ar;
    int depth = 0;
    while (lua_getstack(L, depth, &ar))
        depth++;
    return depth;
}

static bool is_error_object(lua_State *L)
{
    if (!lua_istable(L, 1) || !lua_getmetatable(L, 1))
        return false;
    luaL_getmetatable(L, MBL_ERROR);
    const bool found = lua_rawequal(L, -1, -2);
    lua_settop(L, 1);
    return found;
}

/* Adds to an error object the lines that led to the line it blames: `callers`, innermost first. An
** interrupt is not the fault of a line. */
static void add_callers(lua_State *L)
{
    lua_pushliteral(L, "code");
    lua_rawget(L, 1);
    const char *code = lua_tostring(L, -1);
    const bool cancelled = code && strcmp(code, mb_status_name(MB_STATUS_CANCELLED)) == 0;
    lua_pushliteral(L, "callers");
    if (lua_rawget(L, 1) == LUA_TNIL && !cancelled) {
        lua_pushliteral(L, "where");
        lua_rawget(L, 1);
        const char *where = lua_tostring(L, -1);
        const int levels = stack_depth(L) - base_depth;
        if (mbl_push_callers(L, where ? mbl_intern(where) : NULL, levels) > 0)
            lua_setfield(L, 1, "callers");
    }
    lua_settop(L, 1);
}

/* Did the main chunk of a script or a statement raise the error? */
static bool in_main_chunk(lua_State *L)
{
    lua_Debug where;
    return lua_getstack(L, 1, &where) && lua_getinfo(L, "S", &where) &&
           strcmp(where.what, "main") == 0;
}

/* Error objects and other values with a __tostring stay as they are: their text is one line for the
** user. */
static int add_traceback(lua_State *L)
{
    const char *message = lua_tostring(L, 1);
    if (is_error_object(L)) {
        add_callers(L);
        return 1;
    }
    if (!message) {
        if (luaL_getmetafield(L, 1, "__tostring") != LUA_TNIL) {
            lua_settop(L, 1);
            return 1;
        }
        message = lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
    }
    if (mbl_push_advice(L, message)) {
        if (in_main_chunk(L))
            return 1; /* the line says it all */
        message = lua_tostring(L, -1);
    }
    luaL_traceback(L, L, message, 1);
    return 1;
}

int mbl_call(lua_State *L, int arguments, int results)
{
    struct sigaction action, before[STOP_COUNT];
    lua_State *outer_base = base_state, *outer_running = running_state;
    const int outer_depth = base_depth;
    int base = lua_gettop(L) - arguments;
    base_depth = stack_depth(L);
    lua_pushcfunction(L, add_traceback);
    lua_insert(L, base);
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_interrupt;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < STOP_COUNT; i++) /* one handler at a time */
        sigaddset(&action.sa_mask, STOPS[i].number);
    mb_cancel_set(false);
    base_state = running_state = L;
    fired = raised = false;
    gone_on = 0;
    stop_signal = holding = waiting = by_ranks = 0;
    for (int i = 0; i < STOP_COUNT; i++) {
        sigaction(STOPS[i].number, &action, &before[i]);
        if (STOPS[i].number != SIGINT && before[i].sa_handler == SIG_IGN) /* nohup */
            sigaction(STOPS[i].number, &before[i], NULL);
    }
    int status = lua_pcall(L, arguments, results, base);
    for (int i = 0; i < STOP_COUNT; i++)
        sigaction(STOPS[i].number, &before[i], NULL);
    base_state = outer_base;
    running_state = outer_running;
    holding = waiting = 0;
    base_depth = outer_depth;
    lua_sethook(L, NULL, 0, 0); /* a signal may have come between the last instruction and here */
    mb_cancel_set(false);
    lua_remove(L, base);
    return status;
}

int mbl_stop_signal(void)
{
    return stop_signal;
}

/* ---- coroutines ---- */

/* Runs the coroutine with the arguments on top of L's stack. Returns the number of results on top
** of L's stack, or -1 with an error there. Same as in lcorolib.c, except that it sets
** running_state. */
static int resume(lua_State *L, lua_State *co, int arguments)
{
    const bool known = running_state == L; /* otherwise nothing here can be interrupted */
    int results = 0;
    if (!lua_checkstack(co, arguments)) {
        lua_pushliteral(L, "too many arguments to resume");
        return -1;
    }
    lua_xmove(L, co, arguments);
    if (known)
        running_state = co;
    if (known && stopping())
        stop_soon(co); /* the hook was set on L a moment ago */
    else if (known && stop_signal != 0 && fired)
        insist(co);
    const int status = lua_resume(co, L, arguments, &results);
    if (known)
        running_state = L;
    if (status != LUA_OK && status != LUA_YIELD) {
        lua_xmove(co, L, 1);
        return -1;
    }
    if (!lua_checkstack(L, results + 1)) {
        lua_pop(co, results);
        lua_pushliteral(L, "too many results to resume");
        return -1;
    }
    lua_xmove(co, L, results);
    return results;
}

/* After a coroutine has returned to L: a stop that was raised in the coroutine, or that arrived as
** the coroutine ended, is raised in L too. */
static void pass_stop_on(lua_State *L)
{
    if (running_state == L && stopping())
        stop_soon(L);
}

static int coroutine_resume(lua_State *L)
{
    lua_State *co = lua_tothread(L, 1);
    luaL_argexpected(L, co, 1, "thread");
    const int results = resume(L, co, lua_gettop(L) - 1);
    pass_stop_on(L);
    lua_pushboolean(L, results >= 0);
    lua_insert(L, results < 0 ? -2 : -(results + 1));
    return results < 0 ? 2 : results + 1;
}

static int wrapped(lua_State *L)
{
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));
    const int results = resume(L, co, lua_gettop(L));
    if (results >= 0) {
        pass_stop_on(L);
        return results;
    }
    int status = lua_status(co);
    if (status != LUA_OK &&
        status != LUA_YIELD) { /* an error in the coroutine: its variables are closed */
        status = lua_resetthread(co);
        lua_xmove(co, L, 1);
    }
    if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    if (L == base_state && fired)
        raised = true; /* this error continues the stop */
    if (stop_signal != 0 && fired)
        insist(L);
    return lua_error(L);
}

static int coroutine_wrap(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_State *co = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    lua_pushcclosure(L, wrapped, 1);
    return 1;
}

void mbl_open_coroutines(lua_State *L)
{
    lua_getglobal(L, LUA_COLIBNAME);
    lua_pushcfunction(L, coroutine_resume);
    lua_setfield(L, -2, "resume");
    lua_pushcfunction(L, coroutine_wrap);
    lua_setfield(L, -2, "wrap");
    lua_pop(L, 1);
}
