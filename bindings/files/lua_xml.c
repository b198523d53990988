/*
** XML texts as trees of tables, read by runtime/files/xml.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "files/xml/xml_events.h"
#include "lua_modules.h"
#include <lauxlib.h>
#include <string.h>

static int release_events(lua_State *L)
{
    mb_xml_release(lua_touserdata(L, 1));
    return 0;
}

/* Pushes userdata that releases its events. */
static mb_xml_events *new_events(lua_State *L)
{
    mb_xml_events *events = lua_newuserdatauv(L, sizeof *events, 0);
    *events = (mb_xml_events){0};
    if (luaL_newmetatable(L, "moonbeam.xml")) {
        lua_pushcfunction(L, release_events);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    return events;
}

/* A name without its prefix. */
static const char *local_name(const char *name)
{
    const char *colon = strrchr(name, ':');
    return colon ? colon + 1 : name;
}

/* Appends to the list in the element on top what is on top of it. */
static void append(lua_State *L)
{
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

static void push_element(lua_State *L, const char *name)
{
    lua_createtable(L, 0, 4);
    lua_pushstring(L, local_name(name));
    lua_setfield(L, -2, "name");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "full_name");
    lua_newtable(L);
    lua_setfield(L, -2, "attributes");
    lua_newtable(L);
    lua_setfield(L, -2, "order");
}

static const char *add_attribute(lua_State *L, const char *name)
{
    const char *value = name + strlen(name) + 1;
    lua_getfield(L, -1, "attributes");
    lua_pushstring(L, value);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
    lua_getfield(L, -1, "order");
    lua_pushstring(L, name);
    append(L);
    lua_pop(L, 1);
    return value + strlen(value) + 1;
}

/* read(text): the root {name (without its prefix), full_name, attributes = {name = value}, order =
** {name, ...} (of attributes), ...}; its list has the elements and texts in it. */
static int xml_read(lua_State *L)
{
    size_t bytes;
    mbl_check_binary(L, 1, "text");
    const char *text = lua_tolstring(L, 1, &bytes);
    lua_settop(L, 1);
    mb_xml_events *events = new_events(L);
    mbl_check(L, mb_xml_read(text, bytes, events));
    luaL_checkstack(L, MB_XML_DEPTH + 8, NULL);
    const char *at = events->data, *const end = at + events->bytes;
    while (at < end) {
        const char kind = *at++;
        if (kind == '<') {
            push_element(L, at);
            at += strlen(at) + 1;
        } else if (kind == '=') {
            at = add_attribute(L, at);
        } else if (kind == '"') {
            lua_pushstring(L, at);
            append(L);
            at += strlen(at) + 1;
        } else if (at < end) {
            append(L);
        }
    }
    mb_xml_release(events);
    return 1;
}

int mbl_open_xml(lua_State *L)
{
    static const luaL_Reg functions[] = {{"read", xml_read}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
