/*
** core.counts: counts of mb.histogram as Lua strings of f64. A table of these numbers would take
** longer to make, to add up and to collect than the counting itself. Callers have checked the
** numbers of counts; the checks here are against reads beyond a string.
*/
#include "lua_modules.h"
#include <lauxlib.h>
#include <string.h>

/* The numbers of the string at `index`. */
static const char *check_counts(lua_State *L, int index, lua_Integer *n)
{
    size_t bytes = 0;
    const char *counts = luaL_checklstring(L, index, &bytes);
    *n = (lua_Integer)(bytes / sizeof(double));
    return counts;
}

/* A string is not aligned for numbers. */
static double count_at(const char *counts, lua_Integer i)
{
    double count;
    memcpy(&count, counts + (size_t)i * sizeof count, sizeof count);
    return count;
}

/* add(a, b): the sums of two lists of equal length. */
static int counts_add(lua_State *L)
{
    lua_Integer n = 0, others = 0;
    const char *a = check_counts(L, 1, &n), *b = check_counts(L, 2, &others);
    luaL_argcheck(L, n == others, 2, "the lists differ in length");
    luaL_Buffer buffer;
    char *sums = luaL_buffinitsize(L, &buffer, (size_t)n * sizeof(double));
    for (lua_Integer i = 0; i < n; i++) {
        const double sum = count_at(a, i) + count_at(b, i);
        memcpy(sums + (size_t)i * sizeof sum, &sum, sizeof sum);
    }
    luaL_pushresultsize(&buffer, (size_t)n * sizeof(double));
    return 1;
}

/* total(counts, n): the sum of the first n. */
static int counts_total(lua_State *L)
{
    lua_Integer all = 0;
    const char *counts = check_counts(L, 1, &all);
    const lua_Integer n = luaL_checkinteger(L, 2);
    luaL_argcheck(L, n >= 0 && n <= all, 2, "beyond the end of the counts");
    double sum = 0;
    for (lua_Integer i = 0; i < n; i++)
        sum += count_at(counts, i);
    lua_pushnumber(L, sum);
    return 1;
}

/* locate(counts, first, n, ranks): where the elements of these ranks (from 0, ascending) of sorted
** values lie. Counts first ... first + n - 1 (from 0) tell how many values have each of n keys. The
** result is a list of {key, rank among the values of this key}; key n: there are fewer values. */
static int counts_locate(lua_State *L)
{
    lua_Integer all = 0;
    const char *counts = check_counts(L, 1, &all);
    const lua_Integer first = luaL_checkinteger(L, 2), n = luaL_checkinteger(L, 3);
    luaL_argcheck(L, n >= 0 && n <= all, 3, "beyond the end of the counts");
    luaL_argcheck(L, first >= 0 && first <= all - n, 2, "beyond the end of the counts");
    luaL_checktype(L, 4, LUA_TTABLE);
    const lua_Integer ranks = (lua_Integer)lua_rawlen(L, 4);
    lua_createtable(L, (int)ranks, 0);
    lua_Integer key = 0;
    double below = 0;
    for (lua_Integer k = 1; k <= ranks; k++) {
        lua_rawgeti(L, 4, k);
        const double rank = lua_tonumber(L, -1);
        lua_pop(L, 1);
        for (; key < n && rank >= below + count_at(counts, first + key); key++)
            below += count_at(counts, first + key);
        lua_createtable(L, 2, 0);
        lua_pushinteger(L, key);
        lua_rawseti(L, -2, 1);
        lua_pushnumber(L, rank - below);
        lua_rawseti(L, -2, 2);
        lua_rawseti(L, -2, k);
    }
    return 1;
}

int mbl_open_counts(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"add", counts_add}, {"total", counts_total}, {"locate", counts_locate}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
