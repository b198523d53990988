/*
** luaopen_moonbeam_core: the C half of the module, a table of submodules for moonbeam/init.lua. It
** may run several times in one state, because busted reloads modules: existing metatables and
** registry entries are used again.
*/
#define _GNU_SOURCE
#include "lua_core.h"
#include "lua_modules.h"
#include "device/device.h"
#include <dlfcn.h>
#include <lauxlib.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* If a stock lua has loaded core.so, the plug-in is beside core.so in an installed module, and in
** ../../bin in the build tree. */
static void find_plugin(void)
{
    Dl_info facts;
    char name[PATH_MAX];
    static const char tail[] = "/../../bin";
    if (dladdr((void *)(size_t)&luaopen_moonbeam_core, &facts) == 0 || !facts.dli_fname ||
        !realpath(facts.dli_fname, name))
        return;
    char *slash = strrchr(name, '/');
    if (!slash || strcmp(slash, "/core.so") != 0 ||
        (size_t)(slash - name) + sizeof "/moonbeam_cuda.so" > sizeof name)
        return; /* inside the interpreter, whose main has set the plug-in's place */
    strcpy(slash, "/moonbeam_cuda.so");
    const bool beside = access(name, R_OK) == 0;
    strcpy(slash, beside ? "" : tail);
    mb_device_set_plugin_folder(name);
}

#define ENTER(name) {#name, mbl_open_##name},

/* unyielding(f, ...): f(...), in which a coroutine.yield is an error, as this C function has no
** continuation. */
static int unyielding(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

int luaopen_moonbeam_core(lua_State *L)
{
    static const luaL_Reg modules[] = {MBL_MODULES(ENTER){NULL, NULL}};
    luaL_checkversion(L);
    find_plugin();
    lua_newtable(L);
    for (const luaL_Reg *module = modules; module->name; module++) {
        module->func(L);
        lua_setfield(L, -2, module->name);
    }
    lua_pushliteral(L, MB_VERSION);
    lua_setfield(L, -2, "version");
    lua_pushcfunction(L, unyielding);
    lua_setfield(L, -2, "unyielding");
    return 1;
}
