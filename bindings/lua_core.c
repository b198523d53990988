/*
** luaopen_moonbeam_core: the C half of the module, a table of sub-modules for moonbeam/init.lua.
** May run several times in one state (busted reloads modules): metatables and registry entries are
** found again.
*/
#define _GNU_SOURCE
#include "lua_moonbeam.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Loaded as core.so by a stock lua, the plug-in is not beside the program but beside us:
** lib/moonbeam/../../bin. */
static void find_plugin(void)
{
    Dl_info facts;
    char name[PATH_MAX];
    static const char tail[] = "/../../bin";
    if (dladdr((void *)(size_t)&luaopen_moonbeam_core, &facts) == 0 || facts.dli_fname == NULL ||
        realpath(facts.dli_fname, name) == NULL)
        return;
    char *slash = strrchr(name, '/');
    if (slash == NULL || strcmp(slash, "/core.so") != 0 ||
        (size_t)(slash - name) + sizeof tail > sizeof name)
        return; /* inside the interpreter, whose main has said where the plug-in is */
    strcpy(slash, tail);
    mb_device_set_plugin_folder(name);
}

int luaopen_moonbeam_core(lua_State *L)
{
    static const luaL_Reg modules[] = {
        {"garbage", mbl_open_garbage}, /* first: its sentinel must be finalized last */
        {"error", mbl_open_error},     {"array", mbl_open_array},
        {"device", mbl_open_device},   {"pool", mbl_open_pool},
        {"ledger", mbl_open_ledger},   {"op", mbl_open_op},
        {"fft", mbl_open_fft},         {"h5", mbl_open_h5},
        {"rawfile", mbl_open_rawfile}, {"picture", mbl_open_picture},
        {"target", mbl_open_target},   {"carrier", mbl_open_carrier},
        {"timer", mbl_open_timer},     {"system", mbl_open_system},
        {"input", mbl_open_input},     {NULL, NULL}};
    luaL_checkversion(L);
    find_plugin();
    lua_newtable(L);
    for (const luaL_Reg *module = modules; module->name != NULL; module++) {
        module->func(L);
        lua_setfield(L, -2, module->name);
    }
    lua_pushliteral(L, MB_VERSION);
    lua_setfield(L, -2, "version");
    return 1;
}
