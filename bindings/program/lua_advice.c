/*
** Errors of Lua itself that mix up fields and methods: s.projections[1], a:shape(). Lua names the
** place, "attempt to index a function value (field 'projections')"; what to do is added.
*/
#include "program/lua_advice.h"
#include <stdio.h>
#include <string.h>

/* Takes a message apart: "attempt to WORK a TYPE value (KIND 'NAME')". */
static bool parse(const char *message, char *type, char *kind, char *name)
{
    const char *attempt = strstr(message, "attempt to ");
    const char *value = attempt ? strstr(attempt, " value (") : NULL;
    if (!value || sscanf(value, " value (%15[a-z] '%63[A-Za-z0-9_]')", kind, name) != 2)
        return false;
    const char *from = value;
    while (from > attempt && from[-1] != ' ')
        from--;
    snprintf(type, 16, "%.*s", (int)(value - from), from);
    return true;
}

bool mbl_push_advice(lua_State *L, const char *message)
{
    char type[16], kind[16], name[64];
    if (!parse(message, type, kind, name))
        return false;
    const bool called = strstr(message, "attempt to call ") != NULL;
    const bool inside = strcmp(kind, "field") == 0 || strcmp(kind, "method") == 0;
    if (!called && strcmp(type, "function") == 0)
        lua_pushfstring(L, "%s: %s is a function; call it, as in %s%s(...)", message, name,
                        inside ? "object:" : "", name);
    else if (called && inside && strcmp(type, "nil") != 0)
        lua_pushfstring(L, "%s: %s is a value, no function; write object.%s, without parentheses",
                        message, name, name);
    else
        return false;
    return true;
}
