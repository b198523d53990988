/*
** The program's `print`: like Lua's, but a failed write is an error. A closed pipe (`| head -1`) or
** a full disk then ends a script as any failure does, and unfinished files are removed.
*/
#include "program/lua_print.h"
#include "call/lua_error.h"

#include <errno.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>

static bool lost;

bool mbl_output_lost(void)
{
    return lost;
}

/* print(...) */
static int print(lua_State *L)
{
    const int count = lua_gettop(L);
    errno = 0;
    for (int i = 1; i <= count; i++) {
        size_t length;
        const char *text = luaL_tolstring(L, i, &length);
        if (i > 1)
            fputc('\t', stdout);
        fwrite(text, 1, length, stdout);
        lua_pop(L, 1);
    }
    fputc('\n', stdout);
    const bool flushed = fflush(stdout) == 0;
    if (flushed && !ferror(stdout))
        return 0;
    const int cause = errno;
    if (cause == EBADF) /* closed from the beginning: no message, only the exit status */
        return 0;
    lost = true;
    __fpurge(stdout); /* reported only once */
    clearerr(stdout);
    lua_getglobal(L, "require"); /* error objects need its metatable */
    lua_pushliteral(L, "moonbeam.core");
    lua_call(L, 1, 0);
    return mbl_fail(L, MB_STATUS_IO, NULL, "cannot write all of the standard output: %s",
                    cause != 0 ? strerror(cause) : "an earlier write failed");
}

void mbl_open_print(lua_State *L)
{
    lua_pushcfunction(L, print);
    lua_setglobal(L, "print");
}
