/*
** FFT sizes and the plan caches. Transforms themselves are operators (fft, rfft, irfft).
*/
#include "lua_moonbeam.h"

/* good_size(n): the size >= n that transforms fast. */
static int fft_good_size(lua_State *L)
{
    int64_t n = mbl_check_integer(L, 1, "n");
    if (n < 1)
        mbl_fail(L, MB_STATUS_ARGUMENT, "n", "n is %lld; a transform has at least one point",
                 (long long)n);
    lua_pushinteger(L, mb_fft_good_size(n));
    return 1;
}

/* plans([device]): how many plans are cached, and what the library holds for them. */
static int fft_plans(lua_State *L)
{
    mb_device *device = mbl_opt_device(L, 1);
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, mb_fft_cache_count(device));
    lua_setfield(L, -2, "count");
    lua_pushinteger(L, (lua_Integer)mb_fft_cache_library_bytes(device));
    lua_setfield(L, -2, "library_bytes");
    return 1;
}

/* drop([device [, keep]]): forgets idle plans, oldest first; returns how many went. */
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
    static const luaL_Reg functions[] = {{"good_size", fft_good_size},
                                         {"plans", fft_plans},
                                         {"drop", fft_drop},
                                         {"library_bytes", fft_library_bytes},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
