/*
** The only parser of ranges; lua_range.h states the rule.
*/
#include "array/lua_range.h"
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_type.h"
#include "lua_modules.h"

/* The address is the value `mb.all`. */
static char all_marker;

void mbl_push_all(lua_State *L)
{
    lua_pushlightuserdata(L, &all_marker);
}

const char *mbl_axis_name(int axis)
{
    static const char *const names[] = {
        "axis 1",  "axis 2",  "axis 3",  "axis 4",  "axis 5",  "axis 6",  "axis 7",  "axis 8",
        "axis 9",  "axis 10", "axis 11", "axis 12", "axis 13", "axis 14", "axis 15", "axis 16",
        "axis 17", "axis 18", "axis 19", "axis 20", "axis 21", "axis 22", "axis 23", "axis 24",
        "axis 25", "axis 26", "axis 27", "axis 28", "axis 29", "axis 30", "axis 31", "axis 32",
    };
    return names[axis];
}

mb_range mbl_full_range(int64_t extent)
{
    return (mb_range){.first = 0, .count = extent, .step = 1, .drop = false};
}

/* The position from 0; negative or beyond the extent if the element does not exist. */
static int64_t position_of(int64_t index, int64_t extent)
{
    return index < 0 ? index + extent : index - 1;
}

static bool lies_within(int64_t position, int64_t extent)
{
    return position >= 0 && position < extent;
}

int64_t mbl_check_index(lua_State *L, int64_t index, int64_t extent, const char *what)
{
    const int64_t position = position_of(index, extent);
    if (index == 0 || !lies_within(position, extent))
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "index %lld is outside %s, which has %lld element%s",
                 (long long)index, what, (long long)extent, extent == 1 ? "" : "s");
    return position;
}

static int64_t member(lua_State *L, int table, int number, int64_t initial)
{
    int64_t value = initial;
    if (lua_geti(L, table, number) != LUA_TNIL)
        value = mbl_check_integer(L, -1, "range");
    lua_pop(L, 1);
    return value;
}

/* Raises unless the table is a list of at most three integers. */
static void check_table(lua_State *L, int index, const char *what)
{
    if (!lua_istable(L, index))
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                 "%s: a range is an integer, mb.all or {first, last [, step]}, not a %s", what,
                 mbl_type_name(L, index));
    if (mbl_length(L, index) > 3)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "%s: a range has at most first, last and step", what);
    lua_pushnil(L);
    if (lua_next(L, index) == 0)
        return;
    if (lua_type(L, -2) == LUA_TSTRING)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                 "%s: a range has no '%s'; write {first, last [, step]} without names", what,
                 lua_tostring(L, -2));
    lua_pop(L, 2);
}

static mb_range table_range(lua_State *L, int index, int64_t extent, const char *what)
{
    check_table(L, index, what);
    const int64_t step = member(L, index, 3, 1);
    if (step == 0)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "%s: the step of a range must not be 0", what);
    const int64_t first = member(L, index, 1, step > 0 ? 1 : extent);
    const int64_t last = member(L, index, 2, step > 0 ? extent : 1);
    const int64_t from = position_of(first, extent), to = position_of(last, extent);
    const int64_t before = step > 0 ? 0 : -1; /* where an empty range may begin */
    if (to == (step > 0 ? from - 1 : from + 1) && from >= before && from <= extent + before)
        return mbl_full_range(0);
    if (!lies_within(from, extent) || !lies_within(to, extent))
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                 "range {%lld, %lld} is outside %s, which has %lld element%s", (long long)first,
                 (long long)last, what, (long long)extent, extent == 1 ? "" : "s");
    if (step > 0 ? to < from : to > from)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                 "%s: range {%lld, %lld, %lld} ends before it begins; a range without elements is "
                 "{%lld, %lld}",
                 what, (long long)first, (long long)last, (long long)step, (long long)from + 1,
                 (long long)from);
    const int64_t count = (to - from) / step + 1;
    return (mb_range){.first = from, .count = count, .step = count == 1 ? 1 : step};
}

mb_range mbl_check_range(lua_State *L, int index, int64_t extent, const char *what)
{
    if (lua_isnoneornil(L, index) ||
        (lua_islightuserdata(L, index) && lua_touserdata(L, index) == &all_marker))
        return mbl_full_range(extent);
    if (lua_type(L, index) != LUA_TNUMBER)
        return table_range(L, index, extent, what);
    const int64_t first = mbl_check_index(L, mbl_check_integer(L, index, "index"), extent, what);
    return (mb_range){.first = first, .count = 1, .step = 1, .drop = true};
}

mb_range mbl_check_file_range(lua_State *L, int index, int64_t extent, const char *what)
{
    const mb_range range = mbl_check_range(L, index, extent, what);
    if (range.step < 0)
        mbl_fail(L, MB_STATUS_ARGUMENT, NULL,
                 "%s: the step of a range in a file must be positive, got %lld", what,
                 (long long)range.step);
    return range;
}

/* within(range, extent, what): first, last, step and count; count is nil for an integer. `what`
** names the axis in messages. */
static int range_within(lua_State *L)
{
    const int64_t extent = mbl_check_integer(L, 2, "extent");
    const mb_range range = mbl_check_range(L, 1, extent, mbl_check_string(L, 3, "what"));
    lua_pushinteger(L, range.first + 1);
    lua_pushinteger(L, range.first + 1 + (range.count - 1) * range.step);
    lua_pushinteger(L, range.step);
    if (range.drop)
        lua_pushnil(L);
    else
        lua_pushinteger(L, range.count);
    return 4;
}

int mbl_open_range(lua_State *L)
{
    static const luaL_Reg functions[] = {{"within", range_within}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
