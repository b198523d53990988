/*
** The module table core.debug: what specs and benchmarks need to make a running program fail in a
** chosen place. Functions take a device (or its id) as their last argument; without one they use
** the default device.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "core/clock.h"
#include "device/lua_device.h"
#include "files/target.h"
#include "lua_modules.h"
#include "memory/lua_array_box.h"

/* The argument `n`, which must not be negative. */
static uint64_t check_count(lua_State *L, int index)
{
    int64_t n = mbl_check_integer(L, index, "n");
    if (n < 0)
        mbl_fail(L, MB_STATUS_ARGUMENT, "n", "n is %lld; it must not be negative", (long long)n);
    return (uint64_t)n;
}

/* fail_nth(n [, device]) */
static int debug_fail_nth(lua_State *L)
{
    uint64_t n = check_count(L, 1);
    mb_pool_fail_nth(mbl_opt_device(L, 2)->pool, n);
    return 0;
}

/* refuse_commits(n [, device]) */
static int debug_refuse_commits(lua_State *L)
{
    uint64_t n = check_count(L, 1);
    mb_pool_refuse_commits(mbl_opt_device(L, 2)->pool, n);
    return 0;
}

/* refuse_pins(n [, device]) */
static int debug_refuse_pins(lua_State *L)
{
    uint64_t n = check_count(L, 1);
    mb_pinned_refuse(mbl_opt_device(L, 2), n);
    return 0;
}

/* pretend_memory(bytes [, device]): the device reports as free what its pool leaves of `bytes`, as
** if other programs had the rest; 0 ends this. */
static int debug_pretend_memory(lua_State *L)
{
    uint64_t bytes = mbl_check_bytes(L, 1, "bytes");
    mb_device_pretend(mbl_opt_device(L, 2), bytes);
    return 0;
}

/* lose_device(device, n [, delay]): the n-th call of the device from now on that queues, asks for
** or waits for work loses the device, as a defective GPU would; the call takes `delay` seconds
** more. 0 for n: none does. */
static int debug_lose_device(lua_State *L)
{
    mb_device *device = mbl_check_device(L, 1);
    const double delay = mbl_opt_number(L, 3, "delay", 0);
    if (!(delay >= 0 && delay <= 60))
        mbl_fail(L, MB_STATUS_ARGUMENT, "delay", "delay is %g s; it must be 0 to 60", delay);
    mb_device_lose_at(device, check_count(L, 2), (uint64_t)(delay * 1000));
    return 0;
}

/* set_guards(on [, device]): guard words alone, without the patterns of debug mode. */
static int debug_set_guards(lua_State *L)
{
    bool on = lua_toboolean(L, 1);
    mb_device *device = mbl_opt_device(L, 2);
    mbl_check(L, mb_pool_set_debug(device->pool, on ? MB_POOL_GUARDS : 0));
    return 0;
}

/* break_guard(array, after, distance): overwrites a byte of a guard of the array's block, for
** specs. */
static int debug_break_guard(lua_State *L)
{
    mb_array *array = mbl_check_array(L, 1);
    bool after = lua_toboolean(L, 2);
    uint64_t distance = mbl_check_bytes(L, 3, "distance");
    mbl_check(L, mb_pool_break_guard(array->device->pool, mb_storage_block(array->storage), after,
                                     distance < UINT32_MAX ? (uint32_t)distance : UINT32_MAX));
    return 0;
}

/* pair_seconds(live, pairs [, device]): seconds that an allocation and its release take through the
** C API, while `live` blocks of 512 bytes to 8 KiB exist with holes between them. For
** scripts/bench. */
static int debug_pair_seconds(lua_State *L)
{
    int64_t live = mbl_check_integer(L, 1, "live"), pairs = mbl_check_integer(L, 2, "pairs");
    mb_pool *pool = mbl_opt_device(L, 3)->pool;
    if (live < 1 || live > 10000000 || pairs < 1)
        mbl_fail(L, MB_STATUS_ARGUMENT, "live", "1 to 10000000 live blocks and at least one pair");
    mb_block *blocks = lua_newuserdatauv(L, (size_t)(2 * live) * sizeof *blocks, 0), block;
    int64_t made = 0;
    mb_status status = MB_STATUS_OK;
    for (; made < 2 * live && status == MB_STATUS_OK; made += status == MB_STATUS_OK)
        status = mb_pool_alloc(pool, (uint64_t)(made * 7 % 16 + 1) * MB_POOL_UNIT, MB_POOL_ARRAY,
                               "pair_seconds", &blocks[made]);
    for (int64_t i = 0; i < made; i += 2)
        mb_pool_free(pool, &blocks[i]);
    const uint64_t begin = mb_now_ns();
    for (int64_t i = 0; i < pairs && status == MB_STATUS_OK; i++) {
        status = mb_pool_alloc(pool, (uint64_t)(i * 5 % 16 + 1) * MB_POOL_UNIT, MB_POOL_ARRAY,
                               "pair_seconds", &block);
        if (status == MB_STATUS_OK)
            mb_pool_free(pool, &block);
    }
    const uint64_t end = mb_now_ns();
    for (int64_t i = 1; i < made; i += 2)
        mb_pool_free(pool, &blocks[i]);
    mbl_check(L, status);
    lua_pushnumber(L, (double)(end - begin) * 1e-9 / (double)pairs);
    return 1;
}

/* fail_step(n [, errno]): the n-th step from now on that changes the name of a file, or syncs a
** file, kills the process, or fails with errno. */
static int debug_fail_step(lua_State *L)
{
    const int64_t n = mbl_check_integer(L, 1, "n");
    mb_target_inject(n, lua_isnoneornil(L, 2) ? 0 : (int)mbl_check_integer(L, 2, "errno"));
    return 0;
}

/* steps(): the number of these steps since the process began. */
static int debug_steps(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)mb_target_steps());
    return 1;
}

int mbl_open_debug(lua_State *L)
{
    static const luaL_Reg functions[] = {{"fail_nth", debug_fail_nth},
                                         {"refuse_commits", debug_refuse_commits},
                                         {"refuse_pins", debug_refuse_pins},
                                         {"pretend_memory", debug_pretend_memory},
                                         {"lose_device", debug_lose_device},
                                         {"set_guards", debug_set_guards},
                                         {"break_guard", debug_break_guard},
                                         {"pair_seconds", debug_pair_seconds},
                                         {"fail_step", debug_fail_step},
                                         {"steps", debug_steps},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
