/*
** Recordings of the ledger (runtime/device/ledger.h) in Lua: begin, rows, finish. What uses
** the rows is in moonbeam/ledger.lua.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_owner.h"
#include "call/lua_table.h"
#include "device/ledger.h"
#include "lua_modules.h"
#include "memory/pool_point.h"

/* begin(): passes a pool point and begins recording; returns a token for rows(). */
static int ledger_begin(lua_State *L)
{
    mbl_pool_point(L);
    lua_pushinteger(L, (lua_Integer)mb_ledger_begin());
    return 1;
}

/* rows(token): the rows since that begin(), whose recording must not have been finished. */
static int ledger_rows(lua_State *L)
{
    static const char *const kinds[] = {"operator", "create", "release", "collect", "pin"};
    uint64_t first = (uint64_t)mbl_check_integer(L, 1, "token"), count = mb_ledger_count();
    lua_createtable(L, count > first ? (int)(count - first) : 0, 0);
    mb_ledger_row row;
    for (uint64_t i = first; i < count && mb_ledger_get(i, &row); i++) {
        lua_createtable(L, 0, 10);
        mbl_set_text(L, "kind", kinds[row.kind]);
        mbl_set_text(L, "device", row.device);
        mbl_set_text(L, "label", row.label);
        mbl_set_text(L, "owner", row.owner);
        mbl_set_text(L, "tag", row.tag);
        mbl_set_integer(L, "keep", row.keep);
        mbl_set_integer(L, "temp", (int64_t)row.temp);
        mbl_set_integer(L, "work", (int64_t)row.work);
        mbl_set_integer(L, "live", (int64_t)row.live);
        mbl_set_integer(L, "peak", (int64_t)row.peak);
        lua_rawseti(L, -2, (lua_Integer)(i - first) + 1);
    }
    if (mb_ledger_lost() > 0)
        mbl_fail(L, MB_STATUS_MEMORY, NULL, "%llu rows of the ledger were lost: no host memory",
                 (unsigned long long)mb_ledger_lost());
    return 1;
}

/* finish(): ends the innermost recording. */
static int ledger_finish(lua_State *L)
{
    (void)L;
    mb_ledger_end();
    return 0;
}

int mbl_open_ledger(lua_State *L)
{
    static const luaL_Reg functions[] = {{"begin", ledger_begin},
                                         {"rows", ledger_rows},
                                         {"finish", ledger_finish},
                                         {"call", mbl_call_apart},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
