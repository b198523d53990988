/*
** FFT sizes and the plan caches. Transforms themselves are operators (fft, rfft, irfft).
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_table.h"
#include "device/planned/planned_backend.h"
#include "device/lua_device.h"
#include "lua_modules.h"
#include <string.h>

/* choose_size(n [, {device =, axis =}]): the size >= n to use, the sizes that were compared as a
** list of {size, ps, work}, and the source of the costs (nil: smoothness). */
static int fft_choose_size(lua_State *L)
{
    static const char *const names[] = {"device", "axis", NULL};
    static const char *const axes[] = {"row", "column", NULL};
    int64_t n = mbl_check_integer(L, 1, "n");
    mbl_check_options(L, 2, names, "good_size");
    mb_fft_axis axis = MB_FFT_ROW;
    if (n < 1)
        mbl_fail(L, MB_STATUS_ARGUMENT, "n", "n is %lld; a transform has at least one point",
                 (long long)n);
    if (mbl_option(L, 2, "axis")) {
        const char *name = mbl_check_string(L, -1, "axis");
        if (strcmp(name, axes[MB_FFT_ROW]) != 0 && strcmp(name, axes[MB_FFT_COLUMN]) != 0)
            mbl_fail(L, MB_STATUS_ARGUMENT, "axis", "axis is \"%s\"; it must be row or column",
                     name);
        axis = strcmp(name, axes[MB_FFT_ROW]) == 0 ? MB_FFT_ROW : MB_FFT_COLUMN;
        lua_pop(L, 1);
    }
    const mb_device *device = mbl_option_device(L, 2);
    mb_fft_candidate list[MB_FFT_MAX_CANDIDATES];
    int count;
    bool measured;
    lua_pushinteger(L, mb_fft_choose_size(device, n, axis, list, &count, &measured));
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_createtable(L, 0, 3);
        mbl_set_integer(L, "size", list[i].n);
        mbl_set_number(L, "ps", list[i].ps);
        mbl_set_integer(L, "work", list[i].work);
        lua_rawseti(L, -2, i + 1);
    }
    if (measured) {
        const mb_fft_record *record = mb_device_fft_record(device);
        lua_pushfstring(L, "measured on %s, %s, %s", record->device, record->library, record->date);
    } else {
        lua_pushnil(L);
    }
    return 3;
}

/* choose_grid(least, given [, {device =}]): extents for a real transform over all axes, each >=
** least; extents with given[i] stay as they are. */
static int fft_choose_grid(lua_State *L)
{
    static const char *const names[] = {"device", NULL};
    mb_shape least = mbl_check_shape(L, 1, "least");
    bool given[MB_MAX_RANK] = {false};
    luaL_checktype(L, 2, LUA_TTABLE);
    mbl_check_options(L, 3, names, "choose_grid");
    if (least.rank < 1 || least.rank > 3 || mb_shape_elements(&least) == 0)
        mbl_fail(L, MB_STATUS_ARGUMENT, "least", "least must be 1 to 3 extents above 0");
    for (int i = 0; i < least.rank; i++) {
        lua_rawgeti(L, 2, i + 1);
        given[i] = lua_toboolean(L, -1);
        lua_pop(L, 1);
    }
    mb_shape sizes = least;
    mb_fft_choose_grid(mbl_option_device(L, 3), least.rank, least.dims, given, sizes.dims);
    mbl_push_extents(L, sizes.rank, sizes.dims);
    return 1;
}

static mb_fft_kind check_kind(lua_State *L, int index)
{
    static const char *const names[] = {"c2c", "r2c", "c2r", NULL};
    static const mb_fft_kind kinds[] = {MB_FFT_C2C_FORWARD, MB_FFT_R2C, MB_FFT_C2R};
    const char *name = mbl_check_string(L, index, "kind");
    for (int i = 0; names[i]; i++)
        if (strcmp(name, names[i]) == 0)
            return kinds[i];
    mbl_fail(L, MB_STATUS_ARGUMENT, "kind", "kind is \"%s\"; it must be c2c, r2c or c2r", name);
}

/* work(kind, dims [, {batch =, in_place =, device =}]): bytes of the work area of a transform, and
** the source of that number. */
static int fft_work(lua_State *L)
{
    static const char *const names[] = {"batch", "in_place", "device", NULL};
    mb_fft_kind kind = check_kind(L, 1);
    mb_shape shape = mbl_check_shape(L, 2, "dims");
    mbl_check_options(L, 3, names, "work");
    int64_t batch = mbl_option_integer(L, 3, "batch", 1);
    mb_device *device = mbl_option_device(L, 3);
    const bool in_place = mbl_option_flag(L, 3, "in_place");
    if (shape.rank < 1 || shape.rank > 3 || mb_shape_elements(&shape) == 0)
        mbl_fail(L, MB_STATUS_ARGUMENT, "dims", "dims must be 1 to 3 extents above 0");
    if (batch < 1)
        mbl_fail(L, MB_STATUS_ARGUMENT, "batch", "batch is %lld; it must be at least 1",
                 (long long)batch);
    mb_fft_desc desc = mb_fft_describe(kind, shape.rank, shape.dims, batch, in_place);
    mb_fft_plan *plan = NULL;
    mbl_check(L, mb_fft_acquire(device, &desc, &plan));
    lua_pushinteger(L, (lua_Integer)plan->work_bytes);
    const char *how = plan->derived;
    mb_fft_release(device, plan);
    char library[100];
    device->backend->fft_library(device->self, library, sizeof library);
    if (how)
        lua_pushstring(L, how);
    else
        lua_pushfstring(L, device->record ? "recorded, %s" : "asked of %s", library);
    return 2;
}

/* derived(device): how many work areas on a planned device were derived so far because they were
** not recorded, and how the latest was derived. */
static int fft_derived(lua_State *L)
{
    const char *how = NULL;
    lua_pushinteger(L, (lua_Integer)mb_fft_cache_derived(mbl_check_device(L, 1), &how));
    lua_pushstring(L, how);
    return 2;
}

/* library([device]): name and version of the library that computes the transforms. */
static int fft_library(lua_State *L)
{
    char text[100];
    mb_device *device = mbl_opt_device(L, 1);
    device->backend->fft_library(device->self, text, sizeof text);
    lua_pushstring(L, text);
    return 1;
}

static void push_plan(lua_State *L, const mb_fft_plan *plan)
{
    static const char *const kinds[] = {"c2c", "c2c inverse", "r2c", "c2r"};
    lua_createtable(L, 0, 8);
    mbl_set_text(L, "kind", kinds[plan->desc.kind]);
    mbl_set_extents(L, "shape", plan->desc.rank, plan->desc.dims);
    mbl_set_integer(L, "batch", plan->desc.batch);
    mbl_set_boolean(L, "in_place", plan->desc.in_place);
    mbl_set_integer(L, "work_bytes", (int64_t)plan->work_bytes);
    mbl_set_integer(L, "library_bytes", (int64_t)plan->library_bytes);
    mbl_set_boolean(L, "in_use", plan->users > 0);
    mbl_set_integer(L, "last_use", (int64_t)plan->last_use);
}

/* plans([device]): a list of the cached plans, the latest used first, with the members `count`,
** `library_bytes` (what the library holds for all of them) and `limit` (nil: none). */
static int fft_plans(lua_State *L)
{
    mb_device *device = mbl_opt_device(L, 1);
    uint64_t limit, bytes = 0;
    const int count = mb_fft_cache_plans(device, NULL, -1, &limit);
    mb_fft_plan *plans = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *plans, 0);
    const int filled = mb_fft_cache_plans(device, plans, count, &limit);
    lua_createtable(L, count, 3);
    for (int i = 0; i < filled && filled <= count; i++) {
        push_plan(L, &plans[i]);
        lua_rawseti(L, -2, i + 1);
        bytes += plans[i].library_bytes;
    }
    mbl_set_integer(L, "count", filled);
    mbl_set_integer(L, "library_bytes", (int64_t)bytes);
    if (limit != UINT64_MAX)
        mbl_set_integer(L, "limit", (int64_t)limit);
    return 1;
}

/* limit([bytes [, device]]): the limit on what the library holds for plans, or nil if there is no
** limit. A number sets it; "none" removes it. */
static int fft_limit(lua_State *L)
{
    uint64_t limit;
    mb_device *device = mbl_opt_device(L, 2);
    if (lua_type(L, 1) == LUA_TSTRING && strcmp(lua_tostring(L, 1), "none") == 0)
        mb_fft_cache_set_limit(device, UINT64_MAX);
    else if (!lua_isnoneornil(L, 1))
        mb_fft_cache_set_limit(device, mbl_check_bytes(L, 1, "bytes"));
    mb_fft_cache_plans(device, NULL, -1, &limit);
    if (limit == UINT64_MAX)
        lua_pushnil(L);
    else
        lua_pushinteger(L, (lua_Integer)limit);
    return 1;
}

/* drop([device [, keep]]): drops idle plans, oldest first; returns how many. */
static int fft_drop(lua_State *L)
{
    mb_device *device = mbl_opt_device(L, 1);
    int64_t keep = lua_isnoneornil(L, 2) ? 0 : mbl_check_integer(L, 2, "keep");
    lua_pushinteger(L, mb_fft_cache_drop(device, (int)(keep < 0           ? 0
                                                       : keep > INT32_MAX ? INT32_MAX
                                                                          : keep)));
    return 1;
}

static int fft_library_bytes(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)mb_fft_cache_library_bytes(mbl_opt_device(L, 1)));
    return 1;
}

int mbl_open_fft(lua_State *L)
{
    static const luaL_Reg functions[] = {{"choose_size", fft_choose_size},
                                         {"choose_grid", fft_choose_grid},
                                         {"work", fft_work},
                                         {"library", fft_library},
                                         {"derived", fft_derived},
                                         {"plans", fft_plans},
                                         {"limit", fft_limit},
                                         {"drop", fft_drop},
                                         {"library_bytes", fft_library_bytes},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
