/*
** HDF5 in Lua: the userdata types, with their properties, and the module table {open, create,
** scratch, version}. The rules are in runtime/files/h5; these files turn arguments into calls.
*/
#include "call/lua_args.h"
#include "call/lua_type.h"
#include "call/lua_table.h"
#include "files/lua_h5.h"
#include "lua_modules.h"
#include <stdio.h>
#include <string.h>

/* ---- files ---- */

static int file_index(lua_State *L)
{
    static const char *const properties[] = {"path", "part_path", "is_open", NULL};
    mb_h5 **slot = mbl_h5_slot(L, 1);
    const char *key = mbl_check_string(L, 2, "name");
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    lua_pop(L, 1);
    if (!*slot)
        lua_pushnil(L);
    else if (strcmp(key, "path") == 0)
        lua_pushstring(L, mb_h5_path(*slot));
    else if (strcmp(key, "part_path") == 0)
        lua_pushstring(L, mb_h5_part_path(*slot));
    else if (strcmp(key, "is_open") == 0)
        lua_pushboolean(L, mb_h5_is_open(*slot));
    else
        mbl_unknown_key(L, "an HDF5 file", key, lua_upvalueindex(1), properties);
    return 1;
}

static int file_tostring(lua_State *L)
{
    mb_h5 **slot = mbl_h5_slot(L, 1);
    if (!*slot)
        lua_pushliteral(L, "h5 file (closed)");
    else
        lua_pushfstring(L, "h5 file '%s' (%s)", mb_h5_path(*slot),
                        !mb_h5_is_open(*slot)      ? "closed"
                        : mb_h5_is_writable(*slot) ? "writable"
                                                   : "read-only");
    return 1;
}

static int file_gc(lua_State *L)
{
    mb_h5 **slot = mbl_h5_slot(L, 1);
    mb_h5 *file = *slot;
    *slot = NULL;
    mb_h5_destroy(file);
    return 0;
}

/* ---- datasets ---- */

static int dataset_index(lua_State *L)
{
    const mb_h5_dataset *dataset = mbl_check_h5_dataset(L, 1);
    const mb_h5_info *info = mb_h5_dataset_info(dataset);
    const char *key = mbl_check_string(L, 2, "name");
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    lua_pop(L, 1);
    static const char *const known[] = {"shape",        "dtype", "stored", "chunks",  "filters",
                                        "stored_bytes", "path",  "rank",   "is_open", NULL};
    bool found = false;
    for (int i = 0; known[i] && !found; i++)
        found = strcmp(key, known[i]) == 0;
    if (!found)
        return mbl_unknown_key(L, "an HDF5 dataset", key, lua_upvalueindex(1), known);
    lua_createtable(L, 0, 12);
    mbl_set_h5_info(L, info);
    mbl_set_string(L, "path", mb_h5_dataset_path(dataset));
    mbl_set_integer(L, "rank", info->rank);
    mbl_set_boolean(L, "is_open", mb_h5_dataset_is_open(dataset));
    lua_getfield(L, -1, key);
    return 1;
}

static int dataset_tostring(lua_State *L)
{
    const mb_h5_dataset *dataset = mbl_check_h5_dataset(L, 1);
    const mb_h5_info *info = mb_h5_dataset_info(dataset);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addstring(&b, "h5 dataset '");
    luaL_addstring(&b, mb_h5_dataset_path(dataset));
    luaL_addstring(&b, "' ");
    luaL_addstring(&b, info->stored);
    for (int axis = 0; axis < info->rank; axis++) {
        char text[32];
        snprintf(text, sizeof text, "%s%lld", axis > 0 ? " x " : " ", (long long)info->dims[axis]);
        luaL_addstring(&b, text);
    }
    if (!mb_h5_dataset_is_open(dataset))
        luaL_addstring(&b, " (closed)");
    luaL_pushresult(&b);
    return 1;
}

static int dataset_gc(lua_State *L)
{
    mbl_close_h5_dataset(L, 1);
    return 0;
}

/* Makes a userdata type whose methods come from several lists. `index` handles all other keys. */
static void make_class(lua_State *L, const char *name, const luaL_Reg *metamethods,
                       const luaL_Reg *const *methods, lua_CFunction index)
{
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, metamethods, 0);
    lua_newtable(L);
    for (; *methods; methods++)
        luaL_setfuncs(L, *methods, 0);
    lua_pushcclosure(L, index, 1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

int mbl_open_h5(lua_State *L)
{
    static const luaL_Reg file_meta[] = {
        {"__gc", file_gc},
        {"__close", mbl_close_h5},
        {"__tostring", file_tostring},
        {NULL, NULL},
    };
    static const luaL_Reg dataset_meta[] = {
        {"__gc", dataset_gc},
        {"__close", dataset_gc},
        {"__tostring", dataset_tostring},
        {NULL, NULL},
    };
    static const luaL_Reg dataset_methods[] = {{"close", dataset_gc}, {NULL, NULL}};
    static const luaL_Reg *const of_file[] = {mbl_h5_file_methods, mbl_h5_read_methods,
                                              mbl_h5_write_methods, mbl_h5_value_methods, NULL};
    static const luaL_Reg *const of_dataset[] = {
        mbl_h5_dataset_read_methods, mbl_h5_dataset_write_methods, dataset_methods, NULL};
    make_class(L, MBL_H5, file_meta, of_file, file_index);
    make_class(L, MBL_H5_DATASET, dataset_meta, of_dataset, dataset_index);
    lua_newtable(L);
    luaL_setfuncs(L, mbl_h5_file_functions, 0);
    mbl_set_text(L, "version", mb_h5_version());
    return 1;
}
