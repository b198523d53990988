/*
** The ranks of a run in Lua: core.cluster (runtime/cluster/cluster.h). bindings/moonbeam/cluster.lua
** is what scripts use.
*/
#define _GNU_SOURCE
#include "cluster/lua_cluster.h"
#include "cluster/lua_spread.h"
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_table.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "device/numa.h"
#include "lua_modules.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char failure[1600];

bool mbl_cluster_note_failure(const char *line)
{
    if (mb_cluster_place()->size == 1)
        return false;
    if (failure[0] == '\0')
        snprintf(failure, sizeof failure, "%s", line);
    return true;
}

const char *mbl_cluster_failure(void)
{
    return failure;
}

void mbl_cluster_share_node(int processes)
{
    mb_device_set_sharing(processes);
    if (processes < 2)
        return;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    mb_processors_limit(online > processes ? (int)(online / processes) : 1);
    if (!getenv("OMP_NUM_THREADS"))
        omp_set_num_threads(mb_processors_count());
}

/* share_node(processes): plans as one of so many ranks of a node does. Before a device is open. */
static int cluster_share_node(lua_State *L)
{
    mbl_cluster_share_node((int)mbl_check_integer(L, 1, "processes"));
    return 0;
}

/* place(): {rank, size, node, node_rank, node_size, nodes, library}. */
static int cluster_place(lua_State *L)
{
    const mb_place *place = mb_cluster_place();
    lua_createtable(L, 0, 7);
    mbl_set_integer(L, "rank", place->rank);
    mbl_set_integer(L, "size", place->size);
    mbl_set_text(L, "node", place->node);
    mbl_set_integer(L, "node_rank", place->node_rank);
    mbl_set_integer(L, "node_size", place->node_size);
    mbl_set_integer(L, "nodes", place->nodes);
    mbl_set_text(L, "library", place->library);
    return 1;
}

/* deal(count): begins the next deal of the numbers 1 to count. */
static int cluster_deal(lua_State *L)
{
    mb_cluster_deal(mbl_check_integer(L, 1, "count"));
    return 0;
}

/* next(done): the next number of the deal, or nil. `done`: what this rank has finished since. */
static int cluster_next(lua_State *L)
{
    int64_t number = 0;
    mbl_check(L, mb_cluster_next(mbl_opt_integer(L, 1, "done", 0), &number));
    if (number == 0)
        return 0;
    lua_pushinteger(L, number);
    return 1;
}

/* tell(done): what this rank has finished since; it takes no number. */
static int cluster_tell(lua_State *L)
{
    mbl_check(L, mb_cluster_tell(mbl_check_integer(L, 1, "done")));
    return 0;
}

/* done(): what all ranks have told of as done in this deal; on rank 0. */
static int cluster_done(lua_State *L)
{
    lua_pushinteger(L, mb_cluster_done());
    return 1;
}

/* failing(): this rank removes what others use, because it fails. */
static int cluster_failing(lua_State *L)
{
    (void)L;
    mb_cluster_failing();
    return 0;
}

/* speaks(): does this rank speak for all? Rank 0 does, or another one where that has died. */
static int cluster_speaks(lua_State *L)
{
    lua_pushboolean(L, mb_cluster_speaks());
    return 1;
}

/* await_others(): on rank 0, if all ranks end before their time, waits until the others have noted
** what was in flight. */
static int cluster_await_others(lua_State *L)
{
    (void)L;
    mb_cluster_await_others();
    return 0;
}

/* post(text): gives a text to all ranks. */
static int cluster_post(lua_State *L)
{
    size_t bytes;
    const char *text = luaL_checklstring(L, 1, &bytes);
    mbl_check(L, mb_cluster_post(text, bytes));
    return 0;
}

/* collect(seconds): the texts of all ranks; nil if some have not posted theirs. */
static int cluster_collect(lua_State *L)
{
    char *all = NULL;
    size_t bytes = 0;
    const double seconds = mbl_check_number(L, 1, "seconds");
    mbl_check(L, mb_cluster_collect((uint64_t)(seconds * 1e9), &all, &bytes));
    if (!all)
        return 0;
    /* Lua may raise where memory is missing: the bytes are its own first. */
    lua_pushlstring(L, all, bytes);
    free(all);
    const char *at = lua_tostring(L, -1), *end = at + bytes;
    lua_newtable(L);
    for (lua_Integer i = 1; at < end; i++) {
        uint64_t own;
        memcpy(&own, at, sizeof own);
        lua_pushlstring(L, at + sizeof own, own);
        lua_rawseti(L, -2, i);
        at += sizeof own + own;
    }
    return 1;
}

/* note_failure(line): keeps what this rank says when it ends all; false if it is the only one. */
static int cluster_note_failure(lua_State *L)
{
    lua_pushboolean(L, mbl_cluster_note_failure(mbl_check_string(L, 1, "line")));
    return 1;
}

int mbl_open_cluster(lua_State *L)
{
    static const luaL_Reg functions[] = {{"place", cluster_place},
                                         {"deal", cluster_deal},
                                         {"next", cluster_next},
                                         {"tell", cluster_tell},
                                         {"done", cluster_done},
                                         {"failing", cluster_failing},
                                         {"speaks", cluster_speaks},
                                         {"await_others", cluster_await_others},
                                         {"post", cluster_post},
                                         {"collect", cluster_collect},
                                         {"note_failure", cluster_note_failure},
                                         {"share_node", cluster_share_node},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    mbl_open_spread(L);
    lua_setfield(L, -2, "spread");
    return 1;
}
