/*
** Devices in Lua: one userdata per open device, kept in the registry under the device's address, so
** that equal devices are equal values. Only a dry device can be closed; closing it releases every
** array on it.
*/
#include "device/lua_device.h"
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_type.h"
#include "device/dry/dry_backend.h"
#include "device/lua_dry.h"
#include "device/numa.h"
#include "device/planned/planned_backend.h"
#include "lua_modules.h"
#include "memory/pool_point.h"
#include <string.h>

typedef struct device_box {
    const mbl_type *mark;
    mb_device *device; /* NULL: a closed dry device */
} device_box;

static const mbl_type device_type = {MBL_DEVICE, sizeof(device_box), MBL_KEY_DEVICE};

/*
** Access
*/

void mbl_push_device(lua_State *L, mb_device *device)
{
    device = mbl_dry_original(
        device); /* to the program, the dry device that replaces a device is that device */
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, device) == LUA_TUSERDATA)
        return;
    lua_pop(L, 1);
    device_box *box = mbl_new_userdata(L, &device_type);
    box->device = device;
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, device);
}

static mb_device *open_device(lua_State *L, const char *id)
{
    for (int i = 0; mbl_opened_device(i); i++)
        if (strcmp(mbl_opened_device(i)->id, id) == 0)
            return mbl_dry_active(L, mbl_opened_device(i));
    mb_device *device = NULL;
    mbl_check(L, mb_device_open(id, &device));
    mbl_add_opened(device);
    return mbl_dry_active(L, device);
}

mb_device *mbl_default_device(lua_State *L)
{
    const char *id = "host";
    mb_device *planned = mbl_dry_default(NULL);
    if (planned)
        return mbl_dry_active(L, planned);
    if (lua_rawgeti(L, LUA_REGISTRYINDEX, MBL_KEY_DEFAULT_DEVICE) == LUA_TSTRING)
        id = lua_tostring(L, -1);
    mb_device *device = open_device(L, id);
    lua_pop(L, 1);
    return device;
}

mb_device *mbl_check_device(lua_State *L, int index)
{
    const device_box *box = mbl_test_userdata(L, index, &device_type);
    if (!box && lua_type(L, index) == LUA_TSTRING)
        return open_device(L, lua_tostring(L, index));
    if (!box)
        mbl_fail(L, MB_STATUS_ARGUMENT, "device",
                 "device must be a device or an id such as \"host\" or \"cuda:0\", not a %s",
                 mbl_type_name(L, index));
    if (!box->device)
        mbl_fail(L, MB_STATUS_DEVICE, "device", "this dry device has been closed");
    return mbl_dry_active(L, box->device);
}

mb_device *mbl_test_device(lua_State *L, int index)
{
    const device_box *box = mbl_test_userdata(L, index, &device_type);
    return box && box->device ? mbl_dry_active(L, box->device) : NULL;
}

mb_device *mbl_opt_device(lua_State *L, int index)
{
    return lua_isnoneornil(L, index) ? mbl_default_device(L) : mbl_check_device(L, index);
}

mb_device *mbl_option_device(lua_State *L, int index)
{
    if (!mbl_option(L, index, "device"))
        return mbl_default_device(L);
    mb_device *device = mbl_check_device(L, -1);
    lua_pop(L, 1);
    return device;
}

/*
** Methods and properties
*/

/* memory(): free and total bytes, as the system or driver reports them. */
static int device_memory(lua_State *L)
{
    mb_device *device = mbl_check_device(L, 1);
    uint64_t free_bytes = 0, total_bytes = 0;
    mbl_check(L, mb_device_memory(device, &free_bytes, &total_bytes));
    lua_pushinteger(L, (lua_Integer)free_bytes);
    lua_pushinteger(L, (lua_Integer)total_bytes);
    return 2;
}

/* sync(): waits for the queued work. */
static int device_sync(lua_State *L)
{
    mb_device *device = mbl_check_device(L, 1);
    mbl_check(L, mb_device_sync(device));
    return 0;
}

/* lost(): whether the device is lost, and if so why. */
static int device_lost(lua_State *L)
{
    const mb_device *device = mbl_check_device(L, 1);
    const bool lost = mb_device_lost(device);
    lua_pushboolean(L, lost);
    if (lost)
        lua_pushstring(L, device->loss.cause);
    return lost ? 2 : 1;
}

/* overhead(): bytes that the backend holds outside the pool, on the device and in pinned host
** memory. */
static int device_overhead(lua_State *L)
{
    mb_device *device = mbl_check_device(L, 1);
    uint64_t device_bytes = 0, pinned_bytes = 0;
    if (device->backend->overhead)
        device->backend->overhead(device->self, &device_bytes, &pinned_bytes);
    lua_pushinteger(L, (lua_Integer)device_bytes);
    lua_pushinteger(L, (lua_Integer)pinned_bytes);
    return 2;
}

/* budget([bytes]): the limit on live bytes; sets it if bytes are given. */
static int device_budget(lua_State *L)
{
    mb_device *device = mbl_check_device(L, 1);
    mb_pool_stats stats;
    if (!lua_isnoneornil(L, 2)) {
        uint64_t bytes = mbl_check_bytes(L, 2, "budget");
        mbl_check(L, mb_pool_set_budget(device->pool, bytes));
    }
    mb_pool_get_stats(device->pool, &stats);
    lua_pushinteger(L, (lua_Integer)stats.budget);
    return 1;
}

/* pinned([limit]): pinned host memory in use, its peak, and its limit; sets the limit when
** given. */
static int device_pinned(lua_State *L)
{
    mb_device *device = mbl_check_device(L, 1);
    if (!lua_isnoneornil(L, 2))
        device->pinned.limit = mbl_check_bytes(L, 2, "pinned");
    lua_pushinteger(L, (lua_Integer)device->pinned.live);
    lua_pushinteger(L, (lua_Integer)device->pinned.peak);
    lua_pushinteger(L, (lua_Integer)device->pinned.limit);
    return 3;
}

/* dry_device([budget]): a dry device with the same facts and budget, and an empty pool. */
static int device_dry(lua_State *L)
{
    mb_device *device = mbl_check_device(L, 1);
    uint64_t budget = lua_isnoneornil(L, 2) ? 0 : mbl_check_bytes(L, 2, "budget");
    device_box *box = mbl_new_userdata(L, &device_type);
    box->device = NULL;
    mbl_check(L, mb_device_open_dry(device, budget, &box->device));
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, box->device);
    return 1;
}

/* Closes a dry device; other devices stay open until the process ends. */
static int device_close(lua_State *L)
{
    device_box *box = mbl_check_object(L, 1, MBL_DEVICE);
    mb_device *device = box->device;
    box->mark = NULL;
    if (!device || !device->dry)
        return 0;
    box->device = NULL;
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, device);
    mbl_forget_device(device, NULL);
    mb_device_close_dry(device);
    return 0;
}

static int device_tostring(lua_State *L)
{
    device_box *box = mbl_check_object(L, 1, MBL_DEVICE);
    if (!box->device)
        lua_pushliteral(L, "closed dry device");
    else
        lua_pushfstring(L, "%sdevice %s (%s)", box->device->dry ? "dry " : "", box->device->id,
                        box->device->facts.name);
    return 1;
}

void mbl_push_basis(lua_State *L, const mb_device *device)
{
    if (!device->record) {
        lua_pushnil(L);
        return;
    }
    const mb_fft_record *fft = &device->record->fft;
    lua_pushfstring(L, "estimate: recorded on %s, %s, %s", fft->device, fft->library, fft->date);
}

/* The processors near the device as text, or nil. */
static void push_processors(lua_State *L, const mb_numa *numa)
{
    char text[4096];
    if (numa)
        lua_pushstring(L, mb_processors_text(&numa->processors, text, sizeof text));
    else
        lua_pushnil(L);
}

static int device_index(lua_State *L)
{
    static const char *const properties[] = {
        "id",    "name",           "kind",    "dry",        "closed",      "threads",
        "index", "total",          "planned", "capability", "granularity", "basis",
        "l2",    "default_budget", "pci",     "node",       "processors",  NULL};
    device_box *box = mbl_check_object(L, 1, MBL_DEVICE);
    lua_settop(L, 2);
    if (lua_type(L, 2) == LUA_TSTRING) {
        const char *key = lua_tostring(L, 2);
        lua_pushvalue(L, 2);
        if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
            return 1;
        if (strcmp(key, "closed") == 0) {
            lua_pushboolean(L, !box->device);
            return 1;
        }
        const mb_device *device = mbl_check_device(L, 1);
        if (strcmp(key, "id") == 0)
            lua_pushstring(L, device->id);
        else if (strcmp(key, "name") == 0)
            lua_pushstring(L, device->facts.name);
        else if (strcmp(key, "kind") == 0)
            lua_pushstring(L, device->backend->name);
        else if (strcmp(key, "dry") == 0)
            lua_pushboolean(L, device->dry);
        else if (strcmp(key, "threads") == 0)
            lua_pushinteger(L, device->facts.threads);
        else if (strcmp(key, "index") == 0)
            lua_pushinteger(L, device->index);
        else if (strcmp(key, "total") == 0)
            lua_pushinteger(L, (lua_Integer)device->facts.total_bytes);
        else if (strcmp(key, "capability") == 0)
            lua_pushinteger(L, device->facts.compute_capability);
        else if (strcmp(key, "l2") == 0)
            lua_pushinteger(L, (lua_Integer)device->facts.l2_bytes);
        else if (strcmp(key, "default_budget") == 0)
            lua_pushinteger(L, (lua_Integer)device->default_budget);
        else if (strcmp(key, "granularity") == 0)
            lua_pushinteger(L, (lua_Integer)device->facts.commit_granularity);
        else if (strcmp(key, "pci") == 0)
            lua_pushstring(L, device->facts.pci[0] ? device->facts.pci : NULL);
        else if (strcmp(key, "processors") == 0)
            push_processors(L, device->numa);
        else if (strcmp(key, "node") == 0 && device->numa)
            lua_pushinteger(L, device->numa->node);
        else if (strcmp(key, "node") == 0)
            lua_pushnil(L);
        else if (strcmp(key, "planned") == 0)
            lua_pushboolean(L, device->record != NULL);
        else if (strcmp(key, "basis") == 0)
            mbl_push_basis(L, device);
        else
            return mbl_unknown_key(L, "a device", key, lua_upvalueindex(1), properties);
        return 1;
    }
    return mbl_fail(L, MB_STATUS_ARGUMENT, NULL, "a device has no [%s]",
                    luaL_tolstring(L, 2, NULL));
}

/*
** Module functions
*/

/* open(id [, {budget =}]) */
static int module_open(lua_State *L)
{
    static const char *const names[] = {"budget", NULL};
    mb_device *device = mbl_check_device(L, 1);
    mbl_check_options(L, 2, names, "device");
    if (mbl_option(L, 2, "budget")) {
        uint64_t bytes = mbl_check_bytes(L, -1, "budget");
        mbl_check(L, mb_pool_set_budget(device->pool, bytes));
    }
    mbl_push_device(L, device);
    return 1;
}

/* list(): the ids of all devices of the machine. */
static int module_list(lua_State *L)
{
    int count = mb_device_count();
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        char id[24];
        mbl_check(L, mb_device_id(i, id, sizeof id));
        lua_pushstring(L, id);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* models(): the names of the models of all devices of the machine, in the order of list(). Opens
** none. */
static int module_models(lua_State *L)
{
    const int count = mb_device_count();
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        mb_device_facts facts;
        mbl_check(L, mb_device_describe(i, &facts));
        lua_pushstring(L, facts.name);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* locate(device, root, pci): for specs, as if the device were at that PCI address of the machine
** whose /sys is ROOT/sys. */
static int module_locate(lua_State *L)
{
    mb_device_locate(mbl_check_device(L, 1), mbl_check_string(L, 2, "root"),
                     mbl_check_string(L, 3, "pci"));
    return 0;
}

/* near(root, pci, allowed): for specs, the node and the processors near a PCI address, of those
** that are allowed ("0-3,8"); nil if all are alike. */
static int module_near(lua_State *L)
{
    mb_processors allowed;
    mb_numa numa;
    if (!mb_processors_parse(mbl_check_string(L, 3, "allowed"), &allowed))
        mbl_fail(L, MB_STATUS_ARGUMENT, "allowed", "allowed is no list of processors");
    if (!mb_numa_find(mbl_check_string(L, 1, "root"), mbl_check_string(L, 2, "pci"), &allowed,
                      &numa))
        return 0;
    lua_pushinteger(L, numa.node);
    push_processors(L, &numa);
    return 2;
}

/* planned(): the ids of devices that plans can be made for without the device. */
static int module_planned(lua_State *L)
{
    int count = mb_device_record_count();
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushfstring(L, "planned:%s", mb_device_record_at(i)->name);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* opened(): the devices that were opened so far. */
static int module_opened(lua_State *L)
{
    lua_newtable(L);
    for (int i = 0; mbl_opened_device(i); i++) {
        mbl_push_device(L, mbl_opened_device(i));
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* chosen(): was a default device set? */
static int module_chosen(lua_State *L)
{
    lua_pushboolean(L, lua_rawgeti(L, LUA_REGISTRYINDEX, MBL_KEY_DEFAULT_DEVICE) == LUA_TSTRING);
    return 1;
}

/* default([id]): the device that is used where none is named; sets it if id is given. */
static int module_default(lua_State *L)
{
    if (!lua_isnoneornil(L, 1)) {
        mb_device *device = mbl_check_device(L, 1);
        if (device->dry && !mbl_is_dry_run_device(device))
            mbl_fail(L, MB_STATUS_ARGUMENT, "device", "a dry device cannot be the default device");
        if (!mbl_dry_default(mbl_dry_original(device))) {
            lua_pushstring(L, device->id);
            lua_rawseti(L, LUA_REGISTRYINDEX, MBL_KEY_DEFAULT_DEVICE);
        }
    }
    mbl_push_device(L, mbl_default_device(L));
    return 1;
}

/* cuda_problem(): why no CUDA device can be used, or nil if one can. */
static int module_cuda_problem(lua_State *L)
{
    const char *problem = mb_device_cuda_problem();
    if (!problem || problem[0] == '\0')
        lua_pushnil(L);
    else
        lua_pushstring(L, problem);
    return 1;
}

/* bytes(text): "8G" -> 8000000000. */
static int module_bytes(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)mbl_check_bytes(L, 1, "bytes"));
    return 1;
}

/* format_bytes(n [, like]): 1342177280 -> "1.25 GiB", in the units of the size `like`. */
static int module_format_bytes(lua_State *L)
{
    char text[40];
    int64_t bytes = mbl_check_integer(L, 1, "bytes");
    int64_t like = lua_isnoneornil(L, 2) ? bytes : mbl_check_integer(L, 2, "like");
    lua_pushstring(L, mb_bytes_format_like((uint64_t)(bytes < 0 ? 0 : bytes),
                                           (uint64_t)(like < 0 ? 0 : like), text, sizeof text));
    return 1;
}

int mbl_open_device(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"memory", device_memory},     {"sync", device_sync},     {"lost", device_lost},
        {"overhead", device_overhead}, {"budget", device_budget}, {"pinned", device_pinned},
        {"dry_device", device_dry},    {"close", device_close},   {NULL, NULL}};
    static const luaL_Reg metamethods[] = {{"__tostring", device_tostring},
                                           {"__gc", device_close},
                                           {"__close", device_close},
                                           {NULL, NULL}};
    static const luaL_Reg functions[] = {{"open", module_open},
                                         {"list", module_list},
                                         {"models", module_models},
                                         {"locate", module_locate},
                                         {"near", module_near},
                                         {"planned", module_planned},
                                         {"opened", module_opened},
                                         {"default", module_default},
                                         {"chosen", module_chosen},
                                         {"cuda_problem", module_cuda_problem},
                                         {"bytes", module_bytes},
                                         {"format_bytes", module_format_bytes},
                                         {NULL, NULL}};
    mbl_new_metatable(L, &device_type);
    luaL_setfuncs(L, metamethods, 0);
    luaL_newlib(L, methods);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "methods");
    lua_pushcclosure(L, device_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}
