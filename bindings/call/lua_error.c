/*
** Error objects: how a runtime failure becomes a Lua error. An error object is a table {code,
** message, op, arg, need, limit, where} with the metatable "moonbeam.error"; its __tostring is one
** line, "where: op: message". Errors blame the nearest Lua line outside the module's own Lua half,
** because a user can change that line.
*/
#include "call/lua_error.h"
#include "call/lua_owner.h"
#include "call/lua_table.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_text(lua_State *L, const char *key, const char *text)
{
    if (text[0] != '\0') {
        lua_pushstring(L, text);
        lua_setfield(L, -2, key);
    }
}

void mbl_compose_budget(lua_State *L)
{
    char enough_text[40], total_text[40];
    int err = lua_gettop(L);
    lua_getfield(L, err, "enough");
    lua_getfield(L, err, "total");
    lua_getfield(L, err, "problem");
    lua_getfield(L, err, "remedy");
    lua_getfield(L, err, "enough_for");
    lua_getfield(L, err, "limit");
    lua_getfield(L, err, "limited_by");
    lua_getfield(L, err, "also");
    const uint64_t limit = (uint64_t)lua_tointeger(L, err + 6);
    const lua_Integer enough = lua_tointeger(L, err + 1), total = lua_tointeger(L, err + 2);
    const char *problem = lua_tostring(L, err + 3), *remedy = lua_tostring(L, err + 4);
    const char *what = lua_tostring(L, err + 5), *option = lua_tostring(L, err + 7);
    const char *also = lua_tostring(L, err + 8);
    what = what ? what : "this request";
    also = also ? also : "";
    mb_bytes_format_like((uint64_t)enough, limit, enough_text, sizeof enough_text);
    mb_bytes_format_like((uint64_t)total, limit, total_text, sizeof total_text);
    if (remedy)
        lua_pushfstring(L, "%s; %s", problem, remedy);
    else if (enough == 0)
        lua_pushstring(L, problem);
    else if (total > 0 && enough > total)
        lua_pushfstring(
            L,
            "%s, and the device has %s in total; work in smaller chunks or in tiles, or "
            "check the sizes",
            problem, total_text);
    else if (option)
        lua_pushfstring(L, "%s; give the option %s at least %s (%I bytes) for %s%s", problem,
                        option, enough_text, (LUAI_UACINT)enough, what, also);
    else
        lua_pushfstring(L,
                        "%s; release arrays, work in smaller chunks, or give a budget of at least "
                        "%s (%I bytes) for %s%s",
                        problem, enough_text, (LUAI_UACINT)enough, what, also);
    lua_setfield(L, err, "message");
    lua_settop(L, err);
}

static void set_count(lua_State *L, const char *key, uint64_t value)
{
    if (value)
        mbl_set_integer(L, key, (int64_t)value);
}

/* The state of the pool that refused the request, its owners, and what was tried. */
static void set_state(lua_State *L, const mb_budget *budget)
{
    set_text(L, "device", budget->device);
    mbl_set_text(L, "owner", budget->owner);
    mbl_set_integer(L, "live", (int64_t)budget->live);
    mbl_set_integer(L, "peak", (int64_t)budget->peak);
    mbl_set_integer(L, "free", (int64_t)budget->free);
    mbl_set_integer(L, "largest_hole", (int64_t)budget->largest_hole);
    lua_createtable(L, 0, 3);
    mbl_set_integer(L, "collected_arrays", (int64_t)budget->collected_arrays);
    mbl_set_integer(L, "collected_bytes", (int64_t)budget->collected_bytes);
    mbl_set_integer(L, "dropped_plans", (int64_t)budget->dropped_plans);
    lua_setfield(L, -2, "tried");
    lua_createtable(L, budget->owner_count, 0);
    for (int i = 0; i < budget->owner_count; i++) {
        lua_createtable(L, 0, 3);
        mbl_set_text(L, "owner", budget->owners[i].owner ? budget->owners[i].owner : "C");
        mbl_set_integer(L, "bytes", (int64_t)budget->owners[i].bytes);
        mbl_set_integer(L, "blocks", (int64_t)budget->owners[i].blocks);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "owners");
}

static void set_budget_fields(lua_State *L, const mb_error *error)
{
    const mb_budget *budget = &error->budget;
    set_text(L, "problem", error->text);
    set_text(L, "remedy", budget->remedy);
    set_text(L, "request", budget->request);
    set_count(L, "enough", budget->enough_bytes);
    set_count(L, "total", budget->total_bytes);
    if (budget->device[0])
        set_state(L, budget);
    mbl_compose_budget(L);
}

void mbl_push_error(lua_State *L)
{
    const mb_error error = mb_error_take();
    const char *where = mbl_caller(L);
    lua_createtable(L, 0, 7);
    set_text(L, "code", mb_status_name(error.code));
    set_text(L, "message", error.text);
    set_text(L, "op", error.op);
    set_text(L, "arg", error.arg);
    set_text(L, "where", where ? where : "");
    if (error.need_bytes || error.limit_bytes) {
        mbl_set_integer(L, "need", (int64_t)error.need_bytes);
        mbl_set_integer(L, "limit", (int64_t)error.limit_bytes);
    }
    if (error.code == MB_STATUS_BUDGET)
        set_budget_fields(L, &error);
    luaL_setmetatable(L, MBL_ERROR);
}

/* Names the running C function, as the caller wrote it, if the failure names no operator. */
static void name_running_function(lua_State *L)
{
    lua_Debug ar;
    if (lua_getstack(L, 0, &ar) && lua_getinfo(L, "nS", &ar) && ar.name &&
        strcmp(ar.what, "C") == 0 && strcmp(ar.namewhat, "metamethod") != 0 &&
        strcmp(ar.namewhat, "hook") != 0)
        mb_error_name_op(ar.name);
}

int mbl_raise(lua_State *L)
{
    name_running_function(L);
    mbl_push_error(L);
    lua_error(L);
    abort(); /* not reached */
}

void mbl_check(lua_State *L, mb_status status)
{
    if (status != MB_STATUS_OK)
        mbl_raise(L);
}

int mbl_fail(lua_State *L, mb_status code, const char *arg, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    mb_vfail(code, arg, format, list);
    va_end(list);
    mbl_raise(L);
}

/* The field as text, or NULL; leaves the value on the stack. */
static const char *text_field(lua_State *L, const char *key)
{
    return lua_getfield(L, 1, key) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
}

/* Number fields of the table at `index`: as an integer, and as formatted bytes. */
static long long count_field(lua_State *L, int index, const char *key)
{
    lua_getfield(L, index, key);
    long long n = lua_tointeger(L, -1);
    lua_pop(L, 1);
    return n;
}

/* In the units of the limit of the error object at index 1. */
static const char *bytes_field(lua_State *L, int index, const char *key, char *buffer, size_t room)
{
    return mb_bytes_format_like((uint64_t)count_field(L, index, key),
                                (uint64_t)count_field(L, 1, "limit"), buffer, room);
}

/* Appends a line to the text, cut off at the end of the buffer. */
static void add_line(char *text, size_t room, const char *format, ...) MB_PRINTF(3, 4);
static void add_line(char *text, size_t room, const char *format, ...)
{
    size_t used = strlen(text);
    va_list list;
    va_start(list, format);
    vsnprintf(text + used, room - used, format, list);
    va_end(list);
}

/* The lines of a budget error after the first, from the fields of the object at index 1. */
static void anatomy(lua_State *L, char *text, size_t room)
{
    char a[40], b[40], c[40];
    int top = lua_gettop(L);
    const char *request = text_field(L, "request"), *owner = text_field(L, "owner");
    text[0] = '\0';
    add_line(text, room, "\n  request  %lld bytes%s%s%s%s", count_field(L, 1, "need"),
             request ? ": " : "", request ? request : "", owner ? ", at " : "", owner ? owner : "");
    add_line(text, room, "\n  budget   live %s, peak so far %s, limit %s",
             bytes_field(L, 1, "live", a, sizeof a), bytes_field(L, 1, "peak", b, sizeof b),
             bytes_field(L, 1, "limit", c, sizeof c));
    add_line(text, room, "\n  free     %s in all, largest hole %s",
             bytes_field(L, 1, "free", a, sizeof a),
             bytes_field(L, 1, "largest_hole", b, sizeof b));
    lua_getfield(L, 1, "owners");
    int owners = lua_gettop(L);
    for (lua_Integer i = 1; i <= (lua_Integer)lua_rawlen(L, owners); i++) {
        lua_rawgeti(L, owners, i);
        int row = lua_gettop(L);
        long long blocks = count_field(L, row, "blocks");
        lua_getfield(L, row, "owner");
        add_line(text, room, "\n  %s %s in %lld block%s by %s", i == 1 ? "owners  " : "        ",
                 bytes_field(L, row, "bytes", a, sizeof a), blocks, blocks == 1 ? "" : "s",
                 lua_tostring(L, -1));
        lua_settop(L, owners);
    }
    lua_getfield(L, 1, "tried");
    if (lua_istable(L, -1)) {
        int tried = lua_gettop(L);
        add_line(text, room,
                 "\n  tried    a full collection (freed %lld arrays, %s), dropping idle FFT plans "
                 "(%lld), and the request again",
                 count_field(L, tried, "collected_arrays"),
                 bytes_field(L, tried, "collected_bytes", a, sizeof a),
                 count_field(L, tried, "dropped_plans"));
    }
    const char *what = text_field(L, "enough_for");
    if (count_field(L, 1, "enough") != 0)
        add_line(text, room, "\n  enough   a budget of %lld bytes (%s) for %s",
                 count_field(L, 1, "enough"), bytes_field(L, 1, "enough", a, sizeof a),
                 what ? what : "this request");
    lua_settop(L, top);
}

/* Does the budget error have lines after its first one? They would not help if the request is far
** larger than the device. */
static bool has_anatomy(lua_State *L)
{
    const long long enough = count_field(L, 1, "enough"), total = count_field(L, 1, "total");
    bool listed = lua_getfield(L, 1, "owners") == LUA_TTABLE;
    lua_pop(L, 1);
    return listed && (total == 0 || enough <= total);
}

/* Appends the text and ": ", if there is a text. */
static void add_part(luaL_Buffer *b, const char *text)
{
    if (text) {
        luaL_addstring(b, text);
        luaL_addstring(b, ": ");
    }
}

/* "where: op: message". The message already names the argument; the field arg is for programs. */
static int error_tostring(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    const char *where = text_field(L, "where"), *op = text_field(L, "op");
    const char *message = text_field(L, "message");
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    add_part(&b, where);
    add_part(&b, op);
    luaL_addstring(&b, message ? message : "unknown error");
    luaL_pushresult(&b);
    size_t length;
    const char *line = lua_tolstring(L, -1, &length);
    mbl_push_printable(L, line, length, false);
    if (has_anatomy(L)) {
        char text[3000];
        anatomy(L, text, sizeof text);
        mbl_push_printable(L, text, strlen(text), true);
        lua_concat(L, 2);
    }
    return 1;
}

void mbl_register_error(lua_State *L)
{
    luaL_newmetatable(L, MBL_ERROR);
    lua_pushcfunction(L, error_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pop(L, 1);
}
